/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From rungs to a pair: as good as its host memory and as each way in which GPU memory moved. A
 * way that was never registered counts only where no other moved. Wrong bytes, keys that are not
 * enforced and cells that were taken away count wherever they are seen.
 */
#include <math.h>

#include "judge/transfer_parts.h"
#include "base/banned.h"

/* The worst of what counts for the pair; PP_RUNGS when nothing is to be said against it. */
struct pair_judgement {
	enum pp_verdict verdict;
	enum pp_rung by;
	unsigned int moved, refused; /* ways of GPU memory */
	enum pp_rung best, first_refused;
};

static void weigh(struct pair_judgement *j, enum pp_verdict verdict, enum pp_rung by)
{
	if (verdict <= j->verdict)
		return;
	j->verdict = verdict;
	j->by = by;
}

static struct pair_judgement weigh_pair(const struct pp_transfer_case *c)
{
	struct pair_judgement j = {PP_PASS, PP_RUNGS, 0, 0, PP_RUNGS, PP_RUNGS};

	weigh(&j, c->rung[PP_RUNG_HOST].verdict, PP_RUNG_HOST);
	for (unsigned int i = 0; i < PP_RUNGS; i++) {
		const struct pp_remarks *m = &c->rung[i];
		enum pp_bench_state state = c->p->rung[i].state;

		if (m->unsound || m->gap || state == PP_BENCH_NOT_REACHED)
			weigh(&j, m->verdict, (enum pp_rung)i);
		if (!pp_rung_is_direct((enum pp_rung)i) || state == PP_BENCH_SKIPPED)
			continue;
		if (m->refused) {
			j.first_refused = j.refused++ ? j.first_refused : (enum pp_rung)i;
			continue;
		}
		weigh(&j, m->verdict, (enum pp_rung)i);
		if (!m->moved)
			continue;
		if (!j.moved++ || m->verdict < c->rung[j.best].verdict)
			j.best = (enum pp_rung)i;
	}
	if (!j.moved && j.refused)
		weigh(&j, PP_FAIL, j.first_refused);
	else if (!j.moved)
		weigh(&j, PP_UNKNOWN, PP_RUNGS);
	return j;
}

static const char *pair_pass(struct pp_transfer_case *c, const struct pair_judgement *j)
{
	const struct pp_figure *f = pp_figure_largest(c, j->best);
	const char *cheaper =
		c->t->direct_wins_from
			? pp_arena_printf(c->arena, "; faster than staging from %s up",
					  pp_size_text(c->arena, c->t->direct_wins_from))
			: "";

	return pp_arena_printf(c->arena,
			       "GPU memory moves over RDMA without host memory, by %s%s, at "
			       "%.2f of host memory's bandwidth%s; %s",
			       pp_rung_name(j->best),
			       j->refused ? " (another way was refused)" : "", f ? f->host : NAN,
			       cheaper,
			       c->rung[j->best].claim == PP_PROVEN
				       ? "the kernel shows it registered so"
				       : "that it is registered so is our own measurement");
}

static const char *pair_sentence(struct pp_transfer_case *c, const struct pair_judgement *j)
{
	const struct pp_remarks *m = j->by < PP_RUNGS ? &c->rung[j->by] : NULL;

	if (j->verdict == PP_PASS)
		return pair_pass(c, j);
	if (!m)
		return "GPU memory was not moved: nothing can be said of it";
	if (j->by == PP_RUNG_HOST && m->fabric)
		return pp_arena_printf(c->arena, "%s; GPU memory is not judged", m->sentence);
	return pp_arena_printf(c->arena, "%s: %s", pp_rung_name(j->by), m->sentence);
}

void pp_transfer_pair(struct pp_transfer_case *c, struct pp_transfer_row *row)
{
	struct pair_judgement j = weigh_pair(c);
	const struct pp_remarks *m = j.by < PP_RUNGS ? &c->rung[j.by] : NULL;

	row->verdict = j.verdict;
	row->sentence = pair_sentence(c, &j);
	row->next = m ? m->next : j.verdict == PP_PASS ? NULL : "peerpath check --probe";
	row->hop = m ? m->hop : NULL;
	row->counter = m ? m->counter : NULL;
	row->cause = m ? m->cause : NULL;
	row->mechanism = "undetermined";
	if (j.best < PP_RUNGS) {
		row->mechanism = c->rung[j.best].mechanism;
		row->registered = c->rung[j.best].registered;
		row->claim = c->rung[j.best].claim;
		row->witness = c->rung[j.best].witness;
		row->seen = c->rung[j.best].seen;
	}
	if (!c->simulated)
		return;
	/* refused ways do not end it as long as another was exercised */
	row->exercised = c->rung[PP_RUNG_HOST].whole && c->rung[PP_RUNG_HOST].moved && j.moved;
	for (unsigned int i = 0; i < PP_RUNGS; i++)
		row->exercised &= !c->rung[i].unsound &&
				  (c->p->rung[i].state != PP_BENCH_RUN || c->rung[i].whole) &&
				  (c->p->rung[i].state != PP_BENCH_FAILED || c->rung[i].refused ||
				   !pp_rung_is_direct((enum pp_rung)i)) &&
				  c->p->rung[i].state != PP_BENCH_NOT_REACHED;
	if (j.verdict == PP_PASS) {
		row->verdict = PP_UNKNOWN;
		row->next = "peerpath prove --peer HOST";
		row->sentence = "chain exercised in simulation; no hardware was measured";
	}
	if (c->software)
		row->sentence = pp_arena_printf(
			c->arena, "%s; %s is software in the kernel: no hardware was measured",
			j.verdict == PP_PASS ? "chain exercised" : row->sentence, c->software);
}
