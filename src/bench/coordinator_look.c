/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What nodes there are, which ends each offers, who is paired with whom, and the cells that are to
 * be filled.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "bench/coordinator_state.h"
#include "bench/pattern.h"
#include "base/banned.h"

enum { LOOK_SECONDS = 90, ENDS = 64, ALONE_NODES = 8, TEXT_MOST = 300 };

/* More bytes or nanoseconds than this no repeat has; sums of them stay far from their end. */
static const int64_t AMOUNT_MOST = (int64_t)1 << 50;

const char *pp_climb_text(struct pp_climb *c, const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	char safe[TEXT_MOST];

	if (!text || !*text)
		return NULL;
	(void)snprintf(safe, sizeof(safe), "%s", text);
	pp_sanitize(safe, false);
	return pp_arena_str(c->b->arena, safe);
}

int64_t pp_climb_number(const json_t *object, const char *key, int64_t otherwise)
{
	const json_t *v = json_object_get(object, key);

	return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

uint64_t pp_climb_amount(const json_t *object, const char *key)
{
	int64_t n = pp_climb_number(object, key, 0);

	return n > 0 && n < AMOUNT_MOST ? (uint64_t)n : 0;
}

int pp_climb_code(const json_t *object, const char *key)
{
	int64_t n = pp_climb_number(object, key, 0);

	return n > 0 && n <= UINT16_MAX ? (int)n : 0;
}

static int64_t number_of(const json_t *object, const char *key, int64_t min, int64_t max,
			 int64_t otherwise)
{
	int64_t n = pp_climb_number(object, key, otherwise);

	return n < min || n > max ? otherwise : n;
}

static int seat_on(struct pp_climb *c, unsigned int node, struct pp_seat *ret, struct pp_error *err)
{
	*ret = (struct pp_seat){.node = node};
	return pp_party_agent(c->party, node, &ret->channel, err);
}

static int look_all(struct pp_climb *c, struct pp_error *err)
{
	unsigned int n = c->b->n_nodes, bad;
	struct pp_seat *PP_AUTO_FREE seat = calloc(n, sizeof(*seat));
	struct pp_order *PP_AUTO_FREE order = calloc(n, sizeof(*order));
	struct pp_json *j;
	const struct pp_orders_watch watch = {.stopped = c->o->stopped};
	int r = seat && order ? 0 : pp_error_set(err, -ENOMEM, "out of memory");

	for (unsigned int i = 0; !r && i < n; i++)
		r = seat_on(c, i, &seat[i], err);
	for (unsigned int i = 0; !r && i < n; i++) {
		j = pp_order_begin(&order[i], &seat[i], PP_DO_LOOK);
		if (c->o->device)
			pp_json_str(j, "device", c->o->device);
		if (c->o->gpu)
			pp_json_str(j, "gpu", c->o->gpu);
		pp_json_i64(j, "port", c->o->port);
		pp_json_bool(j, "all_rails", c->o->all_rails);
	}
	if (!r && pp_orders_do(order, n, LOOK_SECONDS * PP_SECOND, &watch))
		r = pp_error_set(err, -EINTR, "interrupted");
	if (!r && !pp_orders_good(order, n, &bad))
		r = pp_error_set(err, -EIO, "node %s: %s", c->b->nodes[bad].id, order[bad].why);
	for (unsigned int i = 0; !r && i < n; i++)
		c->look[i] = json_incref(order[i].answer);
	if (order)
		pp_orders_free(order, n);
	for (unsigned int i = 0; seat && i < n; i++)
		pp_seat_leave(&seat[i]);
	return r;
}

static int note_nodes(struct pp_climb *c, struct pp_error *err)
{
	struct pp_arena *a = c->b->arena;
	unsigned int n = pp_party_size(c->party);
	struct pp_bench_node *nodes = pp_arena_array(a, n, sizeof(*nodes));

	c->look = calloc(n, sizeof(*c->look));
	c->late = calloc(n, sizeof(*c->late));
	if (!n || !nodes || !c->look || !c->late)
		return pp_error_set(err, -ENOMEM, "out of memory");
	for (unsigned int i = 0; i < n; i++) {
		const struct pp_party_node *p = pp_party_node(c->party, i);

		nodes[i] = (struct pp_bench_node){.id = pp_arena_str(a, p->id),
						  .host = pp_arena_str(a, p->host),
						  .address = pp_arena_str(a, p->address),
						  .version = pp_arena_str(a, p->version),
						  .arrival_skew = NAN};
	}
	c->b->nodes = nodes;
	c->b->n_nodes = n;
	return 0;
}

static int priority_of(const json_t *end, int traffic_class)
{
	/* mlx5 and the kernel's default: the upper three bits of the DSCP */
	return json_is_true(json_object_get(end, "by_dscp")) ? traffic_class >> 5 : -1;
}

static struct pp_bench_end end_of(struct pp_climb *c, unsigned int node, const json_t *end)
{
	return (struct pp_bench_end){
		.node = node,
		.device = pp_climb_text(c, end, "device"),
		.hca = pp_climb_text(c, end, "hca"),
		.driver = pp_climb_text(c, end, "driver"),
		.port = (unsigned int)number_of(end, "port", 1, 255, 1),
		.gid_index = c->o->gid_index,
		.netdev = pp_climb_text(c, end, "netdev"),
		.link_layer = pp_climb_text(c, end, "link_layer"),
		.gpu = pp_climb_text(c, end, "gpu"),
		.gpu_uuid = pp_climb_text(c, end, "gpu_uuid"),
		.gpu_name = pp_climb_text(c, end, "gpu_name"),
		.distance = pp_climb_text(c, end, "distance"),
		.route = pp_climb_text(c, end, "route"),
		.numa = (int)number_of(end, "numa", -1, 1023, -1),
		.port_mbps = number_of(end, "port_mbps", 1, INT64_MAX, -1),
		.pci_mbytes = number_of(end, "pci_mbytes", 1, INT64_MAX, -1),
		.gpu_pci_mbytes = number_of(end, "gpu_pci_mbytes", 1, INT64_MAX, -1),
		.traffic_class = c->o->traffic_class,
		.priority = priority_of(end, c->o->traffic_class),
		.simulated = json_is_true(json_object_get(end, "simulated")),
	};
}

static const json_t *end_at(const struct pp_climb *c, unsigned int node, size_t i)
{
	return json_array_get(json_object_get(c->look[node], "ends"), i);
}

static size_t ends_of(const struct pp_climb *c, unsigned int node)
{
	size_t n = json_array_size(json_object_get(c->look[node], "ends"));

	return n < ENDS ? n : ENDS;
}

static bool is_loopback(const json_t *end)
{
	const char *netdev = json_string_value(json_object_get(end, "netdev"));

	return netdev && !strcmp(netdev, "lo");
}

/* The loopback interface leads to no other host: with one of those in the party it is no rail. */
static void drop_loopback(struct pp_climb *c)
{
	bool here = true;

	for (unsigned int i = 0; i < c->b->n_nodes; i++)
		here &= !strcmp(c->b->nodes[i].address, "local");
	for (unsigned int i = 0; !here && i < c->b->n_nodes; i++) {
		json_t *ends = json_object_get(c->look[i], "ends");

		for (size_t e = json_array_size(ends); e-- > 0;)
			if (is_loopback(json_array_get(ends, e)) && json_array_size(ends) > 1)
				(void)json_array_remove(ends, e);
	}
}

static int check_ends(struct pp_climb *c, struct pp_error *err)
{
	const char *why, *busy;

	for (unsigned int i = 0; i < c->b->n_nodes; i++) {
		struct pp_bench_node *node = &c->b->nodes[i];

		node->fingerprint = pp_climb_text(c, c->look[i], "fingerprint");
		node->topology = pp_climb_text(c, c->look[i], "topology");
		node->simulated = json_is_true(json_object_get(end_at(c, i, 0), "simulated"));
		why = pp_climb_text(c, c->look[i], "none");
		if (!ends_of(c, i))
			return pp_error_set(err, -ENODEV, "node %s: %s", node->id,
					    why ? why : "no RDMA device");
		for (size_t e = 0; e < ends_of(c, i); e++) {
			busy = pp_climb_text(c, end_at(c, i, e), "busy");
			if (busy && !node->busy)
				node->busy = busy;
			if (busy && !c->o->busy_ok)
				return pp_error_set(err, -EBUSY,
						    "node %s is in use: %s (--busy-ok measures "
						    "all the same)",
						    node->id, busy);
		}
	}
	return 0;
}

static const char *no_gpu(struct pp_climb *c, const struct pp_bench_pair *p)
{
	for (unsigned int e = 0; e < 2; e++)
		if (!p->end[e].gpu)
			return pp_arena_printf(c->b->arena, "node %s has no GPU",
					       c->b->nodes[p->end[e].node].id);
	return NULL;
}

/* A rung that no pair needs is said to be so; all others wait. */
static void begin_rungs(struct pp_climb *c, struct pp_bench_pair *p)
{
	for (unsigned int r = 0; r < PP_RUNGS; r++) {
		p->rung[r] = (struct pp_bench_rung){.rung = (enum pp_rung)r,
						    .state = c->o->rung[r] ? PP_BENCH_NOT_REACHED
									   : PP_BENCH_SKIPPED};
		if (!c->o->rung[r])
			p->rung[r].why = "not asked for";
	}
}

/* TCP has no operations: it is measured once, beside the first one. */
static bool is_cell(const struct pp_bench_options *o, unsigned int rung, unsigned int op)
{
	unsigned int first = 0;

	while (first < PP_OPERATIONS && !o->op[first])
		first++;
	return o->rung[rung] && o->op[op] && (rung != PP_RUNG_TCP || op == first);
}

static void add_cell(const struct pp_climb *c, struct pp_bench_pair *p, struct pp_bench_cell cell)
{
	for (unsigned int s = 0; s < c->o->n_sizes; s++) {
		for (unsigned int r = 0; r < PP_RUNGS; r++) {
			if (!is_cell(c->o, r, cell.op))
				continue;
			cell.size = c->o->size[s];
			cell.rung = (enum pp_rung)r;
			cell.qps = r == PP_RUNG_TCP || r == PP_RUNG_STAGED ? 1 : c->o->qps;
			p->cells[p->n_cells++] = cell;
		}
	}
}

static void add_cells(struct pp_climb *c, struct pp_climber *m, bool together)
{
	struct pp_bench_cell cell = {.depth = c->o->depth,
				     .together = together,
				     .state = PP_BENCH_NOT_REACHED,
				     .cpu_seconds_per_gb = {NAN, NAN},
				     .arrival_skew = NAN,
				     .gpu_mhz = {-1, -1}};
	unsigned int before = m->pair->n_cells;

	for (unsigned int op = 0; op < PP_OPERATIONS; op++) {
		for (unsigned int i = 0; i < PP_MEASURES; i++) {
			cell.op = (enum pp_operation)op;
			cell.measure = (enum pp_measure)i;
			if (c->o->op[op] && c->o->measure[i])
				add_cell(c, m->pair, cell);
		}
	}
	c->all += m->pair->n_cells - before;
}

static int add_pair(struct pp_climb *c, const struct pp_meeting *meeting, unsigned int rail,
		    unsigned int ends)
{
	struct pp_climber *m = &c->climber[c->n];
	struct pp_bench_pair *p = &c->b->pairs[c->n];
	unsigned int node[2] = {meeting->from, meeting->to};

	*m = (struct pp_climber){.pair = p, .round = meeting->round};
	p->rail = rail;
	for (unsigned int e = 0; e < 2; e++) {
		/* both ends on one node: another rail of it, where it has one */
		unsigned int at = node[0] == node[1] && e ? (rail + 1) % ends : rail;
		const json_t *end = end_at(c, node[e], at);

		p->end[e] = end_of(c, node[e], end);
		m->address[e] = pp_climb_text(c, end, "address");
		m->numa[e] = p->end[e].numa;
		m->peermem_absent[e] = json_is_false(json_object_get(c->look[node[e]], "peermem"));
	}
	p->name = pp_arena_printf(c->b->arena, "%s:%s - %s:%s", c->b->nodes[node[0]].id,
				  p->end[0].device, c->b->nodes[node[1]].id, p->end[1].device);
	m->no_gpu = no_gpu(c, p);
	m->sim = m->no_gpu && c->o->simulate && p->end[0].simulated && p->end[1].simulated;
	begin_rungs(c, p);
	p->cells = pp_arena_array(c->b->arena, pp_climb_cells_of(c->o) + 1, sizeof(*p->cells));
	if (!p->cells)
		return -ENOMEM;
	c->n++;
	return 0;
}

/* Who is measured alone, who at once with others. */
static void plan(struct pp_climb *c)
{
	for (unsigned int i = 0; i < c->n; i++) {
		struct pp_climber *m = &c->climber[i];

		m->alone = c->b->n_nodes <= ALONE_NODES;
		m->together = !m->alone || (i && c->climber[i - 1].round == m->round) ||
			      (i + 1 < c->n && c->climber[i + 1].round == m->round);
		if (m->alone)
			add_cells(c, m, false);
		if (m->together)
			add_cells(c, m, true);
	}
}

static int pair_up(struct pp_climb *c, struct pp_error *err)
{
	struct pp_meeting *PP_AUTO_FREE meeting = NULL;
	unsigned int n, ends, rails;
	int r = pp_pattern_meet(c->o->pattern, c->b->n_nodes, &meeting, &n, err);

	if (r)
		return r;
	c->climber = calloc((size_t)n * ENDS, sizeof(*c->climber));
	c->b->pairs = pp_arena_array(c->b->arena, (size_t)n * ENDS, sizeof(*c->b->pairs));
	if (!c->climber || !c->b->pairs)
		return pp_error_set(err, -ENOMEM, "out of memory");
	for (unsigned int i = 0; i < n; i++) {
		ends = (unsigned int)ends_of(c, meeting[i].from);
		if (ends_of(c, meeting[i].to) < ends)
			ends = (unsigned int)ends_of(c, meeting[i].to);
		rails = c->o->all_rails ? ends : 1;
		for (unsigned int rail = 0; !r && rail < rails; rail++)
			r = add_pair(c, &meeting[i], rail, ends);
	}
	c->b->n_pairs = c->n;
	plan(c);
	return r ? pp_error_set(err, r, "out of memory") : 0;
}

static void note_simulated(struct pp_climb *c)
{
	c->b->simulated = c->n > 0;
	for (unsigned int i = 0; i < c->n; i++)
		c->b->simulated &=
			c->b->pairs[i].end[0].simulated && c->b->pairs[i].end[1].simulated;
}

int pp_climb_look(struct pp_climb *c, struct pp_error *err)
{
	int r = note_nodes(c, err);

	r = r ? r : look_all(c, err);
	if (!r)
		drop_loopback(c);
	r = r ? r : check_ends(c, err);
	r = r ? r : pair_up(c, err);
	if (!r)
		note_simulated(c);
	return r;
}
