/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of what was called on the way to a registration.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "mem/way.h"
#include "node/ask.h"
#include "base/banned.h"

static int64_t bar1_used(const struct pp_registering *g)
{
	int64_t used = -1;

	if (g->memory->cuda)
		pp_bar1_read(&g->memory->cuda->bar1, /* total= */ NULL, &used);
	return used;
}

/* With the device's name: where a call hangs, that is who is to blame. */
static void announce(const struct pp_registering *g, const char *call)
{
	const struct ibv_context *context = g->pd->context;
	char text[128];

	(void)snprintf(text, sizeof(text), "%s (%.64s)", call,
		       context && context->device ? context->device->name : "?");
	pp_ask_doing(text);
}

struct pp_attempt *pp_attempt_begin(struct pp_registering *g, const char *call, const char *fmt,
				    ...)
{
	struct pp_registered *r = g->result;
	struct pp_attempt *a = NULL;
	va_list ap;

	if (r->n_attempts == PP_ATTEMPTS) {
		r->attempts_lost++;
	} else {
		a = &r->attempt[r->n_attempts++];
		*a = (struct pp_attempt){.how = g->how, .bar1_before = bar1_used(g)};
		(void)snprintf(a->call, sizeof(a->call), "%s", call);
		va_start(ap, fmt);
		(void)vsnprintf(a->arguments, sizeof(a->arguments), fmt, ap);
		va_end(ap);
	}
	announce(g, call);
	g->start = pp_clock_monotonic();
	errno = 0;
	return a;
}

static void end(struct pp_registering *g, struct pp_attempt *a, int error)
{
	a->took = pp_clock_monotonic() - g->start;
	a->error = error;
	a->bar1_after = bar1_used(g);
}

void pp_attempt_end(struct pp_registering *g, struct pp_attempt *a, int error)
{
	if (!a)
		return;
	end(g, a, error);
	if (error)
		(void)snprintf(a->name, sizeof(a->name), "%s", pp_errno_name(error));
}

void pp_attempt_end_cuda(struct pp_registering *g, struct pp_attempt *a, int code)
{
	const char *name = NULL;

	if (!a)
		return;
	end(g, a, code);
	a->cuda = true;
	if (code)
		(void)(g->memory->cuda->call.error_name &&
		       g->memory->cuda->call.error_name(code, &name));
	if (code)
		(void)snprintf(a->name, sizeof(a->name), "%s", name ? name : "CUDA error");
}

int pp_verb_errno(const struct ibv_mr *mr)
{
	return mr ? 0 : errno > 0 ? errno : EIO;
}

static void write_one(struct pp_json *j, const struct pp_attempt *a)
{
	pp_json_object(j, NULL);
	pp_json_str(j, "registration", pp_registration_name(a->how));
	pp_json_str(j, "call", a->call);
	pp_json_str(j, "arguments", a->arguments);
	pp_json_i64(j, a->cuda ? "cuda_result" : "errno", a->error);
	pp_json_str(j, "error", a->name[0] ? a->name : NULL);
	pp_json_i64(j, "took_ns", a->took);
	if (a->bar1_before >= 0 && a->bar1_after >= 0) {
		pp_json_i64(j, "bar1_used_before_bytes", a->bar1_before);
		pp_json_i64(j, "bar1_used_after_bytes", a->bar1_after);
	}
	pp_json_end_object(j);
}

void pp_attempts_write(struct pp_json *j, const char *key, const struct pp_registered *r)
{
	pp_json_array(j, key);
	for (unsigned int i = 0; i < r->n_attempts; i++)
		write_one(j, &r->attempt[i]);
	pp_json_end_array(j);
}
