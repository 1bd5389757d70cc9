/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synchronous ids and endpoints: a call waits for its event and returns what that says.
 */
#include "soft/cm/cm.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"

enum { RESOLVE_MS = 2000 };

static void forget_event(struct rdma_cm_id *id)
{
	if (id->event)
		(void)rdma_ack_cm_event(id->event);
	id->event = NULL;
}

/* 0 or errno. */
static int verdict(const struct rdma_cm_event *e)
{
	if (!e->status)
		return 0;
	if (e->event == RDMA_CM_EVENT_REJECTED)
		return ECONNREFUSED;
	return e->status < 0 ? -e->status : e->status;
}

int soft_cm_complete(struct soft_cm_id *id)
{
	int r;

	if (!id->sync)
		return 0;
	forget_event(&id->pub);
	if (rdma_get_cm_event(id->pub.channel, &id->pub.event))
		return -1;
	r = verdict(id->pub.event);
	return r ? soft_cm_fail(r) : 0;
}

/* 0, or -1 and errno. */
static int make_passive(struct soft_cm_id *id, struct rdma_addrinfo *res, struct ibv_pd *pd,
			const struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(&id->pub, res->ai_src_addr))
		return -1;
	if (pd)
		id->pub.pd = pd;
	if (!attr)
		return 0;
	id->qp_init = malloc(sizeof(*id->qp_init));
	if (!id->qp_init)
		return soft_cm_fail(ENOMEM);
	*id->qp_init = *attr;
	id->qp_init->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	return 0;
}

static int make_active(struct soft_cm_id *id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		       struct ibv_qp_init_attr *attr)
{
	if (rdma_resolve_addr(&id->pub, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS) ||
	    rdma_resolve_route(&id->pub, RESOLVE_MS))
		return -1;
	if (!attr)
		return 0;
	attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	return rdma_create_qp(&id->pub, pd, attr);
}

int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr)
{
	struct soft_cm_id *made;
	int r = soft_cm_id_create(NULL, &made, NULL, (enum rdma_port_space)res->ai_port_space,
				  (enum ibv_qp_type)res->ai_qp_type);

	if (r)
		return soft_cm_fail(r);
	r = res->ai_flags & RAI_PASSIVE ? make_passive(made, res, pd, attr)
					: make_active(made, res, pd, attr);
	if (r) {
		r = errno;
		rdma_destroy_ep(&made->pub);
		return soft_cm_fail(r);
	}
	*id = &made->pub;
	return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	(void)rdma_destroy_id(id);
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct soft_cm_id *mine = soft_cm_of(listen);
	struct rdma_cm_event *event;
	int r;

	if (!mine->sync)
		return soft_cm_fail(EINVAL);
	forget_event(listen);
	if (rdma_get_cm_event(listen->channel, &event))
		return -1;
	r = verdict(event);
	if (!r && event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		r = EINVAL;
	if (!r && mine->qp_init) {
		struct ibv_qp_init_attr attr = *mine->qp_init;

		if (rdma_create_qp(event->id, listen->pd, &attr))
			r = errno;
	}
	if (r) {
		listen->event = event;
		return soft_cm_fail(r);
	}
	*id = event->id;
	(*id)->event = event;
	return 0;
}
