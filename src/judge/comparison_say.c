/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be said: a table over what was proven of the mechanism, what the service level did and
 * what the host did. First what makes every other sentence void.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "judge/comparison_parts.h"
#include "base/banned.h"

/*
 * Of the rows of a group: worse beats missing, that beats need more, that beats better, that beats
 * same. A group in which nothing was declared is the same.
 */
static enum pp_change together(const struct pp_comparison *c, bool host)
{
	static const int weight[PP_CHANGES] = {
		[PP_CHANGE_SAME] = 1,	 [PP_CHANGE_BETTER] = 2, [PP_CHANGE_MORE] = 3,
		[PP_CHANGE_MISSING] = 4, [PP_CHANGE_WORSE] = 5,
	};
	enum pp_change worst = PP_CHANGE_SAME;
	int seen = 0;

	for (size_t i = 0; i < c->n_rows; i++) {
		const struct pp_comparison_row *row = &c->row[i];

		if (row->metric->is_host == host && weight[row->change] > seen) {
			seen = weight[row->change];
			worst = row->change;
		}
	}
	return worst;
}

static bool is(const char *text, const char *word)
{
	return text && !strcmp(text, word);
}

/* Of a side: the same word of all trials, or NULL. */
static const char *path_of(struct pp_comparison_case *k, int side)
{
	const struct pp_comparison_arm *arm = &k->arm[side];
	const struct pp_trial_path *p = &arm->trial[0]->path;

	for (size_t t = 1; t < arm->n; t++) {
		const struct pp_trial_path *q = &arm->trial[t]->path;

		if (!p->path || !q->path || strcmp(p->path, q->path) != 0 ||
		    !is(q->mechanism, p->mechanism ? p->mechanism : ""))
			return p->path || q->path ? "not the same in all trials" : "not looked at";
	}
	if (!p->path)
		return "not looked at";
	return pp_arena_printf(&k->c->arena, "%.40s by %.40s (%.20s)", p->path,
			       p->mechanism ? p->mechanism : "an unknown mechanism",
			       p->claim_mechanism ? p->claim_mechanism : "unproven");
}

static bool is_proven(const struct pp_comparison_arm *after)
{
	for (size_t t = 0; t < after->n; t++)
		if (!is(after->trial[t]->path.claim, "proven") ||
		    !is(after->trial[t]->path.claim_mechanism, "proven"))
			return false;
	return true;
}

/*
 * A metric that is better as a whole because of some sets of nodes only, while another shows less
 * than half of the margin. NULL: none.
 */
static const char *one_sided(const struct pp_comparison *c)
{
	for (size_t i = 0; i < c->n_rows; i++) {
		const struct pp_comparison_row *row = &c->row[i];
		const struct pp_metric *m = row->metric;
		double none = m->is_ratio ? 1 : 0;
		size_t better = 0, other = 0;

		for (size_t b = 0; b < row->n_blocks; b++) {
			double s = row->block[b].shift,
			       by = m->higher_is_better ? s - none : none - s;

			if (isnan(s))
				continue;
			better += by > m->margin;
			other += by <= m->margin / 2;
		}
		if (better && other)
			return m->name;
	}
	return NULL;
}

static bool both_miss(const struct pp_comparison *c)
{
	for (size_t i = 0; i < c->n_rows; i++) {
		const struct pp_comparison_row *row = &c->row[i];

		if (row->slo_known[0] && row->slo_known[1] && !row->slo_met[0] && !row->slo_met[1])
			return true;
	}
	return false;
}

/* Do some rows of either group not tell? What was declared and is not known may have got worse. */
static bool is_open(const struct pp_comparison *c, enum pp_change how)
{
	return c->slo == how || c->host == how;
}

static size_t sets_of_nodes(const struct pp_comparison *c)
{
	size_t n = 0;

	for (size_t b = 0; c->n_rows && b < c->row[0].n_blocks; b++)
		n += !isnan(c->row[0].block[b].shift);
	return n;
}

static void say(struct pp_comparison *c, enum pp_verdict v, const char *sentence, const char *next)
{
	c->verdict = v;
	c->sentence = sentence;
	c->next = next;
}

static const char *need(struct pp_comparison *c)
{
	size_t most = 0;
	bool near_margin = false;

	for (size_t i = 0; i < c->n_rows; i++)
		if (c->row[i].change == PP_CHANGE_MORE) {
			most = c->row[i].more > most ? c->row[i].more : most;
			near_margin |= c->row[i].near_margin;
		}
	if (near_margin)
		return "a figure lies so near its margin that repeating will not settle it: make "
		       "the runs steadier, or declare before the next run what matters";
	return pp_arena_printf(&c->arena, "run the canary %zu more times in each state, in turn",
			       most);
}

/* proven, service level -> what is said; the host decides among those that are the same. */
static void by_table(struct pp_comparison *c)
{
	static const char *const go_on = "go on as the rollout says: the same again after a reboot";
	static const char *const prove = "prove the path of the job after the change: "
					 "peerpath nccl run -- CMD";

	if (c->slo == PP_CHANGE_BETTER && c->proven)
		say(c, PP_PASS, "mechanism proven, and the service level is better", go_on);
	else if (c->slo == PP_CHANGE_BETTER)
		say(c, PP_UNKNOWN,
		    "the service level is better, but the mechanism is unproven: the change may "
		    "not "
		    "be what did it",
		    prove);
	else if (c->proven && c->host == PP_CHANGE_BETTER)
		say(c, PP_PASS,
		    "mechanism proven, the host is relieved, the service level is the same: "
		    "capacity gained, no speed",
		    go_on);
	else if (c->proven)
		say(c, PP_PASS,
		    "mechanism proven, and nothing that was measured gained from it: a low-level "
		    "gain at most",
		    "decide whether the change is worth keeping; its effect on users is none");
	else
		say(c, PP_UNKNOWN,
		    c->host == PP_CHANGE_BETTER
			    ? "the host is relieved and the service level the same, but the "
			      "mechanism is unproven"
			    : "no effect was found, and the mechanism is unproven",
		    prove);
}

static void conclude(struct pp_comparison *c)
{
	static const char *const roll_back = "roll the change back: peerpath profile rollback";
	const char *odd = one_sided(c);

	if (!c->alike)
		say(c, PP_UNKNOWN, "not compared: what differs was not declared",
		    "make both arms alike, or declare the difference under [change] before the "
		    "next "
		    "run");
	else if (c->slo == PP_CHANGE_WORSE || c->host == PP_CHANGE_WORSE)
		say(c, PP_FAIL,
		    c->slo == PP_CHANGE_WORSE ? "worse after the change"
					      : "the host is worse off after the change",
		    roll_back);
	else if (!c->n_rows || is_open(c, PP_CHANGE_MISSING))
		say(c, PP_UNKNOWN, "a metric that was declared is not there in both arms",
		    "see why in its row, and run again");
	else if (both_miss(c))
		say(c, PP_UNKNOWN,
		    "the service level is missed before and after: this change is not the cause, "
		    "and "
		    "no cure",
		    "look for the other cause: peerpath prove, peerpath explain");
	else if (is_open(c, PP_CHANGE_MORE))
		say(c, PP_UNKNOWN, "these runs do not tell", need(c));
	else if (odd && c->slo == PP_CHANGE_BETTER)
		say(c, PP_UNKNOWN,
		    pp_arena_printf(
			    &c->arena,
			    "%.64s is better on some nodes only: look at their topology first",
			    odd),
		    "peerpath topo on each of them");
	else
		by_table(c);
	if (c->alike && c->verdict == PP_PASS && sets_of_nodes(c) == 1)
		c->next = "one set of nodes only: repeat on a second one before a wider rollout";
}

void pp_comparison_conclude(struct pp_comparison_case *k)
{
	struct pp_comparison *c = k->c;

	for (int side = 0; side < 2; side++)
		c->path[side] = path_of(k, side);
	c->slo = together(c, false);
	c->host = together(c, true);
	c->proven = is_proven(&k->arm[1]) && !c->simulated;
	conclude(c);
	if (c->simulated && c->verdict != PP_FAIL && c->alike)
		c->sentence = pp_arena_printf(&c->arena, "chain exercised in simulation: %s",
					      c->sentence);
}
