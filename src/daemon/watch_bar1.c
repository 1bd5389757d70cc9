/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is left of each GPU's BAR1 window, by NVML in a helper with a deadline. On a live machine
 * only: a recording's answer comes with the collected node (facts.c).
 *
 * NVML is opened seldom, since its start costs more than all other watchers together, and not at
 * all without the driver. A helper that did not return is not followed by another.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bdf.h"
#include "daemon/watch.h"
#include "mem/bar1.h"
#include "node/ask.h"
#include "base/banned.h"

enum { GPUS = 64 };
static const char DRIVER[] = "/proc/driver/nvidia/gpus";
static const char QUESTION[] = "bar1";

struct gpus {
	struct pp_bdf bdf[GPUS];
	size_t n;
};

struct bar1 {
	bool hung;
};

static void list(struct pp_source *s, struct gpus *ret)
{
	struct pp_names names;

	ret->n = 0;
	if (pp_source_list(s, DRIVER, &names))
		return;
	for (size_t i = 0; i < names.n && ret->n < GPUS; i++)
		if (!pp_bdf_parse_kernel(names.name[i], &ret->bdf[ret->n]))
			ret->n++;
	pp_names_done(&names);
}

/* In the helper. */
static int run(struct pp_json *data, const void *arg, struct pp_error *err)
{
	const struct gpus *g = arg;
	char text[PP_BDF_TEXT];

	(void)err;
	for (size_t i = 0; i < g->n; i++) {
		int64_t total = -1, used = -1;
		struct pp_bar1 b;

		pp_ask_doing("nvmlDeviceGetBAR1MemoryInfo");
		pp_bar1_open(&g->bdf[i], &b);
		pp_bar1_read(&b, &total, &used);
		pp_bar1_close(&b);
		pp_json_object(data, pp_bdf_format(&g->bdf[i], text));
		pp_json_i64(data, "total", total);
		pp_json_i64(data, "used", used);
		pp_json_end_object(data);
	}
	return 0;
}

static int tell(const struct pp_answer *a, const struct pp_bdf *bdf, struct pp_looks *into)
{
	char text[PP_BDF_TEXT];
	const json_t *one = json_object_get(a->data, pp_bdf_format(bdf, text));
	int64_t total, used;

	if (!a->answered)
		return pp_look_unknown(into, PP_SIGNAL_BAR1_FREE, text, "%s", a->detail);
	if (pp_answer_i64(one, "total", &total) || pp_answer_i64(one, "used", &used) || used < 0 ||
	    total < used)
		return pp_look_unknown(into, PP_SIGNAL_BAR1_FREE, text, "NVML does not tell");
	if (!total)
		return 0; /* coherent memory: there is no window that could fill */
	return pp_look_number(into, PP_SIGNAL_BAR1_FREE, text, "nvmlDeviceGetBAR1MemoryInfo",
			      (double)(total - used));
}

static bool still_stuck(struct pp_source *s)
{
	const struct pp_helper none = {0};

	pp_helpers_note(pp_source_helpers(s), &none);
	return pp_source_helpers(s)->n_leaving > 0;
}

static int ask(struct pp_watch_context *at, struct bar1 *b, const struct gpus *g,
	       struct pp_looks *into)
{
	const struct pp_question q = {.name = QUESTION, .run = run, .arg = g};
	struct pp_answer a;
	int r = pp_ask(at->source, &q, &a);

	if (r)
		return r;
	b->hung = a.outcome == PP_TIMEOUT;
	if (a.answered || b->hung)
		r = pp_look_state(into, PP_SIGNAL_HUNG_CALL, QUESTION, b->hung ? a.detail : NULL,
				  "%s", b->hung ? "did not return" : PP_HUNG_CALL_FINE);
	else
		r = pp_look_unknown(into, PP_SIGNAL_HUNG_CALL, QUESTION, "%s", a.detail);
	for (size_t i = 0; !r && i < g->n; i++)
		r = tell(&a, &g->bdf[i], into);
	pp_answer_done(&a);
	return r;
}

/* As before: the helper that asked has not left yet. */
static int tell_stuck(const struct gpus *g, struct pp_looks *into)
{
	char text[PP_BDF_TEXT];
	int r = pp_look_state(into, PP_SIGNAL_HUNG_CALL, QUESTION, NULL, "did not return");

	for (size_t i = 0; !r && i < g->n; i++)
		r = pp_look_unknown(into, PP_SIGNAL_BAR1_FREE, pp_bdf_format(&g->bdf[i], text),
				    "the last question has not returned yet");
	return r;
}

static int look(struct pp_watch_context *at, void **state, struct pp_looks *into,
		struct pp_error *err)
{
	struct bar1 *b = pp_watch_state(state, sizeof(*b));
	struct gpus g;
	int r = b ? 0 : -ENOMEM;

	if (!r && at->live) {
		list(at->source, &g);
		if (b->hung && still_stuck(at->source))
			r = tell_stuck(&g, into);
		else if (g.n)
			r = ask(at, b, &g, into);
	}
	return r ? pp_error_set(err, r, "watching BAR1: %s", pp_source_why(r)) : 0;
}

static void end(void *state)
{
	free(state);
}

const struct pp_watcher pp_watch_bar1 = {
	.name = "bar1", .period_ms = 600000, .look = look, .end = end};
