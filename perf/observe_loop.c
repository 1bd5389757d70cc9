/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What perf/observe.py times: registrations and their ends, and posted receives, of a program that
 * gets its verbs as NCCL does (dlopen, dlvsym). Prints the middle one of each in ns.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#undef ibv_reg_mr

enum { ROUNDS = 2001, POSTS = 4000, BYTES = 1 << 20 };

static void *library;

static void *symbol(const char *name, const char *version)
{
	void *found = dlvsym(library, name, version);

	if (!found) {
		(void)fprintf(stderr, "no %s@%s\n", name, version);
		exit(1);
	}
	return found;
}

static long now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return x < y ? -1 : x > y;
}

static long middle(long *all, size_t n)
{
	qsort(all, n, sizeof(*all), by_value);
	return all[n / 2];
}

static void registrations(struct ibv_pd *pd, char *memory)
{
	__typeof__(&ibv_reg_mr) reg = symbol("ibv_reg_mr", "IBVERBS_1.1");
	__typeof__(&ibv_dereg_mr) dereg = symbol("ibv_dereg_mr", "IBVERBS_1.1");
	static long took[ROUNDS];

	for (size_t i = 0; i < ROUNDS; i++) {
		long began = now_ns();
		struct ibv_mr *mr = reg(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE);

		if (!mr || dereg(mr))
			exit(1);
		took[i] = now_ns() - began;
	}
	(void)printf("registration_ns %ld\n", middle(took, ROUNDS));
}

/* ibv_post_recv() is inline: it calls what the device's context points to, and no loader is asked.
 */
static void posts(struct ibv_pd *pd, struct ibv_cq *cq, char *memory)
{
	__typeof__(&ibv_create_qp) create = symbol("ibv_create_qp", "IBVERBS_1.1");
	__typeof__(&ibv_modify_qp) modify = symbol("ibv_modify_qp", "IBVERBS_1.1");
	__typeof__(&ibv_reg_mr) reg = symbol("ibv_reg_mr", "IBVERBS_1.1");
	struct ibv_mr *mr = reg(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 1,
						.max_recv_wr = POSTS,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *qp = create(pd, &init);
	static long took[POSTS];

	if (!mr || !qp ||
	    modify(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS))
		exit(1);
	for (size_t i = 0; i < POSTS; i++) {
		struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
		long began = now_ns();

		if (ibv_post_recv(qp, &wr, &bad))
			exit(1);
		took[i] = now_ns() - began;
	}
	(void)printf("post_ns %ld\n", middle(took, POSTS));
}

int main(void)
{
	__typeof__(&ibv_get_device_list) list;
	__typeof__(&ibv_open_device) open;
	__typeof__(&ibv_alloc_pd) alloc_pd;
	__typeof__(&ibv_create_cq) create_cq;
	struct ibv_device **devices;
	struct ibv_context *context;
	struct ibv_pd *pd;
	char *memory = aligned_alloc(4096, BYTES);

	library = dlopen("libibverbs.so.1", RTLD_NOW);
	if (!library || !memory) {
		(void)fprintf(stderr, "%s\n", library ? "no memory" : dlerror());
		return 1;
	}
	memset(memory, 1, BYTES);
	list = symbol("ibv_get_device_list", "IBVERBS_1.1");
	open = symbol("ibv_open_device", "IBVERBS_1.1");
	alloc_pd = symbol("ibv_alloc_pd", "IBVERBS_1.1");
	create_cq = symbol("ibv_create_cq", "IBVERBS_1.1");
	devices = list(NULL);
	context = devices && devices[0] ? open(devices[0]) : NULL;
	pd = context ? alloc_pd(context) : NULL;
	if (!pd)
		return 1;
	registrations(pd, memory);
	posts(pd, create_cq(context, 16, NULL, NULL, 0), memory);
	return 0;
}
