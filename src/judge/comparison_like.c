/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May the two arms be compared? Every trial is held against the first of its own side: what differs
 * inside a side is one finding, what differs between the sides another, and only the latter may be
 * declared. Topology can not be: another class is another machine.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "judge/comparison_parts.h"
#include "base/banned.h"

enum { WORDS = 512 };

static const char *const when[] = {"before", "after"};

static bool equal(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static const char *or_unknown(const char *text)
{
	return text ? text : "not known";
}

static bool has(const char *const *list, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], text))
			return true;
	return false;
}

static PP_PRINTF(2, 3) void differ(struct pp_comparison_case *k, const char *fmt, ...)
{
	struct pp_comparison *c = k->c;
	char text[WORDS];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (has(c->difference, c->n_differences, text))
		return;
	if (c->n_differences == PP_COMPARISON_DIFFERENCES)
		c->more_differences++;
	else
		c->difference[c->n_differences++] = pp_arena_str(&c->arena, text);
}

static void note_declared(struct pp_comparison_case *k, const char *what, const char *before,
			  const char *after)
{
	struct pp_comparison *c = k->c;
	char text[WORDS];

	(void)snprintf(text, sizeof(text), "%.60s: %.180s before, %.180s after", what,
		       or_unknown(before), or_unknown(after));
	if (!has(c->declared, c->n_declared, text) && c->n_declared < PP_COMPARISON_DIFFERENCES)
		c->declared[c->n_declared++] = pp_arena_str(&c->arena, text);
}

/* Is a difference of this fact declared, by any trial after the change? */
static bool is_declared(const struct pp_comparison_case *k, const char *fact)
{
	const struct pp_comparison_arm *after = &k->arm[1];

	for (size_t t = 0; t < after->n; t++)
		for (size_t i = 0; i < after->trial[t]->canary.n_changed; i++)
			for (const struct pp_change_word *w = pp_change_words; w->word; w++)
				if (w->fact && !strcmp(w->fact, fact) &&
				    !strcmp(w->word, after->trial[t]->canary.changed[i]))
					return true;
	return false;
}

static const char *key_of(const struct pp_canary *c, const char *name)
{
	for (size_t i = 0; i < c->n_keys; i++)
		if (!strcmp(c->key[i].name, name))
			return c->key[i].value;
	return NULL;
}

/* Each key of @a in @b; the other way round @only_missing, so that no difference is named twice. */
static void workload(struct pp_comparison_case *k, const struct pp_canary *a,
		     const struct pp_canary *b, bool only_missing)
{
	for (size_t i = 0; i < a->n_keys; i++) {
		const char *other = key_of(b, a->key[i].name);

		if (other && (only_missing || !strcmp(other, a->key[i].value)))
			continue;
		differ(k, "workload's %.60s: %.160s, and %.160s", a->key[i].name, a->key[i].value,
		       other ? other : "not given");
	}
}

static bool same_number(double a, double b)
{
	return isnan(a) ? isnan(b) : a == b;
}

static bool same_metric(const struct pp_metric *a, const struct pp_metric *b)
{
	return a->source == b->source && equal(a->what, b->what) && a->reduce == b->reduce &&
	       a->skip == b->skip && equal(a->unit, b->unit) &&
	       a->higher_is_better == b->higher_is_better && a->margin == b->margin &&
	       a->is_ratio == b->is_ratio && same_number(a->slo, b->slo) &&
	       a->is_host == b->is_host;
}

const struct pp_metric *pp_trial_metric(const struct pp_trial *t, const char *name)
{
	for (size_t i = 0; i < t->canary.n_metrics; i++)
		if (!strcmp(t->canary.metric[i].name, name))
			return &t->canary.metric[i];
	return NULL;
}

static void metrics(struct pp_comparison_case *k, const struct pp_trial *a,
		    const struct pp_trial *b)
{
	for (size_t i = 0; i < a->canary.n_metrics; i++) {
		const struct pp_metric *m = &a->canary.metric[i], *n = pp_trial_metric(b, m->name);

		if (!n)
			differ(k, "metric %.64s is not declared in every file", m->name);
		else if (!same_metric(m, n))
			differ(k, "metric %.64s is declared in different ways", m->name);
	}
}

static const char *fact_of(const struct pp_trial_node *n, const char *key)
{
	for (size_t i = 0; i < n->n_facts; i++)
		if (!strcmp(n->fact[i].key, key))
			return n->fact[i].value;
	return NULL;
}

/* A difference inside a side: a cluster of several states is none. */
static void mixed(struct pp_comparison_case *k, int side, const struct pp_trial_node *a,
		  const struct pp_trial_node *b)
{
	if (!equal(a->topology_class, b->topology_class))
		differ(k, "topology class is mixed %s: of %.60s and %.60s", when[side], a->id,
		       b->id);
	for (size_t i = 0; i < a->n_facts; i++) {
		const char *other = fact_of(b, a->fact[i].key);

		if (!equal(a->fact[i].value, other))
			differ(k, "%.60s is mixed %s: %.140s on %.60s, %.140s on %.60s",
			       a->fact[i].key, when[side], or_unknown(a->fact[i].value), a->id,
			       or_unknown(other), b->id);
	}
}

static void between(struct pp_comparison_case *k, const struct pp_trial_node *a,
		    const struct pp_trial_node *b)
{
	/* Two classes that nobody knows are not the same class. */
	if (!a->topology_class || !b->topology_class)
		differ(k, "topology class is not known of %.60s",
		       a->topology_class ? b->id : a->id);
	else if (strcmp(a->topology_class, b->topology_class) != 0)
		differ(k, "topology class: %.80s before, %.80s after", a->topology_class,
		       b->topology_class);
	if (a->simulated != b->simulated)
		differ(k, "simulated %s only", when[b->simulated]);
	for (size_t i = 0; i < a->n_facts; i++) {
		const char *key = a->fact[i].key, *x = a->fact[i].value, *y = fact_of(b, key);

		if (equal(x, y))
			continue;
		if (is_declared(k, key))
			note_declared(k, key, x, y);
		else
			differ(k, "%.60s: %.180s before, %.180s after", key, or_unknown(x),
			       or_unknown(y));
	}
	for (size_t i = 0; i < b->n_facts; i++)
		if (!fact_of(a, b->fact[i].key) && b->fact[i].value &&
		    !is_declared(k, b->fact[i].key))
			differ(k, "%.60s: not known before, %.180s after", b->fact[i].key,
			       b->fact[i].value);
}

static void nodes(struct pp_comparison_case *k)
{
	const struct pp_trial_node *first[2] = {NULL, NULL};

	for (int side = 0; side < 2; side++)
		for (size_t t = 0; t < k->arm[side].n; t++) {
			const struct pp_trial *trial = k->arm[side].trial[t];

			if (!trial->n_nodes)
				differ(k, "no node is known of a trial %s", when[side]);
			for (size_t i = 0; i < trial->n_nodes; i++) {
				if (first[side])
					mixed(k, side, first[side], &trial->node[i]);
				else
					first[side] = &trial->node[i];
			}
		}
	if (first[0] && first[1])
		between(k, first[0], first[1]);
}

/* Of one side alone: an exercise of the chain beside the real thing, if that is what was declared.
 */
static void simulated(struct pp_comparison_case *k, bool before, bool after)
{
	if (before == after)
		return;
	if (is_declared(k, "simulated"))
		note_declared(k, "simulated", before ? "yes" : "no", after ? "yes" : "no");
	else
		differ(k, "simulated %s only", when[after]);
}

void pp_comparison_liken(struct pp_comparison_case *k)
{
	const struct pp_trial *first = k->arm[0].trial[0];

	for (int side = 0; side < 2; side++)
		for (size_t t = 0; t < k->arm[side].n; t++) {
			const struct pp_trial *other = k->arm[side].trial[t];

			workload(k, &first->canary, &other->canary, false);
			workload(k, &other->canary, &first->canary, true);
			metrics(k, first, other);
			metrics(k, other, first);
			if (k->arm[side].trial[0]->simulated != other->simulated)
				differ(k, "some trials %s are simulated, others are not",
				       when[side]);
		}
	simulated(k, first->simulated, k->arm[1].trial[0]->simulated);
	nodes(k);
	k->c->alike = !k->c->n_differences;
}
