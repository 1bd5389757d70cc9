/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public verbs ABI, second half: objects, work requests, and the tables that a client's inlined
 * calls jump through. Rules as in soft/verbs.h.
 *
 * A client finds the extended table by walking back from the ibv_context: struct verbs_context ends
 * with it, `sz` right before says how much of the table lies there. New slots come at the front.
 */
#ifndef SOFT_VERBS_OBJECT_H
#define SOFT_VERBS_OBJECT_H

#include <pthread.h>
#include <time.h>

#include "soft/verbs_wr.h"

struct ibv_context;

struct ibv_pd {
	struct ibv_context *context;
	uint32_t handle;
};

struct ibv_td_init_attr {
	uint32_t comp_mask;
};

struct ibv_td {
	struct ibv_context *context;
};

struct ibv_mr {
	struct ibv_context *context;
	struct ibv_pd *pd;
	void *addr;
	size_t length;
	uint32_t handle, lkey, rkey;
};

struct ibv_mw {
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint32_t rkey, handle;
	int type;
};

struct ibv_ah {
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint32_t handle;
};

struct ibv_comp_channel {
	struct ibv_context *context;
	int fd, refcnt;
};

/* The head that struct ibv_cq is, and struct ibv_cq_ex begins with. */
#define SOFT_IBV_CQ_HEAD                  \
	struct ibv_context *context;      \
	struct ibv_comp_channel *channel; \
	void *cq_context;                 \
	uint32_t handle;                  \
	int cqe;                          \
	pthread_mutex_t mutex;            \
	pthread_cond_t cond;              \
	uint32_t comp_events_completed, async_events_completed

struct ibv_cq {
	SOFT_IBV_CQ_HEAD;
};

struct ibv_poll_cq_attr {
	uint32_t comp_mask;
};

struct ibv_wc_tm_info {
	uint64_t tag;
	uint32_t priv;
};

struct ibv_cq_ex {
	SOFT_IBV_CQ_HEAD;
	uint32_t comp_mask;
	enum ibv_wc_status status;
	uint64_t wr_id;
	int (*start_poll)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
	int (*next_poll)(struct ibv_cq_ex *cq);
	void (*end_poll)(struct ibv_cq_ex *cq);
	enum ibv_wc_opcode (*read_opcode)(struct ibv_cq_ex *cq);
	uint32_t (*read_vendor_err)(struct ibv_cq_ex *cq);
	uint32_t (*read_byte_len)(struct ibv_cq_ex *cq);
	uint32_t (*read_imm_data)(struct ibv_cq_ex *cq);
	uint32_t (*read_qp_num)(struct ibv_cq_ex *cq);
	uint32_t (*read_src_qp)(struct ibv_cq_ex *cq);
	unsigned int (*read_wc_flags)(struct ibv_cq_ex *cq);
	uint32_t (*read_slid)(struct ibv_cq_ex *cq);
	uint8_t (*read_sl)(struct ibv_cq_ex *cq);
	uint8_t (*read_dlid_path_bits)(struct ibv_cq_ex *cq);
	uint64_t (*read_completion_ts)(struct ibv_cq_ex *cq);
	uint16_t (*read_cvlan)(struct ibv_cq_ex *cq);
	uint32_t (*read_flow_tag)(struct ibv_cq_ex *cq);
	void (*read_tm_info)(struct ibv_cq_ex *cq, struct ibv_wc_tm_info *tm_info);
	uint64_t (*read_completion_wallclock_ns)(struct ibv_cq_ex *cq);
};

struct ibv_cq_init_attr_ex {
	uint32_t cqe;
	void *cq_context;
	struct ibv_comp_channel *channel;
	uint32_t comp_vector;
	uint64_t wc_flags;
	uint32_t comp_mask, flags;
	struct ibv_pd *parent_domain;
};

struct ibv_modify_cq_attr {
	uint32_t attr_mask;
	struct {
		uint16_t cq_count, cq_period;
	} moderate;
};

struct ibv_srq {
	struct ibv_context *context;
	void *srq_context;
	struct ibv_pd *pd;
	uint32_t handle;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint32_t events_completed;
};

struct ibv_srq_init_attr_ex {
	void *srq_context;
	struct ibv_srq_attr attr;
	uint32_t comp_mask;
	enum ibv_srq_type srq_type;
	struct ibv_pd *pd;
	void *xrcd;
	struct ibv_cq *cq;
	struct ibv_tm_cap tm_cap;
};

struct ibv_qp {
	struct ibv_context *context;
	void *qp_context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	uint32_t handle, qp_num;
	enum ibv_qp_state state;
	enum ibv_qp_type qp_type;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint32_t events_completed;
};

struct ibv_qp_ex {
	struct ibv_qp qp_base;
	uint64_t comp_mask, wr_id;
	unsigned int wr_flags;
	void (*wr_atomic_cmp_swp)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
				  uint64_t compare, uint64_t swap);
	void (*wr_atomic_fetch_add)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
				    uint64_t add);
	void (*wr_bind_mw)(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
			   const struct ibv_mw_bind_info *bind_info);
	void (*wr_local_inv)(struct ibv_qp_ex *qp, uint32_t invalidate_rkey);
	void (*wr_rdma_read)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr);
	void (*wr_rdma_write)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr);
	void (*wr_rdma_write_imm)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
				  uint32_t imm_data);
	void (*wr_send)(struct ibv_qp_ex *qp);
	void (*wr_send_imm)(struct ibv_qp_ex *qp, uint32_t imm_data);
	void (*wr_send_inv)(struct ibv_qp_ex *qp, uint32_t invalidate_rkey);
	void (*wr_send_tso)(struct ibv_qp_ex *qp, void *hdr, uint16_t hdr_sz, uint16_t mss);
	void (*wr_set_ud_addr)(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t remote_qpn,
			       uint32_t remote_qkey);
	void (*wr_set_xrc_srqn)(struct ibv_qp_ex *qp, uint32_t remote_srqn);
	void (*wr_set_inline_data)(struct ibv_qp_ex *qp, void *addr, size_t length);
	void (*wr_set_inline_data_list)(struct ibv_qp_ex *qp, size_t num_buf,
					const struct ibv_data_buf *buf_list);
	void (*wr_set_sge)(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length);
	void (*wr_set_sge_list)(struct ibv_qp_ex *qp, size_t num_sge,
				const struct ibv_sge *sg_list);
	void (*wr_start)(struct ibv_qp_ex *qp);
	int (*wr_complete)(struct ibv_qp_ex *qp);
	void (*wr_abort)(struct ibv_qp_ex *qp);
	void (*wr_atomic_write)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
				const void *atomic_wr);
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
			 uint8_t type, uint8_t level);
};

struct ibv_qp_init_attr {
	void *qp_context;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_qp_cap cap;
	enum ibv_qp_type qp_type;
	int sq_sig_all;
};

struct ibv_rx_hash_conf {
	uint8_t rx_hash_function, rx_hash_key_len, *rx_hash_key;
	uint64_t rx_hash_fields_mask;
};

struct ibv_qp_init_attr_ex {
	void *qp_context;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_qp_cap cap;
	enum ibv_qp_type qp_type;
	int sq_sig_all;
	uint32_t comp_mask;
	struct ibv_pd *pd;
	void *xrcd;
	uint32_t create_flags;
	uint16_t max_tso_header;
	void *rwq_ind_tbl;
	struct ibv_rx_hash_conf rx_hash_conf;
	uint32_t source_qpn;
	uint64_t send_ops_flags;
};

struct ibv_async_event {
	union {
		struct ibv_cq *cq;
		struct ibv_qp *qp;
		struct ibv_srq *srq;
		int port_num;
	} element;
	enum ibv_event_type event_type;
};

struct ibv_ece {
	uint32_t vendor_id, options, comp_mask;
};

struct ibv_values_ex {
	uint32_t comp_mask;
	struct timespec raw_clock;
};

struct ibv_parent_domain_init_attr {
	struct ibv_pd *pd;
	struct ibv_td *td;
	uint32_t comp_mask;
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
};

/* A slot that this device never fills: its true type does not matter. */
typedef void (*soft_slot_unused)(void);

struct ibv_device {
	soft_slot_unused _ops[2];
	enum ibv_node_type node_type;
	enum ibv_transport_type transport_type;
	char name[64], dev_name[64], dev_path[256], ibdev_path[256];
};

struct ibv_context_ops {
	soft_slot_unused compat_head[7];
	struct ibv_mw *(*alloc_mw)(struct ibv_pd *pd, enum ibv_mw_type type);
	int (*bind_mw)(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind);
	int (*dealloc_mw)(struct ibv_mw *mw);
	soft_slot_unused compat_create_cq;
	int (*poll_cq)(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
	soft_slot_unused compat_cq[3], compat_srq[4];
	int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			     struct ibv_recv_wr **bad_wr);
	soft_slot_unused compat_qp[4];
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
	soft_slot_unused compat_tail[5];
};

struct ibv_context {
	struct ibv_device *device;
	struct ibv_context_ops ops;
	int cmd_fd, async_fd, num_comp_vectors;
	pthread_mutex_t mutex;
	void *abi_compat;
};

/* Value of abi_compat that says: a struct verbs_context surrounds this ibv_context. */
#define SOFT_ABI_IS_EXTENDED ((void *)UINTPTR_MAX)

struct verbs_context {
	soft_slot_unused free_buf, alloc_buf, dm_export_dmabuf_fd;
	struct ibv_mr *(*reg_mr_ex)(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);
	soft_slot_unused dealloc_dmah, alloc_dmah;
	int (*query_port)(struct ibv_context *context, uint8_t port_num,
			  struct ibv_port_attr *port_attr, size_t port_attr_len);
	int (*advise_mr)(struct ibv_pd *pd, int advice, uint32_t flags, struct ibv_sge *sg_list,
			 uint32_t num_sges);
	struct ibv_mr *(*alloc_null_mr)(struct ibv_pd *pd);
	soft_slot_unused counters[4], dm[3], flow_action[3], modify_qp_rate_limit;
	struct ibv_pd *(*alloc_parent_domain)(struct ibv_context *context,
					      struct ibv_parent_domain_init_attr *attr);
	int (*dealloc_td)(struct ibv_td *td);
	struct ibv_td *(*alloc_td)(struct ibv_context *context, struct ibv_td_init_attr *attr);
	int (*modify_cq)(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
	soft_slot_unused post_srq_ops, wq[5];
	int (*query_rt_values)(struct ibv_context *context, struct ibv_values_ex *values);
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *context,
					  struct ibv_cq_init_attr_ex *attr);
	void *priv;
	int (*query_device_ex)(struct ibv_context *context,
			       const struct ibv_query_device_ex_input *input,
			       struct ibv_device_attr_ex *attr, size_t attr_size);
	soft_slot_unused flow[4], open_qp;
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *context,
				       struct ibv_qp_init_attr_ex *attr);
	int (*get_srq_num)(struct ibv_srq *srq, uint32_t *srq_num);
	struct ibv_srq *(*create_srq_ex)(struct ibv_context *context,
					 struct ibv_srq_init_attr_ex *attr);
	soft_slot_unused open_xrcd;
	int (*close_xrcd)(void *xrcd); /* called without a look whether it is there */
	uint64_t abi_gap;	       /* rdma-core keeps 8 bytes here that nothing reads */
	size_t sz;		       /* must stay right before context */
	struct ibv_context context;    /* must stay last */
};

/* Measured on x86-64 with rdma-core 44 and 65. */
#if UINTPTR_MAX == UINT64_MAX
_Static_assert(sizeof(struct ibv_context_ops) == 256, "ABI");
_Static_assert(offsetof(struct ibv_context_ops, poll_cq) == 88, "ABI");
_Static_assert(offsetof(struct ibv_context_ops, req_notify_cq) == 96, "ABI");
_Static_assert(offsetof(struct ibv_context_ops, post_send) == 200, "ABI");
_Static_assert(offsetof(struct ibv_context_ops, post_recv) == 208, "ABI");
_Static_assert(sizeof(struct ibv_context) == 328, "ABI");
_Static_assert(offsetof(struct ibv_context, async_fd) == 268, "ABI");
_Static_assert(offsetof(struct ibv_context, abi_compat) == 320, "ABI");
_Static_assert(sizeof(struct verbs_context) == 696, "ABI");
_Static_assert(sizeof(struct ibv_device) == 664, "ABI");
_Static_assert(sizeof(struct ibv_qp) == 160, "ABI");
_Static_assert(sizeof(struct ibv_qp_ex) == 360, "ABI");
_Static_assert(sizeof(struct ibv_cq) == 128, "ABI");
_Static_assert(sizeof(struct ibv_cq_ex) == 288, "ABI");
_Static_assert(sizeof(struct ibv_wc) == 48, "ABI");
#endif
_Static_assert(sizeof(struct ibv_port_attr) == 56, "ABI");
_Static_assert(SOFT_COMPAT_PORT_ATTR <= 52, "ABI");

#endif
