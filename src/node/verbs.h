/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_verbs: libibverbs.so.1 as a table of functions, loaded at run time.
 *
 * The one adapter to libibverbs: types come from its header, every function by dlvsym(), nothing
 * is linked. It lies in node/ because facts need it; rdma/ builds on it. Load it in a helper
 * process only: providers may block or crash.
 */
#ifndef PP_NODE_VERBS_H
#define PP_NODE_VERBS_H

#include <infiniband/verbs.h>

#include "base/error.h"

struct pp_verbs {
	void *library; /* dlopen() handle, never closed: providers do not survive it */
	struct ibv_device **(*get_device_list)(int *ret_n);
	void (*free_device_list)(struct ibv_device **list);
	const char *(*get_device_name)(struct ibv_device *device);
	struct ibv_context *(*open_device)(struct ibv_device *device);
	int (*close_device)(struct ibv_context *context);
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *ret_attr);
	/* Fills the members up to `flags` only. */
	int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	int (*dealloc_pd)(struct ibv_pd *pd);
	struct ibv_mr *(*reg_memory)(struct ibv_pd *pd, void *addr, size_t len, int access);
	int (*dereg_mr)(struct ibv_mr *mr);
	/* NULL in libibverbs before rdma-core 34. */
	struct ibv_mr *(*reg_dmabuf)(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova,
				     int fd, int access);
};

/* -ENOENT: no such library here; -ENOSYS: it lacks a function that is always there. */
int pp_verbs_load(struct pp_verbs *ret, struct pp_error *err);

/* The device called @name, or NULL; @list as get_device_list() returns it. */
struct ibv_device *pp_verbs_find(const struct pp_verbs *v, struct ibv_device **list,
				 const char *name);

/* Bytes of an IBV_MTU_* value; 0 for none of them. */
int pp_verbs_mtu(enum ibv_mtu mtu);

#endif
