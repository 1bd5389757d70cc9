/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 1: could GPU memory be registered with a near hca, by a way that is known to be there?
 *
 * pass needs every mandatory fact known and good on a rail of each GPU, by one way at least, and
 * no finding that counts. Rules say what is wrong; this file says what must be known to be right.
 */
#include "judge/gate_rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "judge/prerequisite.h"
#include "base/banned.h"

struct exam {
	const struct pp_facts *facts;
	const struct pp_object *node;
	const struct pp_findings *findings;
	struct pp_arena *arena;
	struct pp_way_tests *tests;
	struct pp_missing missing; /* what keeps the gate at unknown */
	const char *refuted;	   /* a disqualifier, in words; NULL none */
	const char *lessened;	   /* a way that a probe found refused, in words; NULL none */
	bool of_process;	   /* what refutes is this process's, another one may not have it */
	bool no_device;		   /* known to have no RDMA device, and no function of one */
	bool probe_helps;	   /* what is missing is what check --probe finds */
	unsigned int good;	   /* GPUs with a rail that has all */
	unsigned int near;	   /* of these, with a near one */
	unsigned int by_way[PP_WAYS];
};

/* A list with anything in it: PCI functions that should carry an RDMA device and do not. */
static void devices_exist(struct exam *e)
{
	const struct pp_fact *bare = pp_fact_get(e->node, PP_F_RDMA_FUNCTIONS_WITHOUT);
	const struct pp_fact *n = pp_fact_get(e->node, PP_F_N_HCAS);
	char text[256];

	if (!n || !n->known)
		pp_missing_fact(&e->missing, e->node, PP_F_N_HCAS);
	if (!bare || !bare->known)
		pp_missing_fact(&e->missing, e->node, PP_F_RDMA_FUNCTIONS_WITHOUT);
	if (!n || !n->known || n->i64 > 0)
		return;
	if (bare && bare->known && bare->list[0])
		e->refuted =
			pp_arena_printf(e->arena, "no RDMA device on %s, a PCI function of an hca",
					pp_fact_text(bare, text, sizeof(text)));
	else
		e->no_device = true;
}

static void gpus_exist(struct exam *e)
{
	const struct pp_fact *n = pp_fact_get(e->node, PP_F_N_GPUS);

	if (!n || !n->known)
		pp_missing_fact(&e->missing, e->node, PP_F_N_GPUS);
	else if (!e->facts->count[PP_GPU])
		pp_missing_add(&e->missing, "no GPU on the PCI bus");
}

/* Known to be no candidate for any rail. */
static bool dark(const struct pp_object *hca)
{
	const struct pp_fact *ports = pp_fact_get(hca, PP_F_HCA_ACTIVE_PORTS);
	const struct pp_fact *device = pp_fact_get(hca, PP_F_HCA_HAS_DEVICE);

	return (ports && ports->known && ports->i64 == 0) ||
	       (device && device->known && !device->i64);
}

static void known_of(struct exam *e, const struct pp_object *o, enum pp_fact_id id)
{
	const struct pp_fact *fact = pp_fact_get(o, id);

	if (!fact || !fact->known)
		pp_missing_fact(&e->missing, o, id);
}

/*
 * The choice of a rail rests on facts of every hca: were one of them unknown, the chosen rail could
 * be the wrong one, and its good verdict worthless.
 */
static void choice_is_sound(struct exam *e)
{
	const struct pp_object *o = NULL;

	while ((o = pp_object_next(e->facts, PP_HCA, o))) {
		known_of(e, o, PP_F_HCA_HAS_DEVICE);
		if (dark(o))
			continue;
		known_of(e, o, PP_F_HCA_ACTIVE_PORTS);
		known_of(e, o, PP_F_HCA_UVERBS_ACCESS);
	}
	while ((o = pp_object_next(e->facts, PP_PORT, o))) {
		if (strcmp(pp_fact_str_or(o, PP_F_PORT_STATE, "ACTIVE"), "ACTIVE") != 0)
			continue;
		known_of(e, o, PP_F_PORT_STATE);
		known_of(e, o, PP_F_PORT_RATE);
		known_of(e, o, PP_F_PORT_LINK);
	}
	while ((o = pp_object_next(e->facts, PP_PAIR, o))) {
		if (o->peer && dark(o->peer))
			continue;
		known_of(e, o, PP_F_PAIR_DISTANCE);
		known_of(e, o, PP_F_PAIR_RAIL);
	}
}

static const char *state_of(struct exam *e, const struct pp_object *pair,
			    const struct pp_condition *c)
{
	const struct pp_object *holder =
		pp_condition_holder(e->facts, pair, pp_fact_table[c->fact].kind);
	char text[256];

	return pp_arena_printf(e->arena, "%s is %s", pp_fact_table[c->fact].key,
			       pp_fact_text(pp_fact_get(holder, c->fact), text, sizeof(text)));
}

static void open_test(struct exam *e, const struct pp_object *pair, const struct pp_condition *c)
{
	const struct pp_object *holder =
		pp_condition_holder(e->facts, pair, pp_fact_table[c->fact].kind);
	const struct pp_fact *fact = pp_fact_get(holder, c->fact);
	char text[128];

	e->probe_helps = e->probe_helps || (fact && fact->known);
	if (fact && fact->known)
		pp_missing_add(&e->missing, "%s of %s is %s: a probe decides (check --probe)",
			       pp_fact_table[c->fact].key, holder->id,
			       pp_fact_text(fact, text, sizeof(text)));
	else
		pp_missing_fact(&e->missing, holder, c->fact);
}

/* What another user, container or image of this node may have. */
static bool is_of_process(enum pp_fact_id id)
{
	static const enum pp_fact_id ids[] = {PP_F_HCA_UVERBS_ACCESS, PP_F_HCA_PROVIDER,
					      PP_F_HCA_PROBE_HOST,    PP_F_DEV_INFINIBAND,
					      PP_F_DEV_NVIDIA,	      PP_F_RDMA_NETNS_MODE};

	for (size_t i = 0; i < PP_ARRAY_LEN(ids); i++)
		if (ids[i] == id)
			return true;
	return false;
}

static bool refused(const struct pp_fact *probe)
{
	return probe && probe->known && !probe->i64;
}

/* False when the GPU's memory registers with the hca in no way at all. */
static bool gpu_probe_allows(struct exam *e, const struct pp_object *pair)
{
	bool dmabuf = refused(pp_fact_get(pair, PP_F_PAIR_PROBE_DMABUF));

	if (dmabuf && refused(pp_fact_get(pair, PP_F_PAIR_PROBE_PEERMEM))) {
		e->of_process = true;
		e->refuted = pp_arena_printf(
			e->arena, "rail %s: the probe could register GPU memory in no way",
			pair->id);
		return false;
	}
	if (dmabuf)
		e->lessened = pp_arena_printf(
			e->arena, "the probe of rail %s was refused GPU memory by DMA-BUF",
			pair->id);
	return true;
}

/* False when a probe of the rail's hca was refused what every way needs. */
static bool probe_allows(struct exam *e, const struct pp_object *pair)
{
	const struct pp_fact *host = pp_fact_get(pair->peer, PP_F_HCA_PROBE_HOST);
	const struct pp_fact *dmabuf = pp_fact_get(pair->peer, PP_F_HCA_PROBE_DMABUF);

	if (dmabuf && dmabuf->known && !dmabuf->i64)
		e->lessened = pp_arena_printf(e->arena,
					      "the probe of %s was refused DMA-BUF: not supported "
					      "by its provider library or driver",
					      pair->peer->id);
	if (!host || !host->known || host->i64)
		return gpu_probe_allows(e, pair);
	e->of_process = true;
	e->refuted = pp_arena_printf(e->arena,
				     "rail %s: the probe of %s was refused one page of host memory",
				     pair->id, pair->peer->id);
	return false;
}

/* What an hca needs in any case, and one way at least. */
static enum pp_truth examine_rail(struct exam *e, const struct pp_object *pair)
{
	const struct pp_condition *why[PP_WAYS];
	enum pp_truth truth[PP_WAYS];
	bool efa = !strcmp(pp_fact_str_or(pair->peer, PP_F_HCA_DRIVER, ""), "efa");

	if (!probe_allows(e, pair))
		return PP_FALSE;
	for (unsigned int way = 0; way < PP_WAYS; way++)
		truth[way] = pp_way_test(e->tests, (enum pp_way)way, e->facts, pair, &why[way]);
	/* What was done is possible. */
	if (pp_fact_is(pair, PP_F_PAIR_PROBE_DMABUF))
		truth[PP_WAY_DMABUF] = PP_TRUE;
	if (pp_fact_is(pair, PP_F_PAIR_PROBE_PEERMEM))
		truth[PP_WAY_PEERMEM] = PP_TRUE;
	/* EFA registers GPU memory without either, by a module of its own. */
	if (efa && truth[PP_WAY_PEERMEM] == PP_FALSE)
		truth[PP_WAY_PEERMEM] = PP_OPEN;
	if (truth[PP_WAY_NEEDED] == PP_FALSE) {
		e->of_process = is_of_process(why[PP_WAY_NEEDED]->fact);
		e->refuted = pp_arena_printf(e->arena, "rail %s: %s", pair->id,
					     state_of(e, pair, why[PP_WAY_NEEDED]));
		return PP_FALSE;
	}
	if (truth[PP_WAY_DMABUF] == PP_FALSE && truth[PP_WAY_PEERMEM] == PP_FALSE) {
		e->refuted = pp_arena_printf(e->arena,
					     "rail %s: no way to register GPU memory: %s, and %s",
					     pair->id, state_of(e, pair, why[PP_WAY_DMABUF]),
					     state_of(e, pair, why[PP_WAY_PEERMEM]));
		return PP_FALSE;
	}
	if (truth[PP_WAY_DMABUF] != PP_TRUE && truth[PP_WAY_PEERMEM] != PP_TRUE) {
		enum pp_way open = truth[PP_WAY_DMABUF] == PP_OPEN ? PP_WAY_DMABUF : PP_WAY_PEERMEM;

		if (why[open] && !(efa && open == PP_WAY_PEERMEM))
			open_test(e, pair, why[open]);
		else
			pp_missing_add(&e->missing,
				       "whether the EFA driver registers GPU memory by itself");
		return PP_OPEN;
	}
	if (truth[PP_WAY_NEEDED] == PP_OPEN) {
		open_test(e, pair, why[PP_WAY_NEEDED]);
		return PP_OPEN;
	}
	e->by_way[PP_WAY_DMABUF] += truth[PP_WAY_DMABUF] == PP_TRUE;
	e->by_way[PP_WAY_PEERMEM] += truth[PP_WAY_PEERMEM] == PP_TRUE;
	return PP_TRUE;
}

static bool is_near(const struct pp_object *pair)
{
	const char *distance = pp_fact_str_or(pair, PP_F_PAIR_DISTANCE, "");

	return !strcmp(distance, "PIX") || !strcmp(distance, "PXB");
}

static void examine_gpu(struct exam *e, const struct pp_object *gpu)
{
	const struct pp_object *pair = NULL;
	const char *refuted = e->refuted;
	bool any = false, good = false, near = false;

	while ((pair = pp_object_next(e->facts, PP_PAIR, pair))) {
		if (pair->parent != gpu || !pp_fact_is(pair, PP_F_PAIR_RAIL))
			continue;
		any = true;
		if (examine_rail(e, pair) != PP_TRUE)
			continue;
		good = true;
		near = near || is_near(pair);
	}
	if (good)
		e->refuted = refuted; /* one good rail is enough */
	e->good += good;
	e->near += near;
	if (!any && e->facts->count[PP_HCA])
		pp_missing_add(&e->missing, "%s has no rail", gpu->id);
}

static const struct pp_finding *worst(const struct exam *e)
{
	const struct pp_finding *first = e->findings->n ? e->findings->list : NULL;

	return first && first->counts ? first : NULL;
}

/* "3 findings, the first: title (object)". */
static const char *findings_text(const struct exam *e, const struct pp_finding *f,
				 enum pp_verdict verdict)
{
	size_t n = 0;

	for (size_t i = 0; i < e->findings->n; i++)
		n += e->findings->list[i].counts && e->findings->list[i].verdict == verdict;
	if (n < 2)
		return pp_arena_printf(e->arena, "%s (%s)", f->what, f->of->id);
	return pp_arena_printf(e->arena, "%s (%s), and %zu more", f->what, f->of->id, n - 1);
}

/* What rules left open is missing too, once per fact. */
static void open_rules(struct exam *e)
{
	bool seen[PP_FACTS] = {false};
	enum pp_fact_id missing[PP_RULE_CONDITIONS];
	const struct pp_finding *f;
	unsigned int n;

	for (size_t i = 0; i < e->findings->n; i++) {
		f = &e->findings->list[i];
		if (!f->counts || f->state != PP_OPEN)
			continue;
		(void)pp_rule_test(f->rule, e->facts, f->of, missing, PP_RULE_CONDITIONS, &n);
		for (unsigned int k = 0; k < n; k++) {
			if (seen[missing[k]])
				continue;
			seen[missing[k]] = true;
			e->probe_helps = e->probe_helps || missing[k] == PP_F_HCA_PROBE_DMABUF;
			pp_missing_fact(&e->missing,
					pp_condition_holder(e->facts, f->of,
							    pp_fact_table[missing[k]].kind),
					missing[k]);
		}
	}
}

/* "open 580.65.06", "of unknown flavour and version", "not loaded" */
static const char *module_text(const struct exam *e)
{
	const struct pp_fact *loaded = pp_fact_get(e->node, PP_F_NVIDIA_LOADED);
	const char *version = pp_fact_str_or(e->node, PP_F_NVIDIA_VERSION, "");

	if (loaded && loaded->known && !loaded->i64)
		return "not loaded";
	return pp_arena_printf(e->arena, "%s%s%s",
			       pp_fact_str_or(e->node, PP_F_NVIDIA_FLAVOUR, "of unknown flavour"),
			       *version ? " " : ", version unknown", version);
}

static const char *evidence(const struct exam *e)
{
	return pp_arena_printf(
		e->arena,
		"%u of %u GPUs have a rail with all prerequisites (%u by DMA-BUF, %u by peermem); "
		"NVIDIA module %s",
		e->good, e->facts->count[PP_GPU], e->by_way[PP_WAY_DMABUF],
		e->by_way[PP_WAY_PEERMEM], module_text(e));
}

/* Does the rule look at what is this process's alone? */
static bool rule_of_process(const struct pp_rule *rule)
{
	for (unsigned int i = 0; i < rule->n_when; i++)
		if (is_of_process(rule->when[i].fact))
			return true;
	return false;
}

static const char *claim_pass(struct exam *e)
{
	static const char capability[] = "(a capability; gates 2 and 3 show its use)";

	if (e->near == e->facts->count[PP_GPU])
		return pp_arena_printf(e->arena,
				       "GPU memory can be registered with a near hca on every "
				       "GPU %s",
				       capability);
	return pp_arena_printf(e->arena,
			       "GPU memory can be registered with an hca on every GPU, a near one "
			       "(PIX, PXB) on %u of %u %s",
			       e->near, e->facts->count[PP_GPU], capability);
}

static const char *claim(struct exam *e, enum pp_verdict verdict, const struct pp_finding *by_rule)
{
	bool mine = by_rule ? rule_of_process(by_rule->rule) : e->of_process;

	switch (verdict) {
	case PP_PASS:
		return claim_pass(e);
	case PP_DEGRADED:
		return pp_arena_printf(e->arena, "the direct path is possible, but: %s",
				       by_rule ? findings_text(e, by_rule, verdict) : e->lessened);
	case PP_UNKNOWN:
		return e->no_device ? "unknown (no RDMA device): there is nothing to register with"
				    : "it is not known whether GPUDirect RDMA can work here";
	case PP_FAIL:
		break;
	}
	return pp_arena_printf(e->arena, "GPUDirect RDMA cannot work %s: %s",
			       mine ? "for this process" : "here",
			       by_rule ? findings_text(e, by_rule, verdict) : e->refuted);
}

static const char *raise(struct exam *e, enum pp_verdict verdict, const struct pp_finding *by_rule)
{
	if (verdict == PP_PASS)
		return NULL;
	if (verdict == PP_UNKNOWN && e->no_device)
		return pp_arena_printf(e->arena, "run on a node that has an RDMA device%s%s",
				       e->missing.n ? "; also unknown: " : "",
				       e->missing.n ? pp_missing_text(&e->missing) : "");
	if (verdict == PP_UNKNOWN && e->missing.n)
		return pp_missing_text(&e->missing);
	if (!by_rule)
		return e->refuted    ? e->refuted
		       : e->lessened ? "an rdma-core and a driver that take DMA-BUF"
				     : "peerpath check names what is missing";
	if (by_rule->blocked)
		return pp_arena_printf(e->arena, "blocked by site policy: %s", by_rule->blocked);
	return verdict == PP_UNKNOWN ? by_rule->rule->decide : by_rule->rule->fix;
}

static const char *next(const struct exam *e, const struct pp_finding *by_rule)
{
	if (by_rule)
		return by_rule->rule->next;
	if (e->probe_helps)
		return "peerpath check --probe";
	return pp_fact_int_or(e->node, PP_F_UID, 0) ? "sudo peerpath check"
						    : "peerpath check --details";
}

static void fill(struct exam *e, struct pp_gate_row *row)
{
	const struct pp_finding *f = worst(e);

	if (f && (f->verdict != row->verdict || f->state != PP_TRUE))
		f = NULL; /* it is not what decided */
	row->evidence = evidence(e);
	row->claim = claim(e, row->verdict, f);
	row->raise = raise(e, row->verdict, f);
	if (row->verdict != PP_PASS)
		row->next = next(e, f);
	row->missing = e->missing.n;
}

int pp_gate_prerequisites(const struct pp_facts *facts, const struct pp_findings *findings,
			  struct pp_arena *arena, struct pp_gate_row *row)
{
	struct exam e = {.facts = facts, .findings = findings, .arena = arena};
	const struct pp_object *gpu = NULL;
	enum pp_verdict verdict = findings->verdict;
	int r = pp_way_tests_new(arena, &e.tests);

	if (r)
		return r;
	e.node = pp_object_next(facts, PP_NODE, NULL);
	e.missing.arena = arena;
	devices_exist(&e);
	gpus_exist(&e);
	while ((gpu = pp_object_next(facts, PP_GPU, gpu)))
		examine_gpu(&e, gpu);
	choice_is_sound(&e);
	open_rules(&e);
	if (e.lessened)
		verdict = pp_verdict_worst(verdict, PP_DEGRADED);
	if (e.missing.n || e.no_device || e.good < facts->count[PP_GPU])
		verdict = pp_verdict_worst(verdict, PP_UNKNOWN);
	if (e.refuted)
		verdict = PP_FAIL;
	*row = (struct pp_gate_row){.gate = PP_GATE_PREREQUISITES, .verdict = verdict, .run = true};
	fill(&e, row);
	return 0;
}
