/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect, reset, close. connect takes what the peer's open (or reset) answered; reset throws away
 * what is outstanding and answers new "addresses": both ends reset, then both connect.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "bench/agent_look.h"
#include "base/banned.h"

enum { CONNECT_SECONDS = 5, CM_SECONDS = 60 };

static int connect_tcp(struct pp_agent *a, const struct pp_connect_command *c, struct pp_error *err)
{
	pp_ns deadline = pp_clock_monotonic() + CONNECT_SECONDS * PP_SECOND;

	if (a->end)
		return pp_tcp_accept(&a->tcp, deadline, pp_agent_left, err);
	if (!c->tcp_address || !c->tcp_port || !c->nonce || strlen(c->nonce) != PP_TCP_NONCE)
		return pp_error_set(err, -EBADMSG, "connect: the peer's address is missing");
	return pp_tcp_connect(*a->address ? a->address : NULL, c->tcp_address,
			      (uint16_t)c->tcp_port, c->nonce, deadline, pp_agent_left, &a->tcp,
			      err);
}

int pp_agent_cm_listen(struct pp_agent *a, struct pp_error *err)
{
	struct pp_cm_options options = {.address = a->cm_address,
					.deadline = pp_clock_monotonic() + CM_SECONDS * PP_SECOND,
					.stopped = pp_agent_left};
	char ipoib[PP_LOOK_ADDRESS] = "";
	uint64_t nonce;
	int r;

	if (!a->end)
		return 0;
	if (*a->netdev && pp_look_address(a->netdev, ipoib))
		ipoib[0] = '\0';
	r = pp_cm_address(&a->endpoint, ipoib, a->cm_address, err);
	if (r)
		return r;
	if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		return pp_error_set(err, -EIO, "no random bytes");
	options.nonce = nonce & INT64_MAX;
	r = pp_cm_listen(&a->endpoint, &options, &a->cm, &a->cm_port, err);
	a->cm_nonce = (int64_t)options.nonce;
	return r;
}

void pp_agent_write_cm(const struct pp_agent *a, struct pp_json *out)
{
	if (!a->cm || !a->end)
		return;
	pp_json_str(out, "cm_address", a->cm_address);
	pp_json_i64(out, "cm_port", a->cm_port);
	pp_json_i64(out, "cm_nonce", a->cm_nonce);
}

static int connect_cm(struct pp_agent *a, const struct pp_connect_command *c, struct pp_error *err)
{
	const struct pp_cm_options options = {.address = c->cm_address,
					      .port = (uint16_t)c->cm_port,
					      .nonce = (uint64_t)c->cm_nonce,
					      .deadline = pp_clock_monotonic() +
							  CONNECT_SECONDS * PP_SECOND,
					      .stopped = pp_agent_left};

	if (a->end)
		return pp_cm_accept(a->cm, err);
	if (!c->cm_address || !c->cm_port)
		return pp_error_set(err, -EBADMSG,
				    "connect: the peer does not say where it listens");
	return pp_cm_connect(&a->endpoint, &options, &a->cm, err);
}

static int connect_endpoint(struct pp_agent *a, const struct pp_connect_command *c,
			    struct pp_error *err)
{
	int r = 0;

	if (a->by_cm)
		return connect_cm(a, c, err);
	if (c->n_addresses != a->endpoint.options.qps)
		return pp_error_set(err, -EPROTO, "%u queue pairs here, %u at the peer",
				    a->endpoint.options.qps, c->n_addresses);
	for (unsigned int i = 0; !r && i < c->n_addresses; i++)
		r = pp_endpoint_connect(&a->endpoint, i, &c->address[i], err);
	return r;
}

int pp_agent_connect(struct pp_agent *a, const struct pp_command *c, struct pp_json *out,
		     struct pp_error *err)
{
	const struct pp_connect_command *to = &c->connect;
	int r;

	if (!a->open)
		return pp_error_set(err, -EINVAL, "connect: nothing is open");
	if (!to->n_parts)
		return pp_error_set(err, -EBADMSG, "connect: the peer's keys are missing");
	memcpy(a->peer, to->part, sizeof(a->peer));
	a->n_peer = to->n_parts;
	a->slots = (struct pp_slots){0};
	r = a->rung == PP_RUNG_TCP ? connect_tcp(a, to, err) : connect_endpoint(a, to, err);
	if (!r && a->staged)
		pp_staged_set_peer(a->staged, (uint64_t)to->bounce, (uint32_t)to->bounce_key);
	if (!r && a->has_endpoint)
		pp_json_i64(out, "mtu", a->endpoint.options.mtu);
	return r;
}

int pp_agent_reset(struct pp_agent *a, const struct pp_command *c, struct pp_json *out,
		   struct pp_error *err)
{
	int r = 0;

	(void)c;
	if (!a->has_endpoint)
		return pp_error_set(err, -EINVAL, "reset: no endpoint is open");
	a->cm = pp_cm_free(a->cm);
	for (unsigned int i = 0; !r && i < a->endpoint.options.qps; i++)
		r = pp_endpoint_reset(&a->endpoint, i, err);
	if (r)
		return r;
	a->ready = false;
	r = a->by_cm ? pp_agent_cm_listen(a, err) : 0;
	if (r)
		return r;
	pp_agent_write_addresses(a, out);
	pp_agent_write_cm(a, out);
	return 0;
}

void pp_agent_shut(struct pp_agent *a)
{
	struct pp_error ignored;

	a->watch = pp_gpu_watch_free(a->watch);
	a->staged = pp_staged_free(a->staged);
	if (a->has_restricted)
		(void)pp_unregister(&a->restricted, &ignored);
	if (a->has_registered)
		(void)pp_unregister(&a->registered, &ignored);
	/* queue pairs end before the memory does: nothing arrives any more */
	a->cm = pp_cm_free(a->cm);
	if (a->has_endpoint)
		pp_endpoint_close(&a->endpoint);
	a->memory = a->memory ? pp_memory_free(a->memory) : NULL;
	pp_tcp_close(&a->tcp);
	a->has_restricted = a->has_registered = a->has_endpoint = a->open = a->ready = false;
	a->n_own = a->n_peer = 0;
}

int pp_agent_close(struct pp_agent *a, const struct pp_command *c, struct pp_json *out,
		   struct pp_error *err)
{
	int r = 0;

	(void)c;
	(void)out;
	if (a->has_registered) {
		r = pp_unregister(&a->registered, err);
		a->call = r ? "ibv_dereg_mr" : NULL;
		a->has_registered = false;
	}
	pp_agent_shut(a);
	return r;
}

int pp_agent_link(struct pp_agent *a, const struct pp_command *c, struct pp_json *out,
		  struct pp_error *err)
{
	(void)c;
	(void)err;
	if (a->open && a->rung != PP_RUNG_TCP && a->verbs_loaded &&
	    pp_verbs_are_software(&a->verbs) && a->options && a->options->link)
		pp_json_str(out, "link", a->options->link(getpid()));
	return 0;
}
