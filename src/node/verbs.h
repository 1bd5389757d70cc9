/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_verbs: libibverbs.so.1 as a table of functions, loaded at run time.
 *
 * The one adapter to libibverbs: types come from its header, every function by dlvsym(), nothing
 * is linked. It lies in node/ because facts need it; rdma/ builds on it. Load it in a helper
 * process only: providers may block or crash. Posting and polling are the header's inline
 * functions, which go through the context.
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
	/* Access rights that a device may ignore (relaxed ordering); NULL before rdma-core 28. */
	struct ibv_mr *(*reg_iova2)(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				    unsigned int access);
	/* NULL in libibverbs before rdma-core 34. */
	struct ibv_mr *(*reg_dmabuf)(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova,
				     int fd, int access);
	int (*query_gid)(struct ibv_context *context, uint8_t port, int index, union ibv_gid *ret);
	/* A positive errno, ENODATA for an empty entry; NULL before rdma-core 32. */
	int (*query_gid_ex)(struct ibv_context *context, uint32_t port, uint32_t index,
			    struct ibv_gid_entry *ret, uint32_t flags, size_t size);
	int (*query_pkey)(struct ibv_context *context, uint8_t port, int index, __be16 *ret);
	struct ibv_comp_channel *(*create_channel)(struct ibv_context *context);
	int (*destroy_channel)(struct ibv_comp_channel *channel);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe, void *owner,
				    struct ibv_comp_channel *channel, int vector);
	int (*destroy_cq)(struct ibv_cq *cq);
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **ret,
			    void **ret_owner);
	void (*ack_cq_events)(struct ibv_cq *cq, unsigned int n);
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *ret, int mask,
			struct ibv_qp_init_attr *ret_init);
	int (*destroy_qp)(struct ibv_qp *qp);
	int (*get_async_event)(struct ibv_context *context, struct ibv_async_event *ret);
	void (*ack_async_event)(struct ibv_async_event *event);
	const char *(*event_text)(enum ibv_event_type type);
	const char *(*status_text)(enum ibv_wc_status status);
};

/* -ENOENT: no such library here; -ENOSYS: it lacks a function that is always there. */
int pp_verbs_load(struct pp_verbs *ret, struct pp_error *err);

/* The device called @name, or NULL; @list as get_device_list() returns it. */
struct ibv_device *pp_verbs_find(const struct pp_verbs *v, struct ibv_device **list,
				 const char *name);

/* Bytes of an IBV_MTU_* value; 0 for none of them. */
int pp_verbs_mtu(enum ibv_mtu mtu);

#endif
