/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every port has counted: flaps, errors, retransmits, out of sequence, discards, PFC, CNPs.
 *
 * One look is the sum of the counters that mean the same, whatever their driver calls them: mlx5
 * (Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst), the management
 * class of InfiniBand (IBTA 1.5, 16.1.3.5), rdma_rxe, bnxt_re and efa by their sources. Only what a
 * driver has is read; which that is, is listed once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "daemon/ports.h"
#include "daemon/watch.h"
#include "node/dcb.h"
#include "node/ethtool.h"
#include "base/banned.h"

static const struct {
	enum pp_signal_kind kind;
	const char *name;
} counted[] = {
	{PP_SIGNAL_LINK_FLAPS, "link_downed"},
	{PP_SIGNAL_PORT_ERRORS, "symbol_error"},
	{PP_SIGNAL_PORT_ERRORS, "port_rcv_errors"},
	{PP_SIGNAL_PORT_ERRORS, "port_rcv_remote_physical_errors"},
	{PP_SIGNAL_PORT_ERRORS, "local_link_integrity_errors"},
	{PP_SIGNAL_PORT_ERRORS, "link_error_recovery"},
	{PP_SIGNAL_PORT_ERRORS, "excessive_buffer_overrun_errors"},
	{PP_SIGNAL_PORT_ERRORS, "port_xmit_constraint_errors"},
	{PP_SIGNAL_PORT_ERRORS, "port_rcv_constraint_errors"},
	{PP_SIGNAL_PORT_ERRORS, "rx_icrc_encapsulated"},
	{PP_SIGNAL_RETRANSMITS, "local_ack_timeout_err"},
	{PP_SIGNAL_RETRANSMITS, "packet_seq_err"},
	{PP_SIGNAL_RETRANSMITS, "rnr_nak_retry_err"},
	{PP_SIGNAL_RETRANSMITS, "roce_adp_retrans"},
	{PP_SIGNAL_RETRANSMITS, "completer_retry_err"}, /* rdma_rxe */
	{PP_SIGNAL_RETRANSMITS, "rcvd_seq_err"},
	{PP_SIGNAL_RETRANSMITS, "to_retransmits"}, /* bnxt_re */
	{PP_SIGNAL_RETRANSMITS, "seq_err_naks_rcvd"},
	{PP_SIGNAL_RETRANSMITS, "retrans_pkts"}, /* efa */
	{PP_SIGNAL_OUT_OF_SEQUENCE, "out_of_sequence"},
	{PP_SIGNAL_OUT_OF_SEQUENCE, "out_of_seq_request"}, /* rdma_rxe */
	{PP_SIGNAL_OUT_OF_SEQUENCE, "res_oos_drop_count"}, /* bnxt_re */
	{PP_SIGNAL_DISCARDS, "port_xmit_discards"},
	{PP_SIGNAL_DISCARDS, "out_of_buffer"},
	{PP_SIGNAL_DISCARDS, "rx_roce_discards"}, /* bnxt_re */
	{PP_SIGNAL_DISCARDS, "rx_drops"},	  /* efa */
	{PP_SIGNAL_CNPS, "np_cnp_sent"},
	{PP_SIGNAL_CNPS, "rp_cnp_handled"},
	{PP_SIGNAL_CNPS, "rx_cnp_pkts"}, /* bnxt_re */
	{PP_SIGNAL_CNPS, "tx_cnp_pkts"},
};

/* Of the port's interface, by ethtool. */
static const struct {
	enum pp_signal_kind kind;
	const char *pattern;
} by_interface[] = {
	{PP_SIGNAL_DISCARDS, "rx_discards_phy"},
	{PP_SIGNAL_PAUSES, "rx_prio#_pause"},
	{PP_SIGNAL_PAUSES, "tx_prio#_pause"},
};

static const char *const dirs[] = {"hw_counters", "counters"};
enum { VALUE = 64, NOWHERE = PP_ARRAY_LEN(dirs), RAW = PP_LOOK_TEXT };

/* Where a port has each counter: index into dirs, or NOWHERE. */
struct place {
	unsigned char in[PP_ARRAY_LEN(counted)];
};

struct counters {
	struct pp_watch_ports ports;
	struct place *place; /* owned; one a port */
	unsigned int generation;
};

struct sum {
	double total;
	unsigned int n;
	bool named;    /* a recording has the name of one, and no number */
	char raw[RAW]; /* the counters that are not 0 */
	char why[PP_LOOK_TEXT];
};

static bool holds(const struct pp_names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strcmp(names->name[i], name))
			return true;
	return false;
}

static void find_places(struct pp_source *s, const struct pp_watch_port *p, struct place *ret)
{
	struct pp_names names;
	char path[PP_PATH_MAX];

	memset(ret->in, NOWHERE, sizeof(ret->in));
	for (size_t d = 0; d < PP_ARRAY_LEN(dirs); d++) {
		if (p->gone || pp_path_join(p->dir, dirs[d], path) ||
		    pp_source_list(s, path, &names))
			continue;
		for (size_t i = 0; i < PP_ARRAY_LEN(counted); i++)
			if (ret->in[i] == NOWHERE && holds(&names, counted[i].name))
				ret->in[i] = (unsigned char)d;
		pp_names_done(&names);
	}
}

static int read_ports(struct pp_source *s, struct counters *c)
{
	struct place *grown;
	int r = pp_watch_ports_read(s, &c->ports);

	if (r || c->generation == c->ports.generation || !c->ports.n)
		return r;
	grown = reallocarray(c->place, c->ports.n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	c->place = grown;
	for (size_t i = 0; i < c->ports.n; i++)
		find_places(s, &c->ports.port[i], &c->place[i]);
	c->generation = c->ports.generation;
	return 0;
}

static void count(struct sum *sum, const char *name, uint64_t value)
{
	size_t at = strlen(sum->raw);

	sum->total += (double)value;
	sum->n++;
	if (value)
		(void)snprintf(sum->raw + at, sizeof(sum->raw) - at, "%s%s %llu", at ? ", " : "",
			       name, (unsigned long long)value);
}

static void add_file(struct pp_source *s, const struct pp_watch_port *p, const char *dir,
		     const char *name, struct sum *sum)
{
	char path[PP_PATH_MAX], text[VALUE];
	uint64_t value;
	int r = (size_t)snprintf(path, sizeof(path), "%s/%s/%s", p->dir, dir, name) >= sizeof(path)
			? -ENAMETOOLONG
			: pp_source_text(s, path, text, sizeof(text));

	if (!r)
		r = pp_parse_u64(text, 0, UINT64_MAX, &value);
	if (!r)
		count(sum, name, value);
	else
		(void)snprintf(sum->why, sizeof(sum->why), "%.400s: %s", path,
			       r == -EINVAL ? "not a number" : pp_source_why(r));
	/* What was listed and not read stands in a recording as what need not be a file. */
	sum->named |= pp_source_mode(s) == PP_SOURCE_REPLAY && (r == -EISDIR || r == -ENODATA);
}

/* How often the interface lost its carrier; *ret_known false where this kernel does not count. */
static bool carrier(struct pp_source *s, const struct pp_watch_port *p, struct sum *sum)
{
	char path[PP_PATH_MAX], text[VALUE];
	uint64_t value;

	if (!*p->netdev ||
	    (size_t)snprintf(path, sizeof(path), "/sys/class/net/%s/carrier_down_count",
			     p->netdev) >= sizeof(path) ||
	    pp_source_text(s, path, text, sizeof(text)) ||
	    pp_parse_u64(text, 0, UINT64_MAX, &value))
		return false;
	count(sum, "carrier_down_count", value);
	return true;
}

/* What the interface itself counts is an object of its own: it may fail to answer by itself. */
static int look_at_interface(const struct pp_answer *a, const struct pp_watch_port *p,
			     enum pp_signal_kind kind, struct pp_looks *into)
{
	json_t *stats = json_object_get(json_object_get(a->data, p->netdev), "stats"), *value;
	char object[sizeof(p->object) + 16];
	struct sum sum = {0};
	const char *name;

	(void)snprintf(object, sizeof(object), "%s interface", p->object);
	json_object_foreach(stats, name, value)
	{
		for (size_t i = 0; i < PP_ARRAY_LEN(by_interface); i++)
			if (by_interface[i].kind == kind && json_is_integer(value) &&
			    json_integer_value(value) >= 0 &&
			    pp_ethtool_match(by_interface[i].pattern, name))
				count(&sum, name, (uint64_t)json_integer_value(value));
	}
	if (sum.n)
		return pp_look_number(into, kind, object, sum.raw, sum.total);
	return pp_look_unknown(into, kind, object, "ethtool of %s: %s",
			       *p->netdev ? p->netdev : "its interface, which is not known",
			       a->answered ? "the driver has no such statistics" : a->detail);
}

static int look_at(struct pp_watch_context *at, const struct pp_watch_port *p,
		   const struct place *place, enum pp_signal_kind kind, struct pp_looks *into)
{
	struct sum sum = {0};

	if (kind != PP_SIGNAL_LINK_FLAPS || !carrier(at->source, p, &sum))
		for (size_t i = 0; i < PP_ARRAY_LEN(counted); i++)
			if (counted[i].kind == kind && place->in[i] != NOWHERE)
				add_file(at->source, p, dirs[place->in[i]], counted[i].name, &sum);
	/* A sum without one of its parts would seem to have grown when that comes back. */
	if (sum.n && !*sum.why)
		return pp_look_number(into, kind, p->object, sum.raw, sum.total);
	return pp_looks_add(
		into,
		&(struct pp_look){
			.kind = kind,
			.object = p->object,
			.unknown = *sum.why ? sum.why : "its driver has no counter of this kind",
			.yet = sum.named ? PP_LOOK_THERE : PP_LOOK_NOTHING,
		});
}

static const enum pp_signal_kind kinds[] = {
	PP_SIGNAL_LINK_FLAPS,	   PP_SIGNAL_PORT_ERRORS, PP_SIGNAL_RETRANSMITS,
	PP_SIGNAL_OUT_OF_SEQUENCE, PP_SIGNAL_DISCARDS,	  PP_SIGNAL_CNPS,
};

/* Which ports there are is not known: nor then whether their counters grow. */
static int look_at_none(const char *why, struct pp_looks *into)
{
	int r = pp_look_unknown(into, PP_SIGNAL_PAUSES, "node", "%s", why);

	for (size_t k = 0; !r && k < PP_ARRAY_LEN(kinds); k++)
		r = pp_look_unknown(into, kinds[k], "node", "%s", why);
	return r;
}

/* Of one port: InfiniBand has neither PFC nor CNPs. */
static int look_at_port(struct pp_watch_context *at, const struct pp_watch_port *p,
			const struct place *place, const struct pp_answer *ethtool,
			struct pp_looks *into)
{
	int r = 0;

	for (size_t k = 0; !r && k < PP_ARRAY_LEN(kinds); k++)
		if (kinds[k] != PP_SIGNAL_CNPS || p->ethernet)
			r = look_at(at, p, place, kinds[k], into);
	if (!r && p->ethernet)
		r = look_at_interface(ethtool, p, PP_SIGNAL_DISCARDS, into);
	if (!r && p->ethernet)
		r = look_at_interface(ethtool, p, PP_SIGNAL_PAUSES, into);
	return r;
}

/* One question for the interfaces of all ports. */
static int ask(struct pp_watch_context *at, const struct counters *c, struct pp_answer *ret)
{
	const char *names[PP_WATCH_PORTS];
	struct pp_netdevs all = {.name = names};

	for (size_t i = 0; i < c->ports.n; i++)
		if (!c->ports.port[i].gone && *c->ports.port[i].netdev)
			names[all.n++] = c->ports.port[i].netdev;
	*ret = (struct pp_answer){.detail = "no port has an interface"};
	return all.n ? pp_ask_ethtool(at->source, &all, ret) : 0;
}

static int look(struct pp_watch_context *at, void **state, struct pp_looks *into,
		struct pp_error *err)
{
	struct counters *c = pp_watch_state(state, sizeof(*c));
	struct pp_answer ethtool = {0};
	int r = c ? read_ports(at->source, c) : -ENOMEM;

	if (!r && !c->ports.listed)
		r = look_at_none(c->ports.why, into);
	if (!r)
		r = ask(at, c, &ethtool);
	for (size_t i = 0; !r && i < c->ports.n; i++)
		if (!c->ports.port[i].gone)
			r = look_at_port(at, &c->ports.port[i], &c->place[i], &ethtool, into);
	pp_answer_done(&ethtool);
	return r ? pp_error_set(err, r, "watching counters: %s", pp_source_why(r)) : 0;
}

static void end(void *state)
{
	struct counters *c = state;

	if (c) {
		pp_watch_ports_done(&c->ports);
		free(c->place);
	}
	free(c);
}

const struct pp_watcher pp_watch_counters = {
	.name = "counters", .period_ms = 30000, .look = look, .end = end};
