/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing a device: the tables that a client's inlined calls jump through.
 */
#include "soft/abi/export.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/compiler.h"
#include "soft/abi/mr.h"
#include "soft/abi/mw.h"
#include "soft/abi/witness.h"
#include "base/banned.h"

/* What old clients' tables held and nobody calls: ENOSYS, should somebody. */
static void refuse(void)
{
	errno = ENOSYS;
}

static int no_close_xrcd(void *xrcd)
{
	(void)xrcd;
	return EOPNOTSUPP;
}

static void fill_slots(soft_slot_unused *slots, size_t n)
{
	for (size_t i = 0; i < n; i++)
		slots[i] = refuse;
}

static void fill_ops(struct ibv_context_ops *ops)
{
	fill_slots(ops->compat_head, PP_ARRAY_LEN(ops->compat_head));
	fill_slots(&ops->compat_create_cq, 1);
	fill_slots(ops->compat_cq, PP_ARRAY_LEN(ops->compat_cq));
	fill_slots(ops->compat_srq, PP_ARRAY_LEN(ops->compat_srq));
	fill_slots(ops->compat_qp, PP_ARRAY_LEN(ops->compat_qp));
	fill_slots(ops->compat_tail, PP_ARRAY_LEN(ops->compat_tail));
	ops->alloc_mw = soft_alloc_mw;
	ops->bind_mw = soft_bind_mw;
	ops->dealloc_mw = soft_dealloc_mw;
	ops->poll_cq = soft_poll_cq;
	ops->req_notify_cq = soft_req_notify_cq;
	ops->post_srq_recv = soft_post_srq_recv;
	ops->post_send = soft_post_send;
	ops->post_recv = soft_post_recv;
}

/* A slot that stays NULL makes the client's inlined call answer EOPNOTSUPP by itself. */
static void fill_verbs(struct soft_context *c)
{
	struct verbs_context *v = &c->verbs;

	v->sz = sizeof(*v);
	v->context.abi_compat = SOFT_ABI_IS_EXTENDED;
	v->context.device = &c->device->ibv;
	v->context.cmd_fd = -1;
	v->context.num_comp_vectors = 1;
	v->reg_mr_ex = ibv_reg_mr_ex;
	v->advise_mr = soft_advise_mr;
	v->alloc_null_mr = soft_alloc_null_mr;
	v->query_port = soft_query_port;
	v->alloc_parent_domain = soft_alloc_parent_domain;
	v->alloc_td = soft_alloc_td;
	v->dealloc_td = soft_dealloc_td;
	v->modify_cq = soft_modify_cq;
	v->query_rt_values = soft_query_rt_values;
	v->create_cq_ex = soft_create_cq_ex;
	v->query_device_ex = soft_query_device_ex;
	v->create_qp_ex = soft_create_qp_ex;
	v->get_srq_num = soft_get_srq_num;
	v->create_srq_ex = soft_create_srq_ex;
	v->close_xrcd = no_close_xrcd;
	fill_ops(&v->context.ops);
}

static void context_free(struct soft_context *c)
{
	bool inherited = c->engine && soft_context_inherited(c);

	soft_device_delist(c->device, c);
	if (c->attach)
		soft_device_detach(c->device, c->attach);
	if (c->engine)
		soft_engine_put(c->engine);
	if (c->verbs.context.async_fd >= 0)
		close(c->verbs.context.async_fd);
	if (c->verbs.context.cmd_fd >= 0)
		close(c->verbs.context.cmd_fd);
	if (inherited) {
		soft_events_abandon(c->async);
	} else {
		/* Who sleeps on them goes on to do so. */
		if (c->async) {
			(void)soft_events_forget(c->async, &c->port_events);
			(void)soft_events_forget(c->async, &c->device_events);
		}
		soft_events_unref(c->async);
		pthread_mutex_destroy(&c->verbs.context.mutex);
		pthread_mutex_destroy(&c->lock);
	}
	free(c);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct soft_device *d = (struct soft_device *)device;
	struct soft_context *c;
	struct pp_error err = {0};
	int r;

	if (!device || !soft_device_known(d))
		return soft_fail(ENODEV);
	r = soft_device_fault(d, SOFT_FAULT_OPEN_DEVICE);
	if (r)
		return soft_fail(r);
	c = calloc(1, sizeof(*c));
	if (!c)
		return soft_fail(ENOMEM);
	c->device = d;
	for (unsigned int i = 0; i < SOFT_KINDS; i++)
		c->objects[i].prev = c->objects[i].next = &c->objects[i];
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->verbs.context.mutex, NULL);
	fill_verbs(c);
	c->verbs.context.async_fd = -1;
	r = soft_events_new(&c->async, &c->verbs.context.async_fd);
	if (!r) {
		/* There is no command channel, but programs duplicate and pass on its descriptor.
		 */
		c->verbs.context.cmd_fd = fcntl(c->verbs.context.async_fd, F_DUPFD_CLOEXEC, 0);
		if (c->verbs.context.cmd_fd < 0)
			r = -errno;
	}
	if (!r)
		r = soft_engine_get(soft_show_process, /* show_arg= */ NULL, &c->engine, &err);
	if (!r) {
		c->attach = soft_device_attach(d, c->engine);
		if (!c->attach)
			r = -ENOMEM;
	}
	if (r) {
		context_free(c);
		return soft_fail(-r);
	}
	soft_engine_on_request(c->engine, soft_fault_process);
	soft_device_enlist(d, c);
	soft_witness_leave();
	return &c->verbs.context;
}

int ibv_close_device(struct ibv_context *context)
{
	static void (*const drop[SOFT_KINDS])(struct soft_context *, struct soft_object *) = {
		[SOFT_KIND_QP] = soft_qp_drop,		 [SOFT_KIND_SRQ] = soft_srq_drop,
		[SOFT_KIND_CQ] = soft_cq_drop,		 [SOFT_KIND_AH] = soft_ah_drop,
		[SOFT_KIND_MW] = soft_mw_drop,		 [SOFT_KIND_MR] = soft_mr_drop,
		[SOFT_KIND_PD] = soft_pd_drop,		 [SOFT_KIND_TD] = soft_td_drop,
		[SOFT_KIND_CHANNEL] = soft_channel_drop,
	};
	struct soft_context *c = soft_context_of(context);

	/* As the kernel does: what was left behind goes with the context. Nobody builds on it. */
	for (unsigned int kind = 0; kind < SOFT_KINDS && !soft_context_inherited(c); kind++) {
		struct soft_object *head = &c->objects[kind];

		while (head->next != head) {
			struct soft_object *o = head->next;

			atomic_store(&o->uses, 0);
			drop[kind](c, o);
		}
	}
	context_free(c);
	return 0;
}
