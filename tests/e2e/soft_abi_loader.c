/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the verbs library as NCCL 2.28 does (src/misc/ibvsymbols.cc): dlopen("libibverbs.so"), each
 * symbol by dlvsym() with its version, and no header of rdma-core. Then its first steps with a
 * device, with the dma-buf probe that decides on GPUDirect RDMA.
 *
 * Prints one line a finding; exit 1 at the first thing that NCCL would not accept.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *version;
} wanted[] = {
	{"ibv_get_device_list", "IBVERBS_1.1"},
	{"ibv_free_device_list", "IBVERBS_1.1"},
	{"ibv_get_device_name", "IBVERBS_1.1"},
	{"ibv_open_device", "IBVERBS_1.1"},
	{"ibv_close_device", "IBVERBS_1.1"},
	{"ibv_get_async_event", "IBVERBS_1.1"},
	{"ibv_ack_async_event", "IBVERBS_1.1"},
	{"ibv_query_device", "IBVERBS_1.1"},
	{"ibv_query_port", "IBVERBS_1.1"},
	{"ibv_query_gid", "IBVERBS_1.1"},
	{"ibv_query_qp", "IBVERBS_1.1"},
	{"ibv_alloc_pd", "IBVERBS_1.1"},
	{"ibv_dealloc_pd", "IBVERBS_1.1"},
	{"ibv_reg_mr", "IBVERBS_1.1"},
	{"ibv_dereg_mr", "IBVERBS_1.1"},
	{"ibv_create_cq", "IBVERBS_1.1"},
	{"ibv_destroy_cq", "IBVERBS_1.1"},
	{"ibv_create_qp", "IBVERBS_1.1"},
	{"ibv_modify_qp", "IBVERBS_1.1"},
	{"ibv_destroy_qp", "IBVERBS_1.1"},
	{"ibv_fork_init", "IBVERBS_1.1"},
	{"ibv_event_type_str", "IBVERBS_1.1"},
	/* optional ones, by which it decides what to use */
	{"ibv_reg_mr_iova2", "IBVERBS_1.8"},
	{"ibv_query_ece", "IBVERBS_1.10"},
	{"ibv_set_ece", "IBVERBS_1.10"},
	{"ibv_reg_dmabuf_mr", "IBVERBS_1.12"},
	{"ibv_query_port_speed", "IBVERBS_1.16"},
};

enum { WANTED = sizeof(wanted) / sizeof(wanted[0]) };

static void *library;

static void *symbol(const char *name)
{
	for (int i = 0; i < WANTED; i++)
		if (!strcmp(wanted[i].name, name))
			return dlvsym(library, name, wanted[i].version);
	return NULL;
}

/* Offsets of struct ibv_device, struct ibv_context as NCCL's own header has them. */
enum { DEVICE_NAME = 24, CONTEXT_DEVICE = 0 };

int main(void)
{
	void **(*get_list)(int *);
	void *(*open_device)(void *), *(*alloc_pd)(void *);
	void *(*reg_dmabuf)(void *, uint64_t, size_t, uint64_t, int, int);
	int (*close_device)(void *), (*dealloc_pd)(void *), (*fork_init)(void);
	int (*query_ece)(void *, void *);
	void **list, *context, *pd, *mr;
	int n;

	library = dlopen("libibverbs.so", RTLD_NOW);
	if (!library) {
		printf("dlopen: %s\n", dlerror());
		return 1;
	}
	for (int i = 0; i < WANTED; i++) {
		if (!symbol(wanted[i].name)) {
			printf("missing: %s@%s\n", wanted[i].name, wanted[i].version);
			return 1;
		}
	}
	*(void **)&get_list = symbol("ibv_get_device_list");
	*(void **)&open_device = symbol("ibv_open_device");
	*(void **)&close_device = symbol("ibv_close_device");
	*(void **)&alloc_pd = symbol("ibv_alloc_pd");
	*(void **)&dealloc_pd = symbol("ibv_dealloc_pd");
	*(void **)&reg_dmabuf = symbol("ibv_reg_dmabuf_mr");
	*(void **)&fork_init = symbol("ibv_fork_init");
	*(void **)&query_ece = symbol("ibv_query_ece");
	if (fork_init())
		return 1;
	list = get_list(&n);
	if (!list || n < 1) {
		printf("no devices: %s\n", strerror(errno));
		return 1;
	}
	context = open_device(list[0]);
	pd = context ? alloc_pd(context) : NULL;
	if (!pd)
		return 1;
	printf("device: %s\n", *(char **)((char *)context + CONTEXT_DEVICE) + DEVICE_NAME);
	errno = 0;
	mr = reg_dmabuf(pd, 0, 0, 0, -1, 0);
	printf("dmabuf probe: %s\n", mr ? "a region" : strerror(errno));
	if (mr || errno != EBADF)
		return 1;
	if (query_ece(NULL, NULL) != EOPNOTSUPP || dealloc_pd(pd) || close_device(context))
		return 1;
	/* A device that is left open has a thread: its code must not go from under it. */
	if (!open_device(list[0]) || dlclose(library) ||
	    !dlopen("libibverbs.so", RTLD_NOW | RTLD_NOLOAD)) {
		printf("gone with a device open\n");
		return 1;
	}
	printf("%d symbols\n", WANTED);
	return 0;
}
