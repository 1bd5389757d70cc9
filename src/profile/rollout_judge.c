/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a rollout is, by its bundles: steps in order, none skipped, like with like.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "profile/rollout.h"
#include "base/banned.h"

struct judge {
	const struct pp_rollout *r;
	struct pp_rollout_status *s;
	enum pp_step step;
	bool wrong, open; /* of this step */
};

static void say(struct judge *j, const char *fmt, ...) PP_PRINTF(2, 3);

static void say(struct judge *j, const char *fmt, ...)
{
	struct pp_rollout_step *st = &j->s->step[j->step];
	char line[512];
	va_list ap;

	if (st->n_why == PP_ARRAY_LEN(st->why)) {
		st->more++;
		return;
	}
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	st->why[st->n_why++] = pp_arena_str(&j->s->arena, line);
}

static const struct pp_rollout_bundle *next(const struct judge *j, enum pp_step step,
					    enum pp_rollout_role role,
					    const struct pp_rollout_bundle *after)
{
	const struct pp_rollout_bundle *b = after ? after + 1 : j->r->bundle;

	for (; b < j->r->bundle + j->r->n; b++)
		if (b->step == step && b->role == role)
			return b;
	return NULL;
}

/* The bundle of that node in a step. */
static const struct pp_rollout_bundle *of_node(const struct judge *j, enum pp_step step,
					       enum pp_rollout_role role, const char *node)
{
	const struct pp_rollout_bundle *b = NULL;

	while ((b = next(j, step, role, b)))
		if (!b->error && node && b->node && !strcmp(b->node, node))
			return b;
	return NULL;
}

static void check_readable(struct judge *j)
{
	for (unsigned int i = 0; i < j->r->n; i++) {
		const struct pp_rollout_bundle *b = &j->r->bundle[i];

		if (b->step != j->step || !b->error)
			continue;
		say(j, "%s %s", b->path, b->error);
		j->wrong = true;
	}
}

static const char *short_of(const char *text)
{
	return text ? text : "unknown";
}

/* All bundles of one side of a step agree on what makes nodes comparable. */
static void check_like(struct judge *j, enum pp_rollout_role role, size_t offset, const char *what)
{
	const struct pp_rollout_bundle *first = NULL, *b = NULL;

	while ((b = next(j, j->step, role, b))) {
		const char *value, *want;

		if (b->error)
			continue;
		first = first ? first : b;
		value = *(const char *const *)(const void *)((const char *)b + offset);
		want = *(const char *const *)(const void *)((const char *)first + offset);
		if (!value || !want) {
			say(j, "%s: %s is not known", value ? first->path : b->path, what);
			j->open = true;
		} else if (strcmp(value, want) != 0) {
			say(j, "mixed %s: %s has %.16s, %s has %.16s", what, first->path,
			    short_of(want), b->path, short_of(value));
			j->wrong = true;
		}
	}
}

static void check_alike(struct judge *j)
{
	static const struct {
		size_t offset;
		const char *what;
	} parts[] = {
		{offsetof(struct pp_rollout_bundle, flavour), "module flavour"},
		{offsetof(struct pp_rollout_bundle, topology), "topology class"},
		{offsetof(struct pp_rollout_bundle, software), "software"},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(parts); i++) {
		check_like(j, PP_ROLLOUT_BEFORE, parts[i].offset, parts[i].what);
		check_like(j, PP_ROLLOUT_AFTER, parts[i].offset, parts[i].what);
	}
}

/* The same node on both sides: the same wiring; each gate asked for, and not worse than before. */
static void check_pair(struct judge *j, const struct pp_rollout_bundle *before,
		       const struct pp_rollout_bundle *after)
{
	if (before->topology && after->topology && strcmp(before->topology, after->topology) != 0) {
		say(j, "%s: another topology class than before (%s)", after->path, before->path);
		j->wrong = true;
	}
	for (unsigned int g = 0; g <= (unsigned int)j->r->through; g++) {
		const char *name = pp_gate_name((enum pp_gate)g);

		if (!before->asked[g] || !after->asked[g]) {
			say(j, "%s does not reach gate %u (%s)",
			    before->asked[g] ? after->path : before->path, g, name);
			j->open = true;
		} else if (after->verdict[g] == PP_FAIL ||
			   (after->verdict[g] == PP_DEGRADED && before->verdict[g] == PP_PASS)) {
			say(j, "%s: gate %u (%s) is %s, was %s: no step behind it counts",
			    after->path, g, name, pp_verdict_name(after->verdict[g]),
			    pp_verdict_name(before->verdict[g]));
			j->wrong = true;
			return;
		} else if (after->verdict[g] == PP_UNKNOWN) {
			say(j, "%s: gate %u (%s) is unknown", after->path, g, name);
			j->open = true;
		}
	}
}

/* Another boot of the same node with the same software. */
static void check_reboot(struct judge *j, const struct pp_rollout_bundle *was,
			 const struct pp_rollout_bundle *is)
{
	if (!was->boot || !is->boot) {
		say(j, "%s: which boot it was is not known", was->boot ? is->path : was->path);
		j->open = true;
	} else if (!strcmp(was->boot, is->boot)) {
		say(j, "%s: of the same boot as %s: the node was not rebooted", is->path,
		    was->path);
		j->wrong = true;
	}
	if (was->software && is->software && strcmp(was->software, is->software) != 0) {
		say(j, "%s: other software than in %s", is->path, was->path);
		j->wrong = true;
	}
}

/* Of a step: its "before"s, or what the reboot is compared with. */
static const struct pp_rollout_bundle *baseline(const struct judge *j,
						const struct pp_rollout_bundle *after)
{
	return j->step == PP_STEP_REBOOT ? of_node(j, PP_STEP_PAIR, PP_ROLLOUT_AFTER, after->node)
					 : of_node(j, j->step, PP_ROLLOUT_BEFORE, after->node);
}

static void count_nodes(struct judge *j)
{
	struct pp_rollout_step *st = &j->s->step[j->step];
	const struct pp_rollout_bundle *after = NULL, *before;

	while ((after = next(j, j->step, PP_ROLLOUT_AFTER, after))) {
		if (after->error)
			continue;
		if (of_node(j, j->step, PP_ROLLOUT_AFTER, after->node) != after) {
			say(j, "%s: of a node that has one already", after->path);
			j->wrong = true;
			continue;
		}
		before = baseline(j, after);
		if (!before) {
			say(j,
			    j->step == PP_STEP_REBOOT ? "%s: of no node of the pair"
						      : "%s: its node has no bundle before",
			    after->path);
			j->open = true;
			continue;
		}
		st->nodes++;
		check_pair(j, before, after);
		if (j->step == PP_STEP_REBOOT)
			check_reboot(j, before, after);
	}
}

static bool has_bundles(const struct judge *j)
{
	return next(j, j->step, PP_ROLLOUT_BEFORE, NULL) ||
	       next(j, j->step, PP_ROLLOUT_AFTER, NULL);
}

/* What a step still needs, as a line to act on. */
static void say_needs(struct judge *j, unsigned int want)
{
	const struct pp_rollout_step *st = &j->s->step[j->step];

	if (!want)
		say(j, "say how many nodes: 'nodes = N' in [%s]", pp_step_name(j->step));
	else if (j->step == PP_STEP_REBOOT)
		say(j, "needs after-bundles of both nodes of the pair after a reboot: %u of %u",
		    st->nodes, want);
	else
		say(j, "needs bundles before and after of %u nodes: %u of %u", want, st->nodes,
		    want);
}

static void judge_step(struct judge *j, bool turn)
{
	struct pp_rollout_step *st = &j->s->step[j->step];
	unsigned int want = j->r->nodes[j->step];

	j->wrong = j->open = false;
	st->state = PP_STEP_WAITING;
	if (!turn && !has_bundles(j))
		return;
	if (!turn) {
		st->state = PP_STEP_SKIPPED;
		say(j, "has bundles though step '%s' is not done: steps are not skipped",
		    pp_step_name((enum pp_step)(j->step - 1)));
		return;
	}
	check_readable(j);
	check_alike(j);
	count_nodes(j);
	if (!want || st->nodes < want)
		say_needs(j, want);
	st->state = j->wrong			? PP_STEP_STOPPED
		    : !want || st->nodes < want ? PP_STEP_NEXT
		    : j->open			? PP_STEP_UNKNOWN
						: PP_STEP_DONE;
}

/* The baseline is there again when software and gates are those of before the change. */
static void check_restored(struct judge *j, const struct pp_rollout_bundle *after)
{
	const struct pp_rollout_bundle *base = NULL;

	for (int s = PP_STEP_PAIR; !base && s <= PP_STEP_CLUSTER; s++)
		base = of_node(j, (enum pp_step)s, PP_ROLLOUT_BEFORE, after->node);
	if (!base) {
		say(j, "%s: no bundle of its node before the change", after->path);
		j->open = true;
		return;
	}
	check_pair(j, base, after);
	if (!base->software || !after->software) {
		say(j, "%s: software is not known on both sides", after->path);
		j->open = true;
	} else if (strcmp(base->software, after->software) != 0) {
		say(j, "%s: the software is not that of %s", after->path, base->path);
		j->wrong = true;
	}
}

/* Both bundles of a rollback: what was taken back, and what came of it. */
static void judge_rollback(struct judge *j)
{
	struct pp_rollout_step *st = &j->s->step[PP_STEP_ROLLBACK];
	const struct pp_rollout_bundle *b = NULL;

	j->step = PP_STEP_ROLLBACK;
	j->wrong = j->open = false;
	st->state = PP_STEP_WAITING;
	if (!has_bundles(j))
		return;
	check_readable(j);
	while ((b = next(j, j->step, PP_ROLLOUT_BEFORE, b)))
		if (!b->error && !of_node(j, j->step, PP_ROLLOUT_AFTER, b->node)) {
			say(j, "%s: the bundle of its rollback is missing", b->path);
			j->open = true;
		}
	b = NULL;
	while ((b = next(j, j->step, PP_ROLLOUT_AFTER, b))) {
		if (b->error)
			continue;
		if (!of_node(j, j->step, PP_ROLLOUT_BEFORE, b->node)) {
			say(j, "%s: the bundle of the change that was taken back is missing",
			    b->path);
			j->open = true;
			continue;
		}
		st->nodes++;
		check_restored(j, b);
	}
	st->state = j->wrong ? PP_STEP_STOPPED : j->open ? PP_STEP_UNKNOWN : PP_STEP_DONE;
}

static const char *next_command(const struct judge *j, enum pp_step step)
{
	if (step == PP_STEP_REBOOT)
		return "reboot, then peerpath prove --peer OTHER --after-reboot AFTER -o "
		       "NODE-reboot.tar.zst";
	return pp_arena_printf(&j->s->arena,
			       step == PP_STEP_PAIR ? "peerpath prove --peer OTHER -o "
						      "NODE-before.tar.zst; then peerpath profile "
						      "apply %s"
			       : step == PP_STEP_POOL
				       ? "on each node of the pool: peerpath prove, "
					 "peerpath profile apply %s, prove again"
				       : "on each other node: peerpath prove, peerpath "
					 "profile apply %s, prove again",
			       j->r->to);
}

static void conclude(struct judge *j)
{
	struct pp_rollout_status *s = j->s;
	const struct pp_rollout_step *back = &s->step[PP_STEP_ROLLBACK];
	const char *proven = j->r->simulation ? "chain exercised in simulation" : "proven";
	unsigned int done = 0, i;

	for (i = 0; i < PP_STEP_ROLLBACK && s->step[i].state == PP_STEP_DONE; i++)
		done++;
	s->verdict = PP_PASS;
	for (i = 0; i < PP_STEPS; i++) {
		enum pp_step_state st = s->step[i].state;

		if (st == PP_STEP_STOPPED || st == PP_STEP_SKIPPED)
			s->verdict = PP_FAIL;
		else if (st == PP_STEP_UNKNOWN)
			s->verdict = pp_verdict_worst(s->verdict, PP_UNKNOWN);
	}
	if (back->state != PP_STEP_WAITING) {
		s->sentence =
			back->state == PP_STEP_DONE
				? "rolled back: the baseline is there again, both bundles kept"
			: back->state == PP_STEP_STOPPED
				? "rolled back, but what is there now is not the baseline"
				: "rolled back: whether the baseline is there again is unknown";
		s->next = "a new rollout begins with a new file and the pair";
		return;
	}
	if (done == PP_STEP_ROLLBACK) {
		s->sentence = pp_arena_printf(&s->arena, "done: '%s' is %s on the cluster",
					      j->r->to, proven);
		s->next = "remove what only the old path needs in a change of its own";
		return;
	}
	s->next = s->verdict == PP_FAIL ? "repair what stands above, or peerpath profile rollback; "
					  "keep both bundles"
					: next_command(j, (enum pp_step)done);
	s->sentence = pp_arena_printf(&s->arena, "%s at step '%s'; %u of 4 steps %s",
				      s->verdict == PP_FAIL ? "stopped" : "on its way",
				      pp_step_name((enum pp_step)done), done,
				      j->r->simulation ? "exercised in simulation" : "done");
}

int pp_rollout_judge(const struct pp_rollout *r, struct pp_rollout_status *ret)
{
	struct judge j = {.r = r, .s = ret};
	bool turn = true;

	*ret = (struct pp_rollout_status){.arena = PP_ARENA(4 << 20)};
	for (int step = PP_STEP_PAIR; step <= PP_STEP_CLUSTER; step++) {
		j.step = (enum pp_step)step;
		judge_step(&j, turn);
		turn = turn && ret->step[step].state == PP_STEP_DONE;
	}
	judge_rollback(&j);
	conclude(&j);
	return ret->arena.failed ? -ENOMEM : 0;
}

void pp_rollout_status_done(struct pp_rollout_status *s)
{
	pp_arena_done(&s->arena);
}
