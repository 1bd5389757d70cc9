/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 1: could GPU memory be registered with a near hca, by a way that is known to be there?
 *
 * pass needs every mandatory fact known and good on a rail of each GPU, by one way at least, and
 * no finding that counts. Rules say what is wrong; this file and gate_exam.c say what must be known
 * to be right.
 */
#include "judge/gate_exam.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

/* A list with anything in it: PCI functions that should carry an RDMA device and do not. */
static void devices_exist(struct pp_exam *e)
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

static void gpus_exist(struct pp_exam *e)
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

static void known_of(struct pp_exam *e, const struct pp_object *o, enum pp_fact_id id)
{
	const struct pp_fact *fact = pp_fact_get(o, id);

	if (!fact || !fact->known)
		pp_missing_fact(&e->missing, o, id);
}

/*
 * The choice of a rail rests on facts of every hca: were one of them unknown, the chosen rail could
 * be the wrong one, and its good verdict worthless.
 */
static void choice_is_sound(struct pp_exam *e)
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

static const struct pp_finding *worst(const struct pp_exam *e)
{
	const struct pp_finding *first = e->findings->n ? e->findings->list : NULL;

	return first && first->counts ? first : NULL;
}

/* "3 findings, the first: title (object)". */
static const char *findings_text(const struct pp_exam *e, const struct pp_finding *f,
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
static void open_rules(struct pp_exam *e)
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
static const char *module_text(const struct pp_exam *e)
{
	const struct pp_fact *loaded = pp_fact_get(e->node, PP_F_NVIDIA_LOADED);
	const char *version = pp_fact_str_or(e->node, PP_F_NVIDIA_VERSION, "");

	if (loaded && loaded->known && !loaded->i64)
		return "not loaded";
	return pp_arena_printf(e->arena, "%s%s%s",
			       pp_fact_str_or(e->node, PP_F_NVIDIA_FLAVOUR, "of unknown flavour"),
			       *version ? " " : ", version unknown", version);
}

static const char *evidence(const struct pp_exam *e)
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
		if (pp_exam_of_process(rule->when[i].fact))
			return true;
	return false;
}

static const char *claim_pass(struct pp_exam *e)
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

static const char *claim(struct pp_exam *e, enum pp_verdict verdict,
			 const struct pp_finding *by_rule)
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

static const char *raise(struct pp_exam *e, enum pp_verdict verdict,
			 const struct pp_finding *by_rule)
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

static const char *next(const struct pp_exam *e, const struct pp_finding *by_rule)
{
	if (by_rule)
		return by_rule->rule->next;
	if (e->probe_helps)
		return "peerpath check --probe";
	return pp_fact_int_or(e->node, PP_F_UID, 0) ? "sudo peerpath check"
						    : "peerpath check --details";
}

static void fill(struct pp_exam *e, struct pp_gate_row *row)
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
	struct pp_exam e = {.facts = facts, .findings = findings, .arena = arena};
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
		pp_exam_gpu(&e, gpu);
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
