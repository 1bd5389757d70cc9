/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rungs of a pair: an agent at each end, opened, connected; and what they said of themselves.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/coordinator_state.h"
#include "bench/slots.h"
#include "base/banned.h"

enum { ATTEMPTS_MOST = 128 };

static const pp_ns OPEN = 90 * PP_SECOND, CONNECT = 30 * PP_SECOND, CLOSE = 2 * PP_SECOND;

static enum pp_memory_kind kind_of(const struct pp_climb *c, const struct pp_climber *m,
				   enum pp_rung r)
{
	if (r == PP_RUNG_TCP || r == PP_RUNG_HOST)
		return PP_MEMORY_HOST;
	return m->sim ? PP_MEMORY_SIM : c->o->gpu_memory;
}

/* Why a rung cannot be on this pair; NULL: it can be tried. */
static const char *missing(const struct pp_climb *c, const struct pp_climber *m, enum pp_rung r)
{
	const struct pp_bench_pair *p = m->pair;
	bool simulated = p->end[0].simulated || p->end[1].simulated;

	if (r == PP_RUNG_TCP || r == PP_RUNG_HOST)
		return NULL;
	if (m->no_gpu && !m->sim)
		return m->no_gpu;
	if (r == PP_RUNG_PEERMEM && simulated)
		return "the software device has no peer memory";
	if (r == PP_RUNG_DATA_DIRECT && simulated)
		return "the software device has no data-direct function";
	for (unsigned int e = 0; e < 2; e++)
		if (r == PP_RUNG_PEERMEM && m->peermem_absent[e])
			return pp_arena_printf(c->b->arena,
					       "nvidia-peermem is not loaded on node %s",
					       c->b->nodes[p->end[e].node].id);
	return NULL;
}

bool pp_rung_is_open(const struct pp_climber *m, enum pp_rung r)
{
	return m->seat[r][0].open && m->seat[r][1].open;
}

void pp_rung_fail(struct pp_climb *c, struct pp_climber *m, enum pp_rung r,
		  const struct pp_order *o, unsigned int end)
{
	struct pp_bench_rung *rung = &m->pair->rung[r];

	rung->state = PP_BENCH_FAILED;
	rung->end = end;
	rung->why = pp_arena_printf(c->b->arena, "node %s: %s",
				    c->b->nodes[m->pair->end[end].node].id, o->why);
	rung->error = pp_climb_code(o->answer, "error");
	rung->status = pp_climb_code(o->answer, "status");
	rung->call = pp_climb_text(c, o->answer, "call");
	pp_seat_leave(&m->seat[r][0]);
	pp_seat_leave(&m->seat[r][1]);
}

/* What the agent tried, of both ends one behind the other. */
static void take_attempts(struct pp_climb *c, struct pp_bench_rung *rung, unsigned int end,
			  const json_t *answer)
{
	const json_t *list = json_object_get(answer, "attempts"), *a;
	size_t n = json_array_size(list), i;
	struct pp_bench_attempt *all;

	if (!n || n > ATTEMPTS_MOST)
		return;
	all = pp_arena_array(c->b->arena, rung->n_attempts + n, sizeof(*all));
	if (!all)
		return;
	if (rung->n_attempts)
		memcpy(all, rung->attempts, rung->n_attempts * sizeof(*all));
	json_array_foreach(list, i, a)
	{
		all[rung->n_attempts++] = (struct pp_bench_attempt){
			.end = end,
			.how = pp_climb_text(c, a, "how"),
			.call = pp_climb_text(c, a, "call"),
			.arguments = pp_climb_text(c, a, "arguments"),
			.error = pp_climb_code(a, "error"),
			.cuda = json_is_true(json_object_get(a, "cuda")),
			.took = (pp_ns)pp_climb_amount(a, "took_ns"),
			.bar1_before = pp_climb_number(a, "bar1_before", -1),
			.bar1_after = pp_climb_number(a, "bar1_after", -1)};
	}
	rung->attempts = all;
}

/* Of the port, as its endpoint found it; every rung but TCP says the same. */
static void take_end(struct pp_climb *c, struct pp_climber *m, unsigned int e, const json_t *answer)
{
	struct pp_bench_end *end = &m->pair->end[e];
	const char *layer = pp_climb_text(c, answer, "link_layer");
	struct in6_addr gid;

	end->cpus = pp_climb_text(c, answer, "cpus");
	if (!json_object_get(answer, "gid"))
		return;
	end->gid = pp_climb_text(c, answer, "gid");
	end->gid_type = pp_climb_text(c, answer, "gid_type");
	end->gid_index = pp_climb_code(answer, "gid_index");
	end->mtu = (unsigned int)pp_climb_code(answer, "mtu");
	end->link_layer = layer ? layer : end->link_layer;
	/* without an interface the GID of RoCE v2 is the address that there is */
	if (m->address[e] || !end->gid || inet_pton(AF_INET6, end->gid, &gid) != 1 ||
	    strncmp(end->gid_type ? end->gid_type : "", "RoCE", 4) != 0)
		return;
	m->address[e] = IN6_IS_ADDR_V4MAPPED(&gid) ? end->gid + strlen("::ffff:") : end->gid;
}

static void take_opened(struct pp_climb *c, struct pp_climber *m, enum pp_rung r, unsigned int e,
			const json_t *answer)
{
	struct pp_bench_rung *rung = &m->pair->rung[r];
	const char *offset = pp_climb_text(c, answer, "offset"),
		   *flush = pp_climb_text(c, answer, "flush");

	take_end(c, m, e, answer);
	rung->registration = pp_climb_text(c, answer, "registration");
	rung->flush = flush ? flush : rung->flush;
	rung->offset = offset ? offset : rung->offset;
	rung->simulated |=
		m->pair->end[e].simulated || json_is_true(json_object_get(answer, "simulated"));
}

static uint64_t memory_for(const struct pp_climb *c, enum pp_memory_kind kind)
{
	unsigned int parts = kind == PP_MEMORY_CUDA_VMM && c->o->segments ? c->o->segments : 1;
	uint64_t most = 0;

	for (unsigned int i = 0; i < c->o->n_sizes; i++)
		most = c->o->size[i] > most ? c->o->size[i] : most;
	return pp_slots_memory(most, parts);
}

static void order_open(struct pp_climb *c, struct pp_climber *m, enum pp_rung r, unsigned int e,
		       struct pp_order *o)
{
	const struct pp_bench_end *end = &m->pair->end[e];
	enum pp_memory_kind kind = kind_of(c, m, r);
	struct pp_json *j = pp_order_begin(o, &m->seat[r][e], PP_DO_OPEN);

	pp_json_str(j, "rung", pp_rung_name(r));
	pp_json_i64(j, "end", e);
	if (end->device)
		pp_json_str(j, "device", end->device);
	if (end->gpu)
		pp_json_str(j, "gpu", end->gpu);
	if (end->netdev)
		pp_json_str(j, "netdev", end->netdev);
	if (m->address[e])
		pp_json_str(j, "address", m->address[e]);
	pp_json_i64(j, "port", end->port);
	pp_json_i64(j, "gid_index", c->o->gid_index);
	pp_json_i64(j, "mtu", c->o->mtu);
	pp_json_i64(j, "traffic_class", c->o->traffic_class);
	pp_json_i64(j, "sl", c->o->sl);
	pp_json_i64(j, "pkey_index", c->o->pkey_index);
	pp_json_i64(j, "qps", r == PP_RUNG_TCP ? 1 : c->o->qps);
	pp_json_i64(j, "depth", c->o->depth);
	pp_json_str(j, "memory", pp_memory_kind_name(kind));
	pp_json_u64(j, "size", memory_for(c, kind));
	if (kind == PP_MEMORY_CUDA_VMM)
		pp_json_i64(j, "segments", c->o->segments);
	if (kind != PP_MEMORY_HOST)
		pp_json_u64(j, "inside", c->o->inside);
	pp_json_i64(j, "numa", m->numa[e]);
	if (r != PP_RUNG_TCP)
		pp_json_bool(j, "cm", c->o->cm);
}

static bool seat_both(struct pp_climb *c, struct pp_climber *m, enum pp_rung r)
{
	struct pp_error err = {0};

	for (unsigned int e = 0; e < 2; e++) {
		struct pp_seat *s = &m->seat[r][e];

		*s = (struct pp_seat){.node = m->pair->end[e].node};
		if (!pp_party_agent(c->party, s->node, &s->channel, &err))
			continue;
		pp_climb_end(c, pp_arena_printf(c->b->arena, "node %s gives no agent: %s",
						c->b->nodes[s->node].id, err.text));
		return false;
	}
	return true;
}

bool pp_climb_connect(struct pp_climb *c, struct pp_climber *m, enum pp_rung r,
		      json_t *const answer[2], struct pp_order ret[2])
{
	static const char *const lists[] = {"keys", "bounce", "bounce_key", "tcp_port", "nonce"};
	static const char *const fresh[] = {"addresses", "cm_address", "cm_port", "cm_nonce"};

	for (unsigned int e = 0; e < 2; e++) {
		json_t *opened = m->seat[r][!e].opened, *to = json_object();
		char *text;
		struct pp_json *j;

		/* another's own words, given on as they are: the agent bounds them */
		for (size_t i = 0; i < PP_ARRAY_LEN(lists); i++)
			if (json_object_get(opened, lists[i]))
				(void)json_object_set(to, lists[i],
						      json_object_get(opened, lists[i]));
		for (size_t i = 0; i < PP_ARRAY_LEN(fresh); i++)
			if (json_object_get(answer[!e], fresh[i]))
				(void)json_object_set(to, fresh[i],
						      json_object_get(answer[!e], fresh[i]));
		if (r == PP_RUNG_TCP && m->address[!e])
			(void)json_object_set_new(to, "tcp_address", json_string(m->address[!e]));
		j = pp_order_begin(&ret[e], &m->seat[r][e], PP_DO_CONNECT);
		text = json_dumps(to, JSON_COMPACT);
		/* {"do": "connect"} becomes {"do": "connect", ...} */
		if (text && text[1] != '}') {
			pp_buf_char(j->out, ',');
			pp_buf_add(j->out, text + 1, strlen(text) - 2);
		}
		free(text);
		json_decref(to);
	}
	return !pp_climb_do(c, ret, 2, CONNECT);
}

static void connect_rung(struct pp_climb *c, struct pp_climber *m, enum pp_rung r)
{
	json_t *const answer[2] = {m->seat[r][0].opened, m->seat[r][1].opened};
	struct pp_order order[2];
	unsigned int bad;

	if (!pp_climb_connect(c, m, r, answer, order)) {
		pp_orders_free(order, 2);
		return;
	}
	if (!pp_orders_good(order, 2, &bad)) {
		pp_rung_fail(c, m, r, &order[bad], bad);
	} else {
		for (unsigned int e = 0; e < 2; e++) {
			m->seat[r][e].open = true;
			/* the smaller one of both ends */
			if (json_object_get(order[e].answer, "mtu"))
				m->pair->end[e].mtu =
					(unsigned int)pp_climb_code(order[e].answer, "mtu");
		}
		m->pair->rung[r].state = PP_BENCH_RUN;
	}
	pp_orders_free(order, 2);
}

static void open_rung(struct pp_climb *c, struct pp_climber *m, enum pp_rung r)
{
	struct pp_bench_rung *rung = &m->pair->rung[r];
	struct pp_order order[2];
	unsigned int bad;

	rung->memory = kind_of(c, m, r);
	rung->why = missing(c, m, r);
	if (r == PP_RUNG_TCP && (!m->address[0] || !m->address[1]))
		rung->why = "the rail's interface has no address";
	if (rung->why) {
		rung->state = PP_BENCH_SKIPPED;
		return;
	}
	if (!seat_both(c, m, r))
		return;
	rung->n_attempts = 0;
	for (unsigned int e = 0; e < 2; e++)
		order_open(c, m, r, e, &order[e]);
	(void)pp_climb_do(c, order, 2, OPEN);
	for (unsigned int e = 0; e < 2; e++)
		take_attempts(c, rung, e, order[e].answer);
	if (c->over) {
		pp_orders_free(order, 2);
		return;
	}
	if (!pp_orders_good(order, 2, &bad)) {
		pp_rung_fail(c, m, r, &order[bad], bad);
		if (r == PP_RUNG_DATA_DIRECT && rung->error == EOPNOTSUPP)
			rung->state = PP_BENCH_SKIPPED;
	} else {
		for (unsigned int e = 0; e < 2; e++) {
			take_opened(c, m, r, e, order[e].answer);
			m->seat[r][e].opened = json_incref(order[e].answer);
		}
		connect_rung(c, m, r);
	}
	pp_orders_free(order, 2);
}

void pp_climb_open(struct pp_climb *c, struct pp_climber *m)
{
	/* host first: its endpoint knows the address that TCP may have to use */
	static const enum pp_rung sequence[] = {PP_RUNG_HOST,	     PP_RUNG_TCP,
						PP_RUNG_DMABUF,	     PP_RUNG_PEERMEM,
						PP_RUNG_DATA_DIRECT, PP_RUNG_STAGED};

	for (size_t i = 0; i < PP_ARRAY_LEN(sequence); i++) {
		enum pp_rung r = sequence[i];
		enum pp_bench_state s = m->pair->rung[r].state;

		if (!c->o->rung[r] || s == PP_BENCH_FAILED || s == PP_BENCH_SKIPPED ||
		    pp_climb_over(c))
			continue;
		open_rung(c, m, r);
	}
	if (!pp_climb_over(c))
		pp_climb_trace(c, m);
}

/* Before the first end closes, since then the other has no link any more. */
static void ask_links(struct pp_climb *c, struct pp_climber *m)
{
	struct pp_order order[2 * PP_RUNGS];
	const char **link[2 * PP_RUNGS];
	unsigned int n = 0;

	for (unsigned int r = 0; r < PP_RUNGS && !c->over; r++)
		for (unsigned int e = 0; e < 2; e++) {
			if (!m->seat[r][e].channel || !m->pair->rung[r].simulated)
				continue;
			link[n] = &m->pair->rung[r].link[e];
			(void)pp_order_begin(&order[n++], &m->seat[r][e], PP_DO_LINK);
		}
	if (n)
		(void)pp_orders_do(order, n, CLOSE, NULL);
	for (unsigned int i = 0; i < n; i++)
		*link[i] = pp_climb_text(c, order[i].answer, "link");
	pp_orders_free(order, n);
}

void pp_climb_close(struct pp_climb *c, struct pp_climber *m)
{
	struct pp_order order[2 * PP_RUNGS];
	unsigned int n = 0;

	ask_links(c, m);
	for (unsigned int r = 0; r < PP_RUNGS; r++)
		for (unsigned int e = 0; e < 2; e++)
			if (m->seat[r][e].channel)
				(void)pp_order_begin(&order[n++], &m->seat[r][e], PP_DO_CLOSE);
	/* told or not, an agent ends with its channel; a run that is stopped does not wait */
	if (n && !c->over)
		(void)pp_orders_do(order, n, CLOSE, NULL);
	pp_orders_free(order, n);
	for (unsigned int r = 0; r < PP_RUNGS; r++)
		for (unsigned int e = 0; e < 2; e++)
			pp_seat_leave(&m->seat[r][e]);
}
