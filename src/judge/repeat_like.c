/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May two runs be compared? Each difference is named: one that is not known is one.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "judge/repeat_parts.h"
#include "base/banned.h"

void pp_repeat_differ(struct pp_repeat_case *c, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (c->r->n_differences == PP_REPEAT_DIFFERENCES) {
		c->r->more_differences++;
		return;
	}
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->r->difference[c->r->n_differences++] = pp_arena_str(c->arena, text);
}

/* Both told and the same, or both told to be none. */
static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static const char *name_of(const struct pp_bench_node *n)
{
	return n->id ? n->id : n->host ? n->host : "a node";
}

static const struct pp_bench_node *node_like(const struct pp_bench *b,
					     const struct pp_bench_node *n)
{
	for (unsigned int i = 0; i < b->n_nodes; i++)
		if (same(name_of(&b->nodes[i]), name_of(n)))
			return &b->nodes[i];
	return NULL;
}

static void compare_word(struct pp_repeat_case *c, const char *what, const char *of,
			 const char *before, const char *after)
{
	if (!before || !after)
		pp_repeat_differ(c, "%s of %s is not known %s", what, of,
				 before	 ? "after"
				 : after ? "before"
					 : "in either run");
	else if (strcmp(before, after) != 0)
		pp_repeat_differ(c, "%s of %s: %s before, %s after", what, of, before, after);
}

static void compare_node(struct pp_repeat_case *c, const struct pp_bench_node *before,
			 const struct pp_bench_node *after)
{
	compare_word(c, "software", name_of(before), before->fingerprint, after->fingerprint);
	compare_word(c, "topology class", name_of(before), before->topology, after->topology);
	if (before->simulated != after->simulated)
		pp_repeat_differ(c, "%s was simulated %s only", name_of(before),
				 before->simulated ? "before" : "after");
}

/* A pair's end is an address, a port and a GPU on a node; the device's name may have changed. */
static bool same_end(const struct pp_bench *a, const struct pp_bench_end *x,
		     const struct pp_bench *b, const struct pp_bench_end *y)
{
	return x->node < a->n_nodes && y->node < b->n_nodes &&
	       same(name_of(&a->nodes[x->node]), name_of(&b->nodes[y->node])) &&
	       same(x->hca, y->hca) && x->port == y->port && same(x->gpu, y->gpu) &&
	       same(x->gpu_uuid, y->gpu_uuid);
}

static const struct pp_bench_pair *pair_like(const struct pp_bench *in, const struct pp_bench *of,
					     const struct pp_bench_pair *pair)
{
	for (unsigned int i = 0; i < in->n_pairs; i++) {
		const struct pp_bench_pair *p = &in->pairs[i];

		if (same_end(of, &pair->end[0], in, &p->end[0]) &&
		    same_end(of, &pair->end[1], in, &p->end[1]))
			return p;
	}
	return NULL;
}

const struct pp_bench_pair *pp_repeat_partner(const struct pp_repeat_case *c,
					      const struct pp_bench_pair *pair)
{
	return pair_like(c->after, c->before, pair);
}

static void compare_pairs(struct pp_repeat_case *c, const struct pp_bench *of,
			  const struct pp_bench *in, const char *when)
{
	for (unsigned int i = 0; i < of->n_pairs; i++) {
		const struct pp_bench_pair *p = &of->pairs[i];

		if (!pair_like(in, of, p))
			pp_repeat_differ(c, "the pair %s was measured %s only",
					 p->name ? p->name : "without a name", when);
	}
}

void pp_repeat_nodes(struct pp_repeat_case *c)
{
	for (unsigned int i = 0; i < c->before->n_nodes; i++) {
		const struct pp_bench_node *n = &c->before->nodes[i];
		const struct pp_bench_node *now = node_like(c->after, n);

		if (now)
			compare_node(c, n, now);
		else
			pp_repeat_differ(c, "node %s was there before only", name_of(n));
	}
	for (unsigned int i = 0; i < c->after->n_nodes; i++)
		if (!node_like(c->before, &c->after->nodes[i]))
			pp_repeat_differ(c, "node %s was there after only",
					 name_of(&c->after->nodes[i]));
	if (c->before->simulated != c->after->simulated)
		pp_repeat_differ(c, "the run %s was a simulation",
				 c->before->simulated ? "before" : "after");
	if (c->before->pattern != c->after->pattern)
		pp_repeat_differ(c, "pattern: %s before, %s after",
				 pp_pattern_name(c->before->pattern),
				 pp_pattern_name(c->after->pattern));
	if (!c->before->n_pairs)
		pp_repeat_differ(c, "nothing was measured before");
	compare_pairs(c, c->before, c->after, "before");
	compare_pairs(c, c->after, c->before, "after");
}
