/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/explain_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

int pp_explain_new(const struct pp_known_set *known, struct pp_explain **ret)
{
	struct pp_explain *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->known = known;
	e->lines = malloc(sizeof(*e->lines));
	e->hits = calloc(1, sizeof(*e->hits));
	e->fields = calloc(1, sizeof(*e->fields));
	e->seen = calloc(known->n_signatures + 1, sizeof(*e->seen));
	e->stamp = calloc(known->n_signatures + 1, sizeof(*e->stamp));
	e->driver = calloc(known->n + 1, sizeof(*e->driver));
	e->shapes = calloc(PP_SHAPES, sizeof(*e->shapes));
	if (!e->lines || !e->hits || !e->fields || !e->seen || !e->stamp || !e->driver ||
	    !e->shapes) {
		pp_explain_free(e);
		return -ENOMEM;
	}
	pp_lines_init(e->lines, pp_explain_line, e);
	pp_derived_init(&e->derived);
	*ret = e;
	return 0;
}

struct pp_explain *pp_explain_free(struct pp_explain *e)
{
	if (!e)
		return NULL;
	free(e->lines);
	free(e->hits);
	free(e->fields);
	free(e->seen);
	free(e->stamp);
	free(e->shapes);
	free(e->driver);
	free(e);
	return NULL;
}

void pp_explain_push(struct pp_explain *e, const char *bytes, size_t len)
{
	e->n_bytes += len;
	pp_lines_push(e->lines, bytes, len);
}

static void end_text(struct pp_explain *e)
{
	uint64_t line = 0, lines;
	const char *sentence;

	if (e->ended)
		return;
	pp_lines_end(e->lines);
	pp_derived_end(&e->derived);
	pp_explain_joined(e);
	e->ended = true;
	lines = e->n_lines;
	for (unsigned int i = 0; i < PP_ARRAY_LEN(e->derived.sentence); i++) {
		sentence = pp_derived_sentence(&e->derived, i, &line);
		if (sentence)
			pp_explain_line(e, sentence, strlen(sentence), line);
	}
	e->n_lines = lines;
}

void pp_explain_here(struct pp_explain *e)
{
	e->here = true;
}

static bool still_there(const struct pp_explanation *x, const struct pp_known *k)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->list[i].known == k)
			return true;
	return false;
}

static void unexplained(const struct pp_explain *e, struct pp_explanation *x)
{
	for (unsigned int i = 0; i < e->n_complaints; i++) {
		const struct pp_complaint *c = &e->complaints[i];
		bool explained = false;

		for (unsigned int n = 0; n < c->n_owners; n++)
			explained |= still_there(x, &e->known->list[c->owners[n]]);
		if (explained)
			continue;
		x->unexplained_lines++;
		if (x->n_unexplained < PP_UNEXPLAINED)
			x->unexplained[x->n_unexplained++] = c->seen;
	}
	x->unexplained_lines += e->more_complaints;
}

/*
 * Where nothing but harmless things was found, a line that only reads like an error is one that
 * nobody explained: "no problem" would be a guess.
 */
static void doubt_harmless(const struct pp_explain *e, struct pp_explanation *x)
{
	if (x->unexplained_lines || !e->word.times || (!x->n && !x->n_formats))
		return;
	for (size_t i = 0; i < x->n; i++)
		if (x->list[i].known->kind != PP_KNOWN_HARMLESS)
			return;
	x->unexplained_lines = e->word.times;
	x->unexplained[x->n_unexplained++] = e->word;
}

int pp_explain_finish(struct pp_explain *e, const struct pp_facts *facts,
		      struct pp_explanation *ret)
{
	struct pp_explanation x = {0};
	size_t kept;
	int r;

	end_text(e);
	x.list = calloc(e->known->n + 1, sizeof(*x.list));
	if (!x.list)
		return -ENOMEM;
	for (size_t i = 0; i < e->known->n; i++) {
		const struct pp_known *k = &e->known->list[i];

		if (k->kind == PP_KNOWN_ALARM)
			continue;
		if (k->kind != PP_KNOWN_FORMAT)
			x.n += pp_explain_candidate(e, k, facts, &x.list[x.n]);
		else if (x.n_formats < PP_UNEXPLAINED && pp_explain_seen(e, &k->match))
			x.formats[x.n_formats++] = k;
	}
	kept = x.n;
	unexplained(e, &x);
	doubt_harmless(e, &x);
	r = pp_explain_rank(e, x.list, &kept);
	if (r) {
		pp_explanation_done(&x);
		return r;
	}
	x.n = kept;
	x.lines = e->n_lines;
	x.bytes = e->n_bytes;
	x.components = &e->components;
	x.here = e->here;
	*ret = x;
	return 0;
}

void pp_explanation_done(struct pp_explanation *x)
{
	free(x->list);
	*x = (struct pp_explanation){0};
}

enum pp_exit pp_explanation_exit(const struct pp_explanation *x)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->list[i].known->kind != PP_KNOWN_HARMLESS)
			return PP_EXIT_BAD;
	if (x->unexplained_lines)
		return PP_EXIT_UNKNOWN;
	return x->n || x->n_formats ? PP_EXIT_PASS : PP_EXIT_UNKNOWN;
}
