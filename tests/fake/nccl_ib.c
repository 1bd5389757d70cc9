/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fake NCCL asks of verbs, as the real one does: libibverbs by dlopen, its functions by
 * dlvsym; one probe with descriptor -1; GPU memory by a DMA-BUF that is closed again right after
 * the registration; of each channel the sizes of NCCL 2.28. No data goes that way.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nccl.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

enum { REGIONS = 64, LL = 524288, LL128 = 4915200, SIMPLE = 4194304, RIGHTS = 0xF };

struct region {
	struct ibv_mr *mr;
	uint64_t gpu;
	void *host;
};

struct ib {
	void *library;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[REGIONS];
	struct region region[REGIONS];
	unsigned int n, n_qps;
	bool dmabuf;
	char name[64];
	struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
	struct ibv_mr *(*reg_dmabuf)(struct ibv_pd *, uint64_t, size_t, uint64_t, int, int);
	int (*dereg)(struct ibv_mr *);
	struct ibv_qp *(*create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
	int (*destroy_qp)(struct ibv_qp *);
	int (*destroy_cq)(struct ibv_cq *);
	int (*dealloc_pd)(struct ibv_pd *);
	int (*close)(struct ibv_context *);
};

static void *entry(const struct ib *ib, const char *name, const char *version)
{
	return dlvsym(ib->library, name, version);
}

static bool load(struct ib *ib)
{
	ib->library = dlopen("libibverbs.so", RTLD_NOW | RTLD_LOCAL);
	if (!ib->library)
		ib->library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!ib->library) {
		say(INIT, "Failed to open libibverbs.so[.1]");
		return false;
	}
	*(void **)&ib->reg_mr = entry(ib, "ibv_reg_mr", "IBVERBS_1.1");
	*(void **)&ib->reg_dmabuf = entry(ib, "ibv_reg_dmabuf_mr", "IBVERBS_1.12");
	*(void **)&ib->dereg = entry(ib, "ibv_dereg_mr", "IBVERBS_1.1");
	*(void **)&ib->create_qp = entry(ib, "ibv_create_qp", "IBVERBS_1.1");
	*(void **)&ib->destroy_qp = entry(ib, "ibv_destroy_qp", "IBVERBS_1.1");
	*(void **)&ib->destroy_cq = entry(ib, "ibv_destroy_cq", "IBVERBS_1.1");
	*(void **)&ib->dealloc_pd = entry(ib, "ibv_dealloc_pd", "IBVERBS_1.1");
	*(void **)&ib->close = entry(ib, "ibv_close_device", "IBVERBS_1.1");
	return ib->reg_mr && ib->dereg && ib->create_qp && ib->close;
}

static bool open_first(struct ib *ib)
{
	struct ibv_device **(*list)(int *), **all;
	struct ibv_context *(*open)(struct ibv_device *);
	const char *(*name)(struct ibv_device *);
	void (*release)(struct ibv_device **);
	struct ibv_pd *(*alloc)(struct ibv_context *);
	struct ibv_cq *(*create)(struct ibv_context *, int, void *, struct ibv_comp_channel *, int);
	int n = 0;

	*(void **)&list = entry(ib, "ibv_get_device_list", "IBVERBS_1.1");
	*(void **)&release = entry(ib, "ibv_free_device_list", "IBVERBS_1.1");
	*(void **)&open = entry(ib, "ibv_open_device", "IBVERBS_1.1");
	*(void **)&name = entry(ib, "ibv_get_device_name", "IBVERBS_1.1");
	*(void **)&alloc = entry(ib, "ibv_alloc_pd", "IBVERBS_1.1");
	*(void **)&create = entry(ib, "ibv_create_cq", "IBVERBS_1.1");
	all = list(&n);
	if (all && n) {
		strncpy(ib->name, name(all[0]), sizeof(ib->name) - 1);
		ib->context = open(all[0]);
	}
	if (all)
		release(all);
	if (!ib->context)
		return false;
	ib->pd = alloc(ib->context);
	ib->cq = ib->pd ? create(ib->context, 128, NULL, NULL, 0) : NULL;
	return ib->cq;
}

bool ib_open(struct ib **ret)
{
	const char *off = getenv("NCCL_DMABUF_ENABLE");
	struct ib *ib = calloc(1, sizeof(*ib));

	if (!ib || !load(ib) || !open_first(ib)) {
		say(INIT, "NET/IB : No device found.");
		if (ib && ib->context)
			ib->close(ib->context);
		free(ib);
		return false;
	}
	if (ib->reg_dmabuf && !(off && !strcmp(off, "0"))) {
		errno = 0;
		(void)ib->reg_dmabuf(ib->pd, 0, 0, 0, -1, 0);
		ib->dmabuf = errno != EOPNOTSUPP && errno != EPROTONOSUPPORT;
	}
	*ret = ib;
	return true;
}

const char *ib_name(const struct ib *ib)
{
	return ib->name;
}

bool ib_dmabuf(const struct ib *ib)
{
	return ib->dmabuf;
}

static bool register_gpu(struct ib *ib, struct region *r, size_t len)
{
	int (*alloc)(uint64_t *, size_t), (*export)(int *, uint64_t, size_t, int, uint64_t),
		fd = -1;

	*(void **)&alloc = cuda("cuMemAlloc_v2");
	*(void **)&export = cuda("cuMemGetHandleForAddressRange");
	if (!alloc || !export || alloc(&r->gpu, len) || export(&fd, r->gpu, len, 1, 0))
		return false;
	r->mr = ib->reg_dmabuf(ib->pd, 0, len, r->gpu, fd, RIGHTS);
	close(fd);
	if (!r->mr)
		warn("misc/ibvwrap.cc:229",
		     "Call to ibv_reg_dmabuf_mr failed with error %s errno %d", strerror(errno),
		     errno);
	return r->mr;
}

static bool register_one(struct ib *ib, size_t len, bool gpu)
{
	struct region *r = ib->n < REGIONS ? &ib->region[ib->n] : NULL;

	if (!r)
		return false;
	ib->n++;
	if (gpu)
		return register_gpu(ib, r, len);
	r->host = aligned_alloc(4096, (len + 4095) / 4096 * 4096);
	r->mr = r->host ? ib->reg_mr(ib->pd, r->host, len, RIGHTS) : NULL;
	if (!r->mr)
		warn("misc/ibvwrap.cc:207", "Call to ibv_reg_mr failed with error %s errno %d",
		     strerror(errno), errno);
	return r->mr;
}

static bool make_pair(struct ib *ib)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = ib->cq,
		.recv_cq = ib->cq,
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};

	ib->qp[ib->n_qps] = ib->create_qp(ib->pd, &attr);
	return ib->qp[ib->n_qps] && ++ib->n_qps;
}

bool ib_connect(struct ib *ib, bool gdr_receive, bool gdr_send)
{
	/* The queue of a connection, and where its sender learns what it may send. */
	return make_pair(ib) && make_pair(ib) && register_one(ib, 8192, false) &&
	       register_one(ib, 131072, false) && register_one(ib, LL, gdr_receive) &&
	       register_one(ib, LL128, gdr_receive) && register_one(ib, SIMPLE, gdr_receive) &&
	       register_one(ib, LL, false) && register_one(ib, LL128, gdr_send) &&
	       register_one(ib, SIMPLE, gdr_send);
}

void ib_close(struct ib *ib)
{
	int (*release)(uint64_t);

	*(void **)&release = cuda("cuMemFree_v2");
	for (unsigned int i = 0; i < ib->n_qps; i++)
		(void)ib->destroy_qp(ib->qp[i]);
	for (unsigned int i = 0; i < ib->n; i++) {
		if (ib->region[i].mr)
			(void)ib->dereg(ib->region[i].mr);
		if (ib->region[i].gpu && release)
			(void)release(ib->region[i].gpu);
		free(ib->region[i].host);
	}
	(void)ib->destroy_cq(ib->cq);
	(void)ib->dealloc_pd(ib->pd);
	(void)ib->close(ib->context);
	free(ib);
}
