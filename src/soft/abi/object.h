/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs objects as this library holds them. Each begins with what the client sees; a
 * struct soft_object counts who builds on it and chains it to its context, so that closing a device
 * takes away what a client left behind.
 *
 * Locks, outermost first: a queue pair's `posting`, devices (device_list.c), a context's `lock`,
 * the engine's, an event queue's. None of them is held while waiting for a client.
 */
#ifndef SOFT_ABI_OBJECT_H
#define SOFT_ABI_OBJECT_H

#include <stdatomic.h>

#include "soft/abi/event.h"
#include "soft/abi/fault.h"
#include "soft/config/config.h"
#include "soft/engine/engine.h"
#include "soft/verbs_object.h"

/* In the order in which closing a device takes them away. */
enum soft_kind {
	SOFT_KIND_QP,
	SOFT_KIND_SRQ,
	SOFT_KIND_CQ,
	SOFT_KIND_AH,
	SOFT_KIND_MW,
	SOFT_KIND_MR,
	SOFT_KIND_PD,
	SOFT_KIND_TD,
	SOFT_KIND_CHANNEL,
	SOFT_KINDS,
};

struct soft_object {
	struct soft_object *prev, *next;
	enum soft_kind kind;
	uint32_t handle;		   /* as the client sees it */
	const struct ibv_context *context; /* the one that it was made in */
	_Atomic unsigned int uses;	   /* by other objects */
};

/* A device opened by this process: shared by the contexts of one engine. */
struct soft_attach {
	struct soft_engine *engine; /* a reference for each context */
	struct soft_wire *wire;
	unsigned int contexts;		    /* under the devices' lock */
	_Atomic uint32_t count[SOFT_KINDS]; /* of objects, against the limits */
};

struct soft_device {
	struct ibv_device ibv; /* first */
	/*
	 * Provider libraries (mlx5dv_is_supported() and the like) take an ibv_device for the head
	 * of their struct verbs_device and compare the pointer behind it with their own.
	 */
	const void *provider_ops;
	uint64_t provider_rest[8];
	struct soft_config_device config;
	uint64_t guid;			      /* big-endian */
	_Atomic(struct soft_attach *) attach; /* written under the devices' lock */
	struct soft_context *contexts;	      /* under the devices' lock, by their next */
	struct soft_device_faults faults;
};

struct soft_context {
	struct soft_device *device;
	struct soft_attach *attach;
	struct soft_engine *engine;
	struct soft_events *async;
	struct soft_event_source port_events, device_events; /* of neither queue nor queue pair */
	struct soft_context *next;			     /* of the device */
	pthread_mutex_t lock;
	struct soft_object objects[SOFT_KINDS]; /* heads of rings */
	struct verbs_context verbs;		/* last: ends with the ibv_context */
};

struct soft_pd_object {
	struct ibv_pd ibv;
	struct soft_object object;
	struct soft_pd_object *parent; /* of a parent domain: the protection domain meant */
	struct soft_td_object *td;
};

struct soft_td_object {
	struct ibv_td ibv;
	struct soft_object object;
};

struct soft_mr_object {
	struct ibv_mr ibv;
	struct soft_object object;
	struct soft_region region;
	struct soft_pd_object *pd;
	int access;
	void *mapping; /* mr_mapped.c: what was mapped, and how much */
	size_t mapping_length;
	int fd; /* kept: the kernel's list of dma-bufs shows who holds them; -1: none */
	/* mr_cuda.c */
	struct soft_cuda_device *gpu; /* NULL: no memory of a GPU */
	uint64_t inode, descriptor_size, offset;
	bool vmm, offset_modelled;
};

struct soft_channel_object {
	struct ibv_comp_channel ibv;
	struct soft_object object;
	struct soft_events *events;
};

struct soft_cq_object {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	struct soft_object object;
	struct soft_cq queue;
	struct soft_event_source comp, async;
	struct soft_engine_timer held, lost; /* an event that waits; queue pairs that end with it */
	bool lost_told;
	struct soft_cqe *current; /* extended polling: shown now; consumer's lock is held */
};

struct soft_ah_object {
	struct ibv_ah ibv;
	struct soft_object object;
	struct soft_pd_object *pd;
	struct ibv_ah_attr attr;
	struct soft_gid src, dst;
	struct soft_path path;
	bool resolved;
};

struct soft_srq_object {
	struct ibv_srq ibv;
	struct soft_object object;
	struct soft_pd_object *pd;
	struct soft_recv_queue queue; /* under the engine's lock */
	struct soft_event_source async;
	uint32_t num;
};

struct soft_qp_object {
	struct ibv_qp_ex ex; /* first: struct ibv_qp begins it */
	struct soft_object object;
	struct soft_qp qp; /* under the engine's lock */
	struct soft_pd_object *pd;
	struct soft_event_source async;
	struct ibv_qp_attr attr; /* as set last */
	bool has_ex, signal_all;
	uint64_t send_ops;	 /* IBV_QP_EX_WITH_* */
	pthread_mutex_t posting; /* of work requests; held from ibv_wr_start() to its end */
	struct {		 /* what ibv_wr_*() gathers in slots that are not posted yet */
		uint32_t first, staged, room;
		struct soft_send_wr *wr;
		int error;
	} batch;
};

static inline struct soft_context *soft_context_of(struct ibv_context *context)
{
	return (struct soft_context *)((char *)context -
				       offsetof(struct soft_context, verbs.context));
}

#define SOFT_OBJECT(type, pointer, member) ((type *)((char *)(pointer)-offsetof(type, member)))

static inline struct soft_pd_object *soft_pd_of(struct ibv_pd *pd)
{
	return SOFT_OBJECT(struct soft_pd_object, pd, ibv);
}

static inline struct soft_mr_object *soft_mr_of(struct ibv_mr *mr)
{
	return SOFT_OBJECT(struct soft_mr_object, mr, ibv);
}

static inline struct soft_cq_object *soft_cq_of(struct ibv_cq *cq)
{
	return SOFT_OBJECT(struct soft_cq_object, cq, ibv);
}

static inline struct soft_cq_object *soft_cq_of_ex(struct ibv_cq_ex *cq)
{
	return SOFT_OBJECT(struct soft_cq_object, cq, ex);
}

static inline struct soft_ah_object *soft_ah_of(struct ibv_ah *ah)
{
	return SOFT_OBJECT(struct soft_ah_object, ah, ibv);
}

static inline struct soft_srq_object *soft_srq_of(struct ibv_srq *srq)
{
	return SOFT_OBJECT(struct soft_srq_object, srq, ibv);
}

static inline struct soft_qp_object *soft_qp_of(struct ibv_qp *qp)
{
	return SOFT_OBJECT(struct soft_qp_object, qp, ex.qp_base);
}

/* What protection checks compare: a parent domain is its protection domain. */
static inline struct soft_pd_object *soft_pd_meant(struct ibv_pd *pd)
{
	struct soft_pd_object *p = soft_pd_of(pd);

	return p->parent ? p->parent : p;
}

/*
 * A child of fork() leaves alone what it inherited: it is half made or half gone, and its locks are
 * held for ever, by threads that the child has not. What takes objects away says it did.
 */
static inline bool soft_context_inherited(const struct soft_context *c)
{
	return soft_engine_inherited(c->engine);
}

/* The errno with which a call of @noun shall fail; 0: none. */
static inline int soft_device_fault(struct soft_device *d, enum soft_fault_noun noun)
{
	if (__builtin_expect(atomic_load_explicit(&d->faults.on, memory_order_relaxed) == 0, 1))
		return 0;
	return soft_device_fault_slow(d, noun);
}

/* The address at @index of the GID table; NULL: none. */
static inline const struct soft_gid *soft_device_gid(const struct soft_device *d, uint32_t index)
{
	int at = soft_device_gid_at(d, index);

	return at < 0 ? NULL : &d->config.gids[at].gid;
}

/* Was the device taken away? Then a call answers EIO. */
static inline bool soft_context_gone(const struct soft_context *c)
{
	return atomic_load_explicit(&c->device->faults.on, memory_order_relaxed) &
	       SOFT_FAULTY_REMOVED;
}

/* object.c */
/* Enters @object, giving it a handle and counting it against @limit; -ENOMEM beyond, -EIO in a
 * child of fork(). */
int soft_object_enter(struct soft_context *c, struct soft_object *object, enum soft_kind kind,
		      uint32_t limit);
/* Takes it out again, unless others build on it: -EBUSY. */
int soft_object_leave(struct soft_context *c, struct soft_object *object);
void soft_object_use(struct soft_object *object);
void soft_object_unuse(struct soft_object *object);
/* What the kernel looks at first: are these what the client was given with the object? */
static inline bool soft_object_is(const struct soft_object *object,
				  const struct ibv_context *context, uint32_t handle)
{
	return object->context == context && object->handle == handle;
}

/* ENOENT, and errno: such a handle is nobody's. EBUSY, and errno: others build on it. */
int soft_gone(void);
int soft_busy(void);
/* NULL with errno set, for constructors. @error is a positive errno. */
void *soft_fail(int error);

/* device_list.c */
struct soft_attach *soft_device_attach(struct soft_device *d, struct soft_engine *engine);
void soft_device_detach(struct soft_device *d, struct soft_attach *attach);
/* Contexts of a device, for what concerns all of them. */
void soft_device_enlist(struct soft_device *d, struct soft_context *c);
void soft_device_delist(struct soft_device *d, struct soft_context *c);
/* Calls @each for every device under the devices' lock: none is attached or detached meanwhile. */
void soft_devices_each(void *arg, void (*each)(void *arg, struct soft_device *d));
/* true if @d is one of ours. */
bool soft_device_known(const struct soft_device *d);

/* show.c */
void soft_show_process(void *arg, struct soft_engine *engine, struct pp_buf *out);
void soft_show_devices(void *arg, void (*each)(void *arg, struct soft_device *d));

/* How each kind goes away when its device is closed under it. */
void soft_qp_drop(struct soft_context *c, struct soft_object *object);
void soft_srq_drop(struct soft_context *c, struct soft_object *object);
void soft_cq_drop(struct soft_context *c, struct soft_object *object);
void soft_ah_drop(struct soft_context *c, struct soft_object *object);
void soft_mr_drop(struct soft_context *c, struct soft_object *object);
void soft_pd_drop(struct soft_context *c, struct soft_object *object);
void soft_td_drop(struct soft_context *c, struct soft_object *object);
void soft_channel_drop(struct soft_context *c, struct soft_object *object);

/* tables of struct verbs_context and ibv_context_ops, filled by context.c */
int soft_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		    size_t size);
int soft_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t size);
int soft_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
struct ibv_td *soft_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int soft_dealloc_td(struct ibv_td *td);
struct ibv_pd *soft_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr);
struct ibv_cq_ex *soft_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int soft_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
/* cq_modify.c: what a queue does by time, set up and ended. */
void soft_cq_timers_init(struct soft_cq_object *cq);
void soft_cq_timers_done(struct soft_cq_object *cq);
int soft_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int soft_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
void soft_cq_ex_fill(struct soft_cq_object *cq, uint64_t wc_flags);
struct ibv_srq *soft_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int soft_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
int soft_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
struct ibv_qp *soft_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
int soft_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int soft_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
void soft_qp_ex_fill(struct soft_qp_object *qp);

#endif
