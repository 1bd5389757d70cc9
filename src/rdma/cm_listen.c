/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end that accepts connections of librdmacm.
 */
#include <arpa/inet.h>
#include <errno.h>

#include "rdma/cm_parts.h"
#include "base/banned.h"

int pp_cm_listen(struct pp_endpoint *e, const struct pp_cm_options *options, struct pp_cm **ret,
		 uint16_t *ret_port, struct pp_error *err)
{
	struct pp_cm *c;
	int r = pp_cm_new(e, options, &c, err);

	if (r)
		return r;
	errno = 0;
	if (c->lib.create_id(c->channel, &c->listener, c, PP_CM_PS_TCP))
		r = pp_cm_fails(c, "rdma_create_id", err);
	else if (c->lib.bind(c->listener, (struct sockaddr *)&c->at))
		r = pp_cm_fails(c, "rdma_bind_addr", err);
	else if (c->listener->verbs) /* else a request tells: a loopback address is all devices' */
		r = pp_cm_same_port(c, c->listener, err);
	if (!r && c->lib.listen(c->listener, (int)e->options.qps))
		r = pp_cm_fails(c, "rdma_listen", err);
	if (r) {
		pp_cm_free(c);
		return r;
	}
	*ret = c;
	*ret_port = ntohs(c->lib.source_port(c->listener));
	return 0;
}

/* Takes @id over; 0 also when the request was none of this run's. */
static int take(struct pp_cm *c, struct pp_cm_id *id, const struct pp_cm_greeting *g,
		struct pp_error *err)
{
	const struct pp_cm_greeting answer = {c->options.nonce, g->qp, c->e->options.mtu};
	uint8_t bytes[PP_CM_GREETING];
	struct pp_cm_parameters p;
	int r;

	if (g->nonce != c->options.nonce || g->qp >= c->e->options.qps || c->id[g->qp]) {
		(void)c->lib.reject(id, NULL, 0);
		(void)c->lib.destroy_id(id);
		return 0;
	}
	c->id[g->qp] = id;
	r = pp_cm_same_port(c, id, err);
	if (!r)
		r = pp_cm_to_rts(c, id, g->qp, g->mtu, err);
	if (r) {
		(void)c->lib.reject(id, NULL, 0);
		return r;
	}
	p = pp_cm_parameters(c, g->qp);
	pp_cm_greet(bytes, &answer);
	p.private_data = bytes;
	p.private_length = sizeof(bytes);
	errno = 0;
	return c->lib.accept(id, &p) ? pp_cm_fails(c, "rdma_accept", err) : 0;
}

static int index_of(const struct pp_cm *c, const struct pp_cm_id *id)
{
	for (unsigned int q = 0; q < c->e->options.qps; q++)
		if (c->id[q] == id)
			return (int)q;
	return -1;
}

static int one_event(struct pp_cm *c, unsigned int *n, struct pp_error *err)
{
	/* A greeting that cannot be read is of no queue pair. */
	struct pp_cm_greeting g = {.qp = UINT32_MAX};
	struct pp_cm_event *event;
	struct pp_cm_id *id;
	int r = pp_cm_next(c, "accepting", &event, err), type, q;

	if (r)
		return r;
	id = event->id;
	type = event->type;
	if (type == PP_CM_CONNECT_REQUEST)
		(void)pp_cm_greeting_read(event->parameters.private_data,
					  event->parameters.private_length, &g);
	q = index_of(c, id);
	if (type != PP_CM_CONNECT_REQUEST && type != PP_CM_ESTABLISHED && q >= 0)
		r = pp_cm_refused(c, event, err);
	/* Before an id can be destroyed its events are acknowledged. */
	(void)c->lib.ack_event(event);
	if (type == PP_CM_CONNECT_REQUEST)
		return take(c, id, &g, err);
	if (type == PP_CM_ESTABLISHED && q >= 0 && !c->established[q]) {
		c->established[q] = true;
		++*n;
	}
	return r;
}

int pp_cm_accept(struct pp_cm *c, struct pp_error *err)
{
	unsigned int n = 0;
	int r = 0;

	while (!r && n < c->e->options.qps)
		r = one_event(c, &n, err);
	return r;
}
