/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end that asks for connections of librdmacm: one queue pair after the other.
 */
#include <errno.h>

#include "rdma/cm_parts.h"
#include "base/banned.h"

static int left_ms(const struct pp_cm *c)
{
	pp_ns left = (c->options.deadline - pp_clock_monotonic()) / PP_MILLISECOND;

	return left < 1 ? 1 : left > 60000 ? 60000 : (int)left;
}

/* The one event that is expected now; @ret (may be NULL): what an answer carries. */
static int expect(struct pp_cm *c, enum pp_cm_event_type type, const char *doing,
		  struct pp_cm_greeting *ret, struct pp_error *err)
{
	struct pp_cm_event *event;
	int r = pp_cm_next(c, doing, &event, err);

	if (r)
		return r;
	if (event->type != (int)type)
		r = pp_cm_refused(c, event, err);
	else if (ret && pp_cm_greeting_read(event->parameters.private_data,
					    event->parameters.private_length, ret))
		r = pp_error_set(err, -EPROTO, "-R: %s is no peerpath, or of another version",
				 c->options.address);
	(void)c->lib.ack_event(event);
	return r;
}

static int resolve(struct pp_cm *c, struct pp_cm_id *id, struct pp_error *err)
{
	int r;

	errno = 0;
	if (c->lib.resolve_address(id, NULL, (struct sockaddr *)&c->at, left_ms(c)))
		return pp_cm_fails(c, "rdma_resolve_addr", err);
	r = expect(c, PP_CM_ADDR_RESOLVED, "resolving the address", /* ret= */ NULL, err);
	if (!r)
		r = pp_cm_same_port(c, id, err);
	if (r)
		return r;
	errno = 0;
	if (c->lib.resolve_route(id, left_ms(c)))
		return pp_cm_fails(c, "rdma_resolve_route", err);
	return expect(c, PP_CM_ROUTE_RESOLVED, "resolving the route", /* ret= */ NULL, err);
}

static int connect_one(struct pp_cm *c, unsigned int qp, struct pp_error *err)
{
	const struct pp_cm_greeting greeting = {c->options.nonce, qp, c->e->options.mtu};
	struct pp_cm_parameters p = pp_cm_parameters(c, qp);
	struct pp_cm_greeting answer = {0};
	uint8_t bytes[PP_CM_GREETING];
	int r;

	errno = 0;
	if (c->lib.create_id(c->channel, &c->id[qp], c, PP_CM_PS_TCP))
		return pp_cm_fails(c, "rdma_create_id", err);
	r = resolve(c, c->id[qp], err);
	if (r)
		return r;
	pp_cm_greet(bytes, &greeting);
	p.private_data = bytes;
	p.private_length = sizeof(bytes);
	errno = 0;
	if (c->lib.connect(c->id[qp], &p))
		return pp_cm_fails(c, "rdma_connect", err);
	r = expect(c, PP_CM_CONNECT_RESPONSE, "connecting", &answer, err);
	if (!r)
		r = pp_cm_to_rts(c, c->id[qp], qp, answer.mtu, err);
	if (r)
		return r;
	errno = 0;
	if (c->lib.establish(c->id[qp]))
		return pp_cm_fails(c, "rdma_establish", err);
	c->established[qp] = true;
	return 0;
}

int pp_cm_connect(struct pp_endpoint *e, const struct pp_cm_options *options, struct pp_cm **ret,
		  struct pp_error *err)
{
	struct pp_cm *c = NULL;
	int r = pp_cm_new(e, options, &c, err);

	for (unsigned int q = 0; !r && q < e->options.qps; q++)
		r = connect_one(c, q, err);
	if (r) {
		pp_cm_free(c);
		return r;
	}
	*ret = c;
	return 0;
}
