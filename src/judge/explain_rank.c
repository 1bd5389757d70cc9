/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what was seen to candidates, and from candidates to an order.
 */
#include "judge/explain_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

static bool line_before(const struct pp_seen_line *a, const struct pp_seen_line *b)
{
	if (a->stamp.time_us >= 0 && b->stamp.time_us >= 0 && a->stamp.time_us != b->stamp.time_us)
		return a->stamp.time_us < b->stamp.time_us;
	return a->line < b->line;
}

const struct pp_seen_line *pp_explain_seen(const struct pp_explain *e, const struct pp_clue *clue)
{
	const struct pp_seen_line *best = NULL, *s;

	for (unsigned int i = clue->first; i < clue->first + clue->n; i++) {
		s = &e->seen[i];
		if (s->times && (!best || line_before(s, best)))
			best = s;
	}
	return best;
}

static void add_evidence(struct pp_diagnosis *d, const struct pp_seen_line *s)
{
	for (unsigned int i = 0; i < d->n_evidence; i++)
		if (d->evidence[i]->line == s->line)
			return;
	if (d->n_evidence < PP_DIAGNOSIS_EVIDENCE)
		d->evidence[d->n_evidence++] = s;
}

/* Terms of the longest signature that fitted: the more a line had to say, the more it weighs. */
static unsigned int terms(const struct pp_explain *e, const struct pp_clue *clue)
{
	unsigned int most = 0;

	for (unsigned int i = clue->first; i < clue->first + clue->n; i++)
		if (e->seen[i].times && e->known->signatures[i].n > most)
			most = e->known->signatures[i].n;
	return most;
}

static bool text_holds(const struct pp_explain *e, const struct pp_known *k, struct pp_diagnosis *d,
		       unsigned int *ret_hints)
{
	const struct pp_seen_line *s = pp_explain_seen(e, &k->match);

	*ret_hints = 0;
	if (!s || pp_explain_seen(e, &k->without))
		return false;
	add_evidence(d, s);
	d->weight = terms(e, &k->match);
	for (unsigned int i = 0; i < k->n_with; i++) {
		s = pp_explain_seen(e, &k->with[i]);
		if (!s)
			return false;
		add_evidence(d, s);
		d->weight += 1 + terms(e, &k->with[i]);
	}
	for (unsigned int i = 0; i < k->n_hint; i++) {
		s = pp_explain_seen(e, &k->hint[i]);
		if (!s)
			continue;
		add_evidence(d, s);
		d->weight += 1 + terms(e, &k->hint[i]);
		(*ret_hints)++;
	}
	return true;
}

/* A condition with {driver} filled in: true excludes, unknown keeps open. */
static enum pp_truth template_holds(const char *text, const char *driver, enum pp_kind scope,
				    const struct pp_facts *facts, const struct pp_object *o)
{
	struct pp_arena arena = PP_ARENA(1 << 20);
	const char *brace = strstr(text, "{driver}");
	enum pp_truth truth = PP_OPEN;
	struct pp_condition c;
	struct pp_error err;
	char filled[1024];

	if (!*driver)
		return PP_OPEN;
	(void)snprintf(filled, sizeof(filled), "%.*s%s%s", (int)(brace - text), text, driver,
		       brace + strlen("{driver}"));
	if (!pp_condition_parse(&arena, scope, filled, &c, &err))
		truth = pp_condition_test(&c, facts, o, NULL);
	pp_arena_done(&arena);
	return truth;
}

/*
 * Facts that may be others where the text was written. The kernel log loses its past at a reboot;
 * limits, environment and library path are those of this process, not of the one that failed.
 * They can support a cause; they cannot rule it out.
 */
static bool may_differ(const struct pp_explain *e, enum pp_fact_id fact)
{
	static const char *const of_process[] = {"limits.", "nccl.",	   "torch.",
						 "ucx.",    "libfabric.",  "libibverbs.",
						 "cuda.",   "environment", "hca.uverbs_access"};
	const char *key = pp_fact_table[fact].key;

	if (!strncmp(key, "kmsg.", 5))
		return true;
	for (size_t i = 0; !e->here && i < PP_ARRAY_LEN(of_process); i++)
		if (!strncmp(key, of_process[i], strlen(of_process[i])))
			return true;
	return false;
}

/* One condition of either kind as truth for the cause; *against when a weak fact denies it. */
static enum pp_truth condition_agrees(const struct pp_explain *e, const struct pp_condition *c,
				      bool excludes, const struct pp_facts *facts,
				      const struct pp_object *o, bool *against)
{
	enum pp_truth truth = pp_condition_test(c, facts, o, NULL);

	if (truth == PP_OPEN)
		return PP_OPEN;
	if ((truth == PP_TRUE) != excludes)
		return PP_TRUE;
	if (!may_differ(e, c->fact))
		return PP_FALSE;
	*against = true;
	return PP_OPEN;
}

static enum pp_truth conditions_agree(const struct pp_explain *e, const struct pp_rule *rule,
				      const struct pp_facts *facts, const struct pp_object *o,
				      bool *against)
{
	enum pp_truth all = PP_TRUE, one;

	for (unsigned int i = 0; i < rule->n_when + rule->n_unless && all != PP_FALSE; i++) {
		bool excludes = i >= rule->n_when;

		one = condition_agrees(e,
				       excludes ? &rule->unless[i - rule->n_when] : &rule->when[i],
				       excludes, facts, o, against);
		if (one != PP_TRUE)
			all = one;
	}
	return all;
}

static enum pp_truth object_agrees(const struct pp_explain *e, const struct pp_known *k,
				   const struct pp_facts *facts, const struct pp_object *o,
				   bool *against)
{
	const char *driver = e->driver[k - e->known->list];
	enum pp_truth truth = conditions_agree(e, &k->rule, facts, o, against), one;

	for (unsigned int i = 0; i < k->n_templates && truth != PP_FALSE; i++) {
		one = template_holds(k->templates[i], driver, k->rule.scope, facts, o);
		if (one == PP_TRUE)
			truth = PP_FALSE;
		else if (one == PP_OPEN)
			truth = PP_OPEN;
	}
	return truth;
}

/*
 * An excluding {driver} speaks of all objects: one hca of that driver is enough. Everything else
 * needs one object that agrees.
 */
static enum pp_truth facts_agree(const struct pp_explain *e, const struct pp_known *k,
				 const struct pp_facts *facts, const struct pp_object **ret_of,
				 bool *ret_against)
{
	const struct pp_object *o = NULL;
	enum pp_truth best = PP_FALSE, one;
	bool any = false;

	*ret_of = NULL;
	*ret_against = false;
	if (!facts || k->rule.n_when + k->rule.n_unless + k->n_templates == 0)
		return PP_OPEN;
	while ((o = pp_object_next(facts, k->rule.scope, o))) {
		bool against = false;

		one = object_agrees(e, k, facts, o, &against);
		any = true;
		if (k->n_templates && one == PP_FALSE)
			return PP_FALSE;
		if (one == PP_TRUE || (one == PP_OPEN && best == PP_FALSE)) {
			if (best != PP_TRUE)
				*ret_of = o;
			*ret_against = against;
			best = one;
		}
	}
	return any ? best : PP_OPEN;
}

static enum pp_truth ranges_agree(const struct pp_explain *e, const struct pp_known *k,
				  const struct pp_facts *facts)
{
	enum pp_truth all = PP_TRUE, one;

	for (unsigned int i = 0; i < k->n_ranges && all != PP_FALSE; i++) {
		one = pp_range_test(&k->ranges[i], &e->components, facts, e->here);
		if (one != PP_TRUE)
			all = one;
	}
	return k->n_ranges ? all : PP_OPEN;
}

/* A problem without facts is decided by its versions alone, and the other way round. */
static enum pp_truth both(enum pp_truth facts, enum pp_truth ranges, const struct pp_known *k)
{
	bool has_facts = k->rule.n_when + k->rule.n_unless + k->n_templates != 0;

	if (facts == PP_FALSE || ranges == PP_FALSE)
		return PP_FALSE;
	if (!k->n_ranges)
		return facts;
	return ranges == PP_TRUE && (facts == PP_TRUE || !has_facts) ? PP_TRUE : PP_OPEN;
}

bool pp_explain_candidate(const struct pp_explain *e, const struct pp_known *k,
			  const struct pp_facts *facts, struct pp_diagnosis *ret)
{
	struct pp_diagnosis d = {.known = k, .certainty = k->alone};
	unsigned int hints;
	bool against;

	if (!text_holds(e, k, &d, &hints))
		return false;
	d.facts = both(facts_agree(e, k, facts, &d.of, &against), ranges_agree(e, k, facts), k);
	if (d.facts == PP_FALSE)
		return false;
	if (hints && k->hinted > d.certainty)
		d.certainty = k->hinted;
	if (d.facts == PP_OPEN && against)
		d.certainty = PP_POSSIBLE;
	if (d.facts == PP_TRUE) {
		if (k->confirmed > d.certainty)
			d.certainty = k->confirmed;
		d.weight += 4;
	}
	if (e->driver[k - e->known->list][0])
		d.driver = e->driver[k - e->known->list];
	*ret = d;
	return true;
}

static bool names(const char *const list[PP_KNOWN_NAMES], const struct pp_known *k)
{
	for (unsigned int i = 0; i < PP_KNOWN_NAMES && list[i]; i++)
		if (!strcmp(list[i], k->rule.id))
			return true;
	return false;
}

/* Whether @b reads the line that speaks for @a, by any of its signatures. */
static bool same_line(const struct pp_explain *e, const struct pp_diagnosis *a,
		      const struct pp_diagnosis *b)
{
	const struct pp_clue *match = &b->known->match;

	if (!a->n_evidence)
		return false;
	for (unsigned int i = 0; i < b->n_evidence; i++)
		if (a->evidence[0]->line == b->evidence[i]->line)
			return true;
	for (unsigned int i = match->first; i < match->first + match->n; i++)
		if (e->seen[i].times && a->evidence[0]->line == e->seen[i].line)
			return true;
	return false;
}

/* A last resort where a narrower rule reads the same line, or another of them stands first. */
static bool resorts(const struct pp_explain *e, const struct pp_diagnosis *list, size_t i, size_t k)
{
	if (!list[k].known->last || i == k)
		return false;
	return same_line(e, &list[k], &list[i]) && (!list[i].known->last || i < k);
}

static int drop_beaten(const struct pp_explain *e, struct pp_diagnosis *list, size_t *n)
{
	bool *beaten = calloc(*n + 1, sizeof(*beaten));
	size_t kept = 0;

	if (!beaten)
		return -ENOMEM;
	for (size_t i = 0; i < *n; i++)
		for (size_t k = 0; k < *n; k++)
			beaten[k] |= resorts(e, list, i, k) ||
				     (i != k && list[i].certainty >= list[k].certainty &&
				      names(list[i].known->beats, list[k].known));
	for (size_t i = 0; i < *n; i++)
		if (!beaten[i])
			list[kept++] = list[i];
	*n = kept;
	free(beaten);
	return 0;
}

static bool is_cause(const struct pp_diagnosis *d)
{
	return d->known->kind == PP_KNOWN_PROBLEM && !d->caused;
}

/* A launcher tells of an end some seconds later; what came longer after has not caused it. */
enum { TOLD_LATE_US = 15 * 1000 * 1000 };

static bool came_after(const struct pp_diagnosis *a, const struct pp_diagnosis *b)
{
	const struct pp_stamp *x = &a->evidence[0]->stamp, *y = &b->evidence[0]->stamp;

	return x->time_us >= 0 && y->time_us >= 0 && x->time_us - y->time_us > TOLD_LATE_US;
}

/* What follows from an earlier problem, and the general consequences of any. */
static void find_causes(struct pp_diagnosis *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct pp_diagnosis *d = &list[i];

		for (size_t k = 0; k < n && d->known->kind != PP_KNOWN_HARMLESS; k++) {
			const struct pp_diagnosis *c = &list[k];

			if (k == i || c->known->kind != PP_KNOWN_PROBLEM)
				continue;
			if (names(d->known->follows, c->known) &&
			    !names(c->known->follows, d->known) && !came_after(c, d))
				d->caused = c->known;
		}
	}
}

/* One line has one cause: where another that is likely remains, none of them is certain. */
static void doubt_rivals(struct pp_diagnosis *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (list[i].certainty != PP_CERTAIN || !is_cause(&list[i]))
			continue;
		for (size_t k = 0; k < n; k++) {
			if (k == i || !is_cause(&list[k]) || list[k].certainty < PP_LIKELY ||
			    list[k].evidence[0]->line != list[i].evidence[0]->line)
				continue;
			list[i].certainty = PP_LIKELY;
		}
	}
}

static int class_of(const struct pp_diagnosis *d)
{
	if (d->known->kind == PP_KNOWN_HARMLESS)
		return 3;
	if (d->known->kind == PP_KNOWN_STATE)
		return 2;
	return d->known->kind == PP_KNOWN_CONSEQUENCE || d->caused ? 1 : 0;
}

static int by_rank(const void *pa, const void *pb)
{
	const struct pp_diagnosis *a = pa, *b = pb;
	/* Of the line that shows it: what only supports it (a command, a sentence) stands anywhere.
	 */
	const struct pp_seen_line *la = a->evidence[0], *lb = b->evidence[0];

	if (class_of(a) != class_of(b))
		return class_of(a) - class_of(b);
	if (a->certainty != b->certainty)
		return (int)b->certainty - (int)a->certainty;
	/* Consequences in the order of their rules: the telling ones stand before general words. */
	if (class_of(a) != 1 && la->line != lb->line)
		return line_before(la, lb) ? -1 : 1;
	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return a->known < b->known ? -1 : a->known > b->known; /* the order of the rules */
}

int pp_explain_rank(const struct pp_explain *e, struct pp_diagnosis *list, size_t *n)
{
	int r = drop_beaten(e, list, n);

	if (r)
		return r;
	find_causes(list, *n);
	doubt_rivals(list, *n);
	if (*n)
		qsort(list, *n, sizeof(*list), by_rank);
	return 0;
}
