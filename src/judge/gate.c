/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/gate.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "judge/gate_rows.h"
#include "base/banned.h"

enum { ARENA_LIMIT = 4 << 20, MISSING_SHOWN = 3 };

static const char *const names[PP_GATES] = {"identity", "prerequisites", "memory", "library",
					    "application"};

const char *pp_gate_name(enum pp_gate g)
{
	return names[g];
}

int pp_gate_parse(const char *text, enum pp_gate *ret)
{
	uint64_t number;

	for (unsigned int i = 0; i < PP_GATES; i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		*ret = (enum pp_gate)i;
		return 0;
	}
	if (pp_parse_u64(text, 0, PP_GATES - 1, &number))
		return -EINVAL;
	*ret = (enum pp_gate)number;
	return 0;
}

const char *pp_verdict_claim(enum pp_verdict v)
{
	static const char *const states[] = {
		[PP_PASS] = "proven",
		[PP_DEGRADED] = "unproven",
		[PP_UNKNOWN] = "unproven",
		[PP_FAIL] = "refuted",
	};

	return states[v];
}

void pp_missing_add(struct pp_missing *m, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* one missing fact of the node is missing for every rail, and is said once */
	if ((m->text && strstr(m->text, text)) || m->n++ >= MISSING_SHOWN)
		return;
	m->text = m->text ? pp_arena_printf(m->arena, "%s; %s", m->text, text)
			  : pp_arena_str(m->arena, text);
}

void pp_missing_fact(struct pp_missing *m, const struct pp_object *o, enum pp_fact_id id)
{
	const struct pp_fact *fact = pp_fact_get(o, id);
	const struct pp_fact_info *info = &pp_fact_table[id];
	const char *why = fact && fact->why	? fact->why
			  : fact && fact->known ? "empty"
						: "not observed";

	if (!o || o->kind == PP_NODE)
		pp_missing_add(m, "%s: %s (%s)", info->key, why, info->how);
	else
		pp_missing_add(m, "%s of %s: %s (%s)", info->key, o->id, why, info->how);
}

const char *pp_missing_text(const struct pp_missing *m)
{
	if (m->n <= MISSING_SHOWN)
		return m->text;
	return pp_arena_printf(m->arena, "%s; and %u more", m->text, m->n - MISSING_SHOWN);
}

void pp_gate_beside_simulation(bool no_hca, struct pp_gate_row *row)
{
	row->evidence = "none: what ran here ran in simulation";
	if (!no_hca)
		return;
	row->raise = "run on a node that has an RDMA device; what the simulation came to is below";
	row->next = "peerpath check --details";
}

static int judge_one(const struct pp_facts *facts, const struct pp_findings *findings,
		     const struct pp_gate_runs *runs, enum pp_gate gate, struct pp_gates *g)
{
	struct pp_gate_row *row = &g->row[gate];

	switch (gate) {
	case PP_GATE_IDENTITY:
		pp_gate_identity(facts, &g->arena, row);
		return 0;
	case PP_GATE_PREREQUISITES:
		return pp_gate_prerequisites(facts, findings, &g->arena, row);
	case PP_GATE_MEMORY:
		pp_gate_memory(facts, runs, &g->arena, row);
		break;
	case PP_GATE_LIBRARY:
		pp_gate_library(facts, runs, &g->arena, row);
		break;
	default:
		pp_gate_application(runs, &g->arena, row);
	}
	row->run = true;
	return 0;
}

/* A gate that was not run claims nothing. */
static void not_run(const struct pp_facts *facts, struct pp_gates *g, enum pp_gate gate, int failed)
{
	if (failed < 0 && gate >= PP_GATE_MEMORY) {
		static const struct pp_gate_runs none;

		(void)judge_one(facts, NULL, &none, gate, g);
		g->row[gate].run = false;
		return;
	}
	g->row[gate] = (struct pp_gate_row){
		.gate = gate,
		.verdict = PP_UNKNOWN,
		.claim = failed >= 0 ? pp_arena_printf(&g->arena, "not run: gate %d failed", failed)
				     : "not run: not asked for",
		.evidence = "none",
		.raise = failed >= 0 ? "repair what failed, or go on with --keep-going"
				     : pp_arena_printf(&g->arena, "ask for it: --through %d", gate),
		.next = failed >= 0
				? "peerpath check --details"
				: pp_arena_printf(&g->arena, "peerpath prove --through %d", gate),
	};
}

int pp_gates_judge(const struct pp_facts *facts, const struct pp_findings *findings,
		   const struct pp_gate_runs *runs, enum pp_gate through, bool keep_going,
		   struct pp_gates *ret)
{
	struct pp_gates g = {.through = through, .keep_going = keep_going};
	int failed = -1, r = 0;

	g.arena = PP_ARENA(ARENA_LIMIT);
	for (int gate = 0; gate < PP_GATES && !r; gate++) {
		bool asked = gate <= (int)through, stopped = failed >= 0 && !keep_going;

		if (!asked || stopped) {
			not_run(facts, &g, (enum pp_gate)gate, stopped ? failed : -1);
			g.stopped = g.stopped || (asked && stopped);
		} else {
			r = judge_one(facts, findings, runs, (enum pp_gate)gate, &g);
			if (g.row[gate].verdict == PP_FAIL && failed < 0)
				failed = gate;
		}
		if (asked)
			g.verdict = pp_verdict_worst(g.verdict, g.row[gate].verdict);
	}
	if (r || g.arena.failed) {
		pp_gates_done(&g);
		return r ? r : -ENOMEM;
	}
	*ret = g;
	return 0;
}

void pp_gates_done(struct pp_gates *g)
{
	pp_arena_done(&g->arena);
	*g = (struct pp_gates){0};
}
