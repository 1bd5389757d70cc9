/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a port for traffic, and closing it. What was asked for is refused with the reason where
 * the port cannot give it: nothing is altered silently.
 */
#include "rdma/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "rdma/endpoint_parts.h"
#include "rdma/gid_table.h"
#include "base/banned.h"

enum { DEPTH = 128, TIMEOUT = 14, RETRIES = 7, TIMEOUT_MOST = 31, SL_MOST = 15 };

static int check_options(const struct pp_endpoint_options *o, struct pp_error *err)
{
	const struct {
		const char *what;
		int64_t value, most;
	} limits[] = {
		{"queue pairs", o->qps, PP_ENDPOINT_QPS},
		{"depth", o->depth, PP_ENDPOINT_DEPTH},
		{"traffic class", o->traffic_class, UINT8_MAX},
		{"service level", o->sl, SL_MOST},
		{"P_Key index", o->pkey_index, UINT16_MAX},
		{"timeout", o->timeout, TIMEOUT_MOST},
		{"retries", o->retries, RETRIES},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(limits); i++)
		if (limits[i].value < 0 || limits[i].value > limits[i].most)
			return pp_error_set(err, -EINVAL, "%s: %lld is not within 0 to %lld",
					    limits[i].what, (long long)limits[i].value,
					    (long long)limits[i].most);
	if (o->mtu && !pp_endpoint_mtu(o->mtu))
		return pp_error_set(err, -EINVAL, "MTU %u: not 256, 512, 1024, 2048 or 4096",
				    o->mtu);
	if (!o->device)
		return pp_error_set(err, -EINVAL, "no device was named");
	return 0;
}

static struct pp_endpoint_options completed(const struct pp_endpoint_options *options)
{
	struct pp_endpoint_options o = *options;

	o.port = o.port ? o.port : 1;
	o.qps = o.qps ? o.qps : 1;
	o.depth = o.depth ? o.depth : DEPTH;
	o.timeout = o.timeout ? o.timeout : TIMEOUT;
	o.retries = o.retries ? o.retries : RETRIES;
	return o;
}

/* ── device ── */

static int no_such_device(const struct pp_verbs *v, struct ibv_device **list, const char *name,
			  struct pp_error *err)
{
	size_t used;

	(void)pp_error_set(err, -ENODEV, "no RDMA device '%s': there %s", name,
			   list[0] ? "are" : "is none");
	for (size_t i = 0; list[i]; i++) {
		const char *its = v->get_device_name(list[i]);

		used = strlen(err->text);
		(void)snprintf(err->text + used, sizeof(err->text) - used, "%s %s", i ? "," : "",
			       its ? its : "?");
	}
	return -ENODEV;
}

static int open_listed(struct pp_endpoint *e, struct ibv_device **list, struct pp_error *err)
{
	const char *name = e->options.device;
	struct ibv_device *device = pp_verbs_find(e->verbs, list, name);

	if (!device)
		return no_such_device(e->verbs, list, name, err);
	errno = 0;
	e->context = e->verbs->open_device(device);
	if (!e->context)
		return pp_endpoint_fails(name, "ibv_open_device", errno, err);
	name = e->verbs->get_device_name(e->context->device);
	if (name)
		e->options.device = name;
	return 0;
}

static int open_device(struct pp_endpoint *e, struct pp_error *err)
{
	struct ibv_device **list;
	int n = 0, r;

	errno = 0;
	list = e->verbs->get_device_list(&n);
	if (!list)
		return pp_endpoint_fails(e->options.device, "ibv_get_device_list", errno, err);
	r = open_listed(e, list, err);
	e->verbs->free_device_list(list);
	return r;
}

/* ── port ── */

static const char *state_text(enum ibv_port_state state)
{
	static const char *const names[] = {
		[IBV_PORT_NOP] = "in no state",
		[IBV_PORT_DOWN] = "DOWN: is the cable in, is the netdev up ('ip link')?",
		[IBV_PORT_INIT] = "INIT: no subnet manager has configured it ('sminfo')",
		[IBV_PORT_ARMED] = "ARMED: the subnet manager has not activated it",
		[IBV_PORT_ACTIVE] = "ACTIVE",
		[IBV_PORT_ACTIVE_DEFER] = "ACTIVE_DEFER: its link is being recovered",
	};

	return (unsigned int)state < PP_ARRAY_LEN(names) ? names[state] : "in an unknown state";
}

static int check_mtu(struct pp_endpoint *e, struct pp_error *err)
{
	unsigned int active = (unsigned int)pp_verbs_mtu(e->port.active_mtu);

	if (!e->options.mtu)
		e->options.mtu = active;
	if (!active)
		return pp_error_set(err, -EINVAL, "%s port %u has no MTU", e->options.device,
				    e->options.port);
	if (e->options.mtu > active)
		return pp_error_set(err, -EINVAL,
				    "MTU %u is larger than that of %s port %u, which is %u: ask "
				    "for less%s",
				    e->options.mtu, e->options.device, e->options.port, active,
				    e->port.link_layer == IBV_LINK_LAYER_ETHERNET
					    ? ", or raise the netdev's MTU (4200 gives 4096)"
					    : "");
	return 0;
}

static int look_at_port(struct pp_endpoint *e, struct pp_error *err)
{
	const struct pp_endpoint_options *o = &e->options;
	int r;

	errno = 0;
	r = e->verbs->query_device(e->context, &e->device);
	if (r)
		return pp_endpoint_fails(o->device, "ibv_query_device", r > 0 ? r : errno, err);
	if (o->port > e->device.phys_port_cnt)
		return pp_error_set(err, -EINVAL, "%s has no port %u: it has %u", o->device,
				    o->port, e->device.phys_port_cnt);
	errno = 0;
	r = e->verbs->query_port(e->context, o->port, &e->port);
	if (r)
		return pp_endpoint_fails(o->device, "ibv_query_port", r > 0 ? r : errno, err);
	if (e->port.state != IBV_PORT_ACTIVE)
		return pp_error_set(err, -ENETDOWN, "%s port %u is %s", o->device, o->port,
				    state_text(e->port.state));
	return check_mtu(e, err);
}

static int choose_gid(struct pp_endpoint *e, struct pp_error *err)
{
	bool ethernet = e->port.link_layer == IBV_LINK_LAYER_ETHERNET;
	unsigned int length = e->port.gid_tbl_len > 0 ? (unsigned int)e->port.gid_tbl_len : 0;
	const struct pp_gid_row *row;
	struct pp_gid_table table;
	char text[320];
	int r = pp_gid_table_read(e->verbs, e->context, e->options.port, length, &table);

	if (r)
		return pp_endpoint_fails(e->options.device, "ibv_query_gid", r, err);
	e->grh = e->options.gid_index >= 0;
	row = e->grh ? pp_gid_table_at(&table, (uint32_t)e->options.gid_index)
		     : pp_gid_table_choose(&table, ethernet);
	if (!row && e->grh)
		return pp_error_set(err, -ENOENT, "%s port %u has no GID %d; it has %s",
				    e->options.device, e->options.port, e->options.gid_index,
				    table.n ? pp_gid_table_text(&table, text, sizeof(text))
					    : "none");
	if (!row && ethernet)
		return pp_error_set(err, -EADDRNOTAVAIL,
				    "%s port %u has no GID: give its netdev an address",
				    e->options.device, e->options.port);
	e->options.gid_index = row ? (int)row->index : 0;
	if (row)
		memcpy(e->gid.raw, row->gid.raw, sizeof(e->gid.raw));
	(void)snprintf(e->gid_type, sizeof(e->gid_type), "%s",
		       ethernet && row ? pp_gid_type_name(row->type) : "IB");
	return 0;
}

/* ── objects ── */

static int check_limits(struct pp_endpoint *e, struct pp_error *err)
{
	const struct ibv_device_attr *d = &e->device;
	unsigned int most = d->max_qp_wr > 0 ? (unsigned int)d->max_qp_wr : 0;

	/* Twice, so that a receiver that is behind by a whole depth stops nobody. */
	e->receives = 2 * e->options.depth;
	if (e->receives > most)
		return pp_error_set(err, -EINVAL,
				    "depth %u needs %u receive requests, and a queue pair of %s "
				    "has %u at most",
				    e->options.depth, e->receives, e->options.device, most);
	if (e->options.qps > (unsigned int)(d->max_qp > 0 ? d->max_qp : 0))
		return pp_error_set(err, -EINVAL, "%u queue pairs: %s has %d", e->options.qps,
				    e->options.device, d->max_qp);
	if ((uint64_t)e->options.qps * (e->options.depth + e->receives) >
	    (uint64_t)(d->max_cqe > 0 ? d->max_cqe : 0))
		return pp_error_set(err, -EINVAL,
				    "%u queue pairs of depth %u need %u completions, and a queue "
				    "of %s holds %d: lower one of the two",
				    e->options.qps, e->options.depth,
				    e->options.qps * (e->options.depth + e->receives),
				    e->options.device, d->max_cqe);
	return 0;
}

static int make_objects(struct pp_endpoint *e, struct pp_error *err)
{
	/* Every request may end in a completion: what is flushed after an error always does. */
	unsigned int cqe = e->options.qps * (e->options.depth + e->receives);
	char call[64];

	errno = 0;
	e->pd = e->verbs->alloc_pd(e->context);
	if (!e->pd)
		return pp_endpoint_fails(e->options.device, "ibv_alloc_pd", errno, err);
	errno = 0;
	e->cq = e->verbs->create_cq(e->context, (int)cqe, NULL, NULL, 0);
	if (!e->cq) {
		(void)snprintf(call, sizeof(call), "ibv_create_cq (%u completions)", cqe);
		return pp_endpoint_fails(e->options.device, call, errno, err);
	}
	return pp_endpoint_make_qps(e, err);
}

int pp_endpoint_open(const struct pp_verbs *v, const struct pp_endpoint_options *options,
		     struct pp_endpoint *ret, struct pp_error *err)
{
	struct pp_endpoint e = {.verbs = v, .options = completed(options)};
	int r = check_options(&e.options, err);

	if (!r)
		r = open_device(&e, err);
	if (!r)
		r = look_at_port(&e, err);
	if (!r)
		r = choose_gid(&e, err);
	if (!r)
		r = check_limits(&e, err);
	if (!r)
		r = make_objects(&e, err);
	if (r) {
		pp_endpoint_close(&e);
		return r;
	}
	*ret = e;
	return 0;
}

void pp_endpoint_close(struct pp_endpoint *e)
{
	const struct pp_verbs *v = e->verbs;

	for (unsigned int i = PP_ENDPOINT_QPS; i-- > 0;)
		if (e->qp[i])
			(void)v->destroy_qp(e->qp[i]);
	if (e->cq)
		(void)v->destroy_cq(e->cq);
	if (e->pd)
		(void)v->dealloc_pd(e->pd);
	if (e->context)
		(void)v->close_device(e->context);
	*e = (struct pp_endpoint){.verbs = v};
}
