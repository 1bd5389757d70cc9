/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/told.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "judge/explain.h"
#include "base/banned.h"

static int load(struct pp_told *t)
{
	struct pp_error err = {0};

	if (!t->known && !t->error)
		t->error = pp_known_load(NULL, &t->known, &err);
	return t->error;
}

/* The first that is a problem; consequences count too: the line is all there is. */
static const struct pp_known *first(const struct pp_explanation *x)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->list[i].known->kind == PP_KNOWN_PROBLEM ||
		    x->list[i].known->kind == PP_KNOWN_CONSEQUENCE)
			return x->list[i].known;
	return NULL;
}

int pp_told_line(struct pp_told *t, const char *line, char *ret, size_t size)
{
	struct pp_explanation x = {0};
	struct pp_explain *e = NULL;
	const struct pp_known *k;
	int r = load(t);

	if (r == -ENOMEM)
		return r;
	if (r) {
		(void)snprintf(ret, size, "%s", line);
		return 0;
	}
	r = pp_explain_new(t->known, &e);
	if (r)
		return r;
	pp_explain_push(e, line, strlen(line));
	pp_explain_push(e, "\n", 1);
	r = pp_explain_finish(e, NULL, &x);
	if (!r) {
		k = first(&x);
		if (k)
			(void)snprintf(ret, size, "%s: %s", k->rule.id, k->rule.title);
		else
			r = -ENOENT;
		pp_explanation_done(&x);
	}
	pp_explain_free(e);
	return r;
}

void pp_told_done(struct pp_told *t)
{
	t->known = pp_known_free(t->known);
}
