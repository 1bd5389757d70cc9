/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why something failed: the line that a library would have printed goes through the same known
 * problems as a log does (judge/explain.h), with the facts of the node where it failed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "judge/explain.h"
#include "judge/field_words.h"
#include "judge/transfer_parts.h"
#include "base/banned.h"

enum { LINE = 1024 };

const char *pp_failure_text(struct pp_transfer_case *c, const struct pp_failure *f)
{
	char text[128];

	if (f->status > 0 && f->status < PP_STATUS_WORDS)
		return pp_arena_printf(c->arena, "status %d, %s", f->status,
				       pp_status_words[f->status].text);
	if (f->status)
		return pp_arena_printf(c->arena, "status %d", f->status);
	if (f->error && f->cuda)
		return pp_arena_printf(c->arena, "CUDA error %d", f->error);
	return f->error ? pp_arena_str(c->arena, pp_errno_text(f->error, text, sizeof(text))) : "";
}

static const char *memory_words(enum pp_memory_kind kind)
{
	static const char *const words[] = {
		[PP_MEMORY_HOST] = "host memory",
		[PP_MEMORY_CUDA] = "GPU memory (cuda)",
		[PP_MEMORY_CUDA_VMM] = "GPU memory (cuda, VMM)",
		[PP_MEMORY_SIM] = "memory",
	};

	return words[kind];
}

/* First that is a problem of its own, and not merely the area in which to look. */
static const struct pp_known *best(const struct pp_explanation *x)
{
	for (size_t i = 0; i < x->n; i++) {
		const struct pp_known *k = x->list[i].known;

		if (k->kind == PP_KNOWN_PROBLEM && !k->last)
			return k;
	}
	return NULL;
}

/* Numbers only: words of one errno are part of another's, as with 95 and 524. */
static void spell(struct pp_transfer_case *c, enum pp_rung rung, const struct pp_failure *f,
		  char line[LINE])
{
	const char *memory = memory_words(c->p->rung[rung].memory);

	if (f->status)
		(void)snprintf(line, LINE, "completion with error: status %d\n", f->status);
	else
		(void)snprintf(line, LINE, "%s of %s failed: %s %d\n", f->call ? f->call : "a call",
			       memory, f->cuda ? "CUDA error" : "errno", f->error);
}

const char *pp_transfer_cause(struct pp_transfer_case *c, enum pp_rung rung,
			      const struct pp_failure *f, const char **ret_next)
{
	const struct pp_known *k = NULL;
	struct pp_explain *e = NULL;
	struct pp_explanation x = {0};
	char line[LINE];

	if (!c->known || (!f->error && !f->status) || pp_explain_new(c->known, &e))
		return NULL;
	spell(c, rung, f, line);
	pp_explain_push(e, line, strlen(line));
	if (c->facts)
		pp_explain_here(e);
	if (!pp_explain_finish(e, c->facts, &x))
		k = best(&x);
	pp_explanation_done(&x);
	pp_explain_free(e);
	if (!k)
		return NULL;
	if (k->rule.next)
		*ret_next = k->rule.next;
	return k->rule.id; /* of the set, which outlives the verdict */
}
