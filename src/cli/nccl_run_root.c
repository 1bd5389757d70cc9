/* SPDX-License-Identifier: Apache-2.0 */
/* Why a job failed: the first error of all ranks, and what is known of it. */
#include <stdio.h>

#include "base/parse.h"
#include "cli/nccl_run.h"
#include "judge/explain.h"
#include "nccl/run_logs.h"
#include "base/banned.h"

/* Of each log a part is enough: its beginning, and its end. */
static const uint64_t MOST = (uint64_t)16 << 20;

static void push(void *ctx, const char *name, const char *bytes, size_t len)
{
	(void)name;
	if (bytes)
		pp_explain_push(ctx, bytes, len);
	else
		pp_explain_push(ctx, "\n", 1);
}

/* The best diagnosis of something that went wrong; NULL none. */
static const struct pp_diagnosis *best(const struct pp_explanation *x)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->list[i].known->kind == PP_KNOWN_PROBLEM)
			return &x->list[i];
	return NULL;
}

static void tell(const struct pp_diagnosis *d, const char *line, struct pp_nccl_run *r)
{
	const char *seen = *line ? line : d->n_evidence ? d->evidence[0]->text : "";

	(void)snprintf(r->root_error, sizeof(r->root_error), "%.160s: %.200s (%s)", seen,
		       d->known->rule.cause ? d->known->rule.cause : d->known->rule.title,
		       pp_certainty_name(d->certainty));
	pp_sanitize(r->root_error, false);
}

int pp_nccl_running_root(struct pp_nccl_running *c, const char *dir, const char *line,
			 struct pp_nccl_run *r)
{
	struct pp_explain *reader = NULL;
	const struct pp_facts *facts = c->session.node ? &c->session.node->facts : NULL;
	struct pp_nccl_log_count count;
	struct pp_error err = {0};
	struct pp_explanation x;
	const struct pp_diagnosis *d;
	char others[PATH_MAX];
	int bad = 0;

	(void)snprintf(r->root_error, sizeof(r->root_error), "%s", line);
	if (!c->known && pp_known_load(NULL, &c->known, &err))
		return pp_complain(c->args, PP_EXIT_INTERNAL, "%s", err.text);
	bad = pp_explain_new(c->known, &reader);
	(void)snprintf(others, sizeof(others), "%s/" PP_NCCL_OTHERS, dir);
	if (!bad) {
		(void)pp_nccl_logs_read(dir, MOST, push, reader, &count);
		if (pp_nccl_ranks_many(&c->ranks))
			(void)pp_nccl_logs_read(others, 4 * MOST, push, reader, &count);
	}
	if (!bad)
		bad = pp_explain_finish(reader, facts, &x);
	if (!bad) {
		d = best(&x);
		if (d)
			tell(d, line, r);
		pp_explanation_done(&x);
	}
	(void)pp_explain_free(reader);
	return bad ? pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory") : 0;
}
