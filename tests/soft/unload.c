/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that loads the library by itself and lets go of it: with the device closed, again and
 * again; and while a device is open and bytes move, which go on moving.
 *
 * usage: unload     Exit: 0 right, 77 the port is another user's.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 50, BYTES = 4096, PATIENCE_S = 20 };

/* What of the library is used; the rest goes through the context's table. */
static struct {
	struct ibv_device **(*get_device_list)(int *);
	void (*free_device_list)(struct ibv_device **);
	struct ibv_context *(*open_device)(struct ibv_device *);
	int (*close_device)(struct ibv_context *);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *);
	int (*dealloc_pd)(struct ibv_pd *);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
	int (*dereg_mr)(struct ibv_mr *);
	struct ibv_cq *(*create_cq)(struct ibv_context *, int, void *, struct ibv_comp_channel *,
				    int);
	int (*destroy_cq)(struct ibv_cq *);
	struct ibv_qp *(*create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
	int (*modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);
	int (*destroy_qp)(struct ibv_qp *);
	int (*query_gid)(struct ibv_context *, uint8_t, int, union ibv_gid *);
} v;

static void *handle;

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void load(void)
{
	static const struct {
		const char *name;
		void **at;
	} symbols[] = {
		{"ibv_get_device_list", (void **)&v.get_device_list},
		{"ibv_free_device_list", (void **)&v.free_device_list},
		{"ibv_open_device", (void **)&v.open_device},
		{"ibv_close_device", (void **)&v.close_device},
		{"ibv_alloc_pd", (void **)&v.alloc_pd},
		{"ibv_dealloc_pd", (void **)&v.dealloc_pd},
		{"ibv_reg_mr", (void **)&v.reg_mr},
		{"ibv_dereg_mr", (void **)&v.dereg_mr},
		{"ibv_create_cq", (void **)&v.create_cq},
		{"ibv_destroy_cq", (void **)&v.destroy_cq},
		{"ibv_create_qp", (void **)&v.create_qp},
		{"ibv_modify_qp", (void **)&v.modify_qp},
		{"ibv_destroy_qp", (void **)&v.destroy_qp},
		{"ibv_query_gid", (void **)&v.query_gid},
	};

	handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		fail(dlerror());
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		*symbols[i].at = dlvsym(handle, symbols[i].name, "IBVERBS_1.1");
		if (!*symbols[i].at)
			fail(symbols[i].name);
	}
}

static unsigned char memory[2 * BYTES];

struct opened {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void connect_to_itself(struct opened *o)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = o->qp->qp_num,
				   .max_dest_rd_atomic = 1,
				   .min_rnr_timer = 12,
				   .timeout = 18,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .max_rd_atomic = 1,
				   .ah_attr = {.is_global = 1, .port_num = 1}};

	if (v.query_gid(o->context, 1, 0, &attr.ah_attr.grh.dgid) ||
	    v.modify_qp(o->qp, &attr,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		fail("INIT");
	attr.qp_state = IBV_QPS_RTR;
	if (v.modify_qp(o->qp, &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		fail("RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (v.modify_qp(o->qp, &attr,
			IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		fail("RTS");
}

static void open_all(struct opened *o)
{
	struct ibv_device **list = v.get_device_list(NULL);
	struct ibv_qp_init_attr init = {.cap = {8, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};

	o->context = list && list[0] ? v.open_device(list[0]) : NULL;
	o->pd = o->context ? v.alloc_pd(o->context) : NULL;
	o->mr = o->pd ? v.reg_mr(o->pd, memory, sizeof(memory),
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
		      : NULL;
	o->cq = o->mr ? v.create_cq(o->context, 16, NULL, NULL, 0) : NULL;
	init.send_cq = init.recv_cq = o->cq;
	o->qp = o->cq ? v.create_qp(o->pd, &init) : NULL;
	if (!o->qp && errno == EADDRINUSE)
		exit(77);
	if (!o->qp)
		fail("open");
	v.free_device_list(list);
	connect_to_itself(o);
}

static void move_bytes(struct opened *o, unsigned char with)
{
	struct ibv_sge sge = {(uintptr_t)memory, BYTES, o->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.rdma = {(uintptr_t)memory + BYTES, o->mr->rkey}};
	time_t end = time(NULL) + PATIENCE_S;
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

	memset(memory, with, BYTES);
	errno = ibv_post_send(o->qp, &wr, &bad);
	if (errno)
		fail("ibv_post_send");
	while (ibv_poll_cq(o->cq, 1, &wc) == 0 && time(NULL) < end)
		continue;
	if (wc.status || memcmp(memory, memory + BYTES, BYTES) != 0)
		fail("bytes did not move");
}

static void close_all(struct opened *o)
{
	if (v.destroy_qp(o->qp) || v.destroy_cq(o->cq) || v.dereg_mr(o->mr) ||
	    v.dealloc_pd(o->pd) || v.close_device(o->context))
		fail("close");
}

static unsigned int entries(const char *dir)
{
	unsigned int n = 0;
	DIR *d = opendir(dir);

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

int main(void)
{
	unsigned int fds = 0, threads = entries("/proc/self/task");
	struct opened o;

	for (int i = 0; i < ROUNDS; i++) {
		load();
		open_all(&o);
		move_bytes(&o, (unsigned char)(i + 1));
		close_all(&o);
		if (dlclose(handle))
			fail("dlclose");
		if (i && entries("/proc/self/fd") != fds)
			fail("descriptors are left");
		fds = entries("/proc/self/fd");
	}
	if (entries("/proc/self/task") != threads)
		fail("a thread is left");
	load();
	open_all(&o);
	if (dlclose(handle))
		fail("dlclose");
	for (int i = 0; i < ROUNDS; i++)
		move_bytes(&o, (unsigned char)(i + 7));
	close_all(&o);
	/* And left open at the end. */
	load();
	open_all(&o);
	(void)dlclose(handle);
	printf("loaded and let go %d times, and used after it\n", ROUNDS + 2);
	return 0;
}
