/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/prove_application.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/compare_text.h"
#include "cli/prove_library.h"
#include "judge/control.h"
#include "base/banned.h"

static const char MEMBER[] = "canary.json";

static const char *before_name(size_t i, char *ret, size_t size)
{
	(void)snprintf(ret, size, "before/%zu.json", i);
	return ret;
}

/* Nobody's memory is that of a trial: -ENOMEM leaves a->gate NULL. */
static int judge(struct pp_prove_application *a)
{
	const struct pp_trial *after = &a->canary.trial;
	int r = 0;

	if (a->before.n) {
		r = pp_comparison_make(a->before.trial, a->before.n, &after, 1, &a->comparison);
		a->compared = !r;
	}
	a->gate = r ? NULL : calloc(1, sizeof(*a->gate));
	if (!a->gate)
		return -ENOMEM;
	pp_gate_application_judge(after, a->compared ? &a->comparison : NULL, a->gate);
	return 0;
}

static int of_input(int r)
{
	return r == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT;
}

/* A bundle without a workload has none: no error. */
static int open_replayed(const struct pp_args *args, const struct pp_bundle *bundle,
			 struct pp_prove_application *a)
{
	const struct pp_bundle_file *f = pp_bundle_file(bundle, MEMBER);
	struct pp_error err = {0};
	char name[32];
	int r = f ? pp_trial_read(f->path, f->data, f->len, &a->canary.trial, &err) : 0;

	for (size_t i = 0; f && !r && i < PP_COMPARISON_TRIALS; i++) {
		const struct pp_bundle_file *b =
			pp_bundle_file(bundle, before_name(i, name, sizeof(name)));

		if (!b)
			break;
		r = pp_trials_take(&a->before, b->path, b->data, b->len, &err);
	}
	if (f && !r && judge(a))
		r = pp_error_set(&err, -ENOMEM, "out of memory");
	return r ? pp_complain(args, of_input(r), "%s: %s", pp_args_get(args, "replay"), err.text)
		 : 0;
}

static int open_command(const struct pp_args *args, struct pp_prove_application *a)
{
	char self[PATH_MAX];
	const char *const soft[] = {self, "soft", "--"};
	bool simulate = pp_args_has(args, "simulate");
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct pp_error err = {0};
	int code;

	self[n < 0 ? 0 : n] = '\0';
	code = pp_canarying_open(&a->canary, args, pp_args_get(args, "canary"), NULL,
				 simulate ? soft : NULL, simulate ? PP_ARRAY_LEN(soft) : 0);
	if (code)
		return code;
	a->asked = true;
	if (simulate) {
		/* The word lives as long as the trial does. */
		a->canary.argv[0] = (char *)(uintptr_t)pp_arena_str(&a->canary.trial.arena, self);
		a->canary.trial.simulated = true;
	}
	for (size_t i = 0; i < pp_args_count(args, "before"); i++) {
		int r = pp_trials_add(&a->before, pp_args_nth(args, "before", i), &err);

		if (r)
			return pp_complain(args, of_input(r), "--before: %s", err.text);
	}
	return 0;
}

int pp_prove_application_open(const struct pp_args *args, const struct pp_bundle *replayed,
			      struct pp_prove_application *a)
{
	bool canary = pp_args_has(args, "canary"), command = pp_args_operands(args) > 0;

	if (!canary && command)
		return pp_complain(args, PP_EXIT_USAGE,
				   "unexpected operand '%s'; a command to measure goes with "
				   "--canary FILE",
				   pp_args_operand(args, 0));
	if (!canary && pp_args_has(args, "before"))
		return pp_complain(args, PP_EXIT_USAGE, "--before goes with --canary FILE");
	if (canary && (pp_args_has(args, "replay") || pp_args_has(args, "root")))
		return pp_complain(args, PP_EXIT_USAGE,
				   "--%s shows files: a command is measured on a live node only",
				   pp_args_has(args, "root") ? "root" : "replay");
	if (canary && !command)
		return pp_complain(args, PP_EXIT_USAGE,
				   "--canary needs the command that it measures: -- COMMAND");
	if (canary)
		return open_command(args, a);
	return replayed ? open_replayed(args, replayed, a) : 0;
}

int pp_prove_application_run(const struct pp_session *s, const struct pp_prove_library *library,
			     struct pp_prove_application *a)
{
	struct pp_canarying *c = &a->canary;
	int code;

	c->session = s;
	code = pp_canarying_begin(c);
	if (!code && library->gate)
		pp_canary_path(&c->trial, library->runs->arm[PP_NCCL_ARM_UNCHANGED], library->gate);
	code = code ? code : pp_canarying_run(c);
	if (!code && judge(a))
		code = pp_complain(s->args, PP_EXIT_INTERNAL, "out of memory");
	return code;
}

static void emit_json(struct pp_out *o, const struct pp_prove_application *a)
{
	struct pp_json *j = pp_out_json(o);

	pp_out_open(o, "application");
	if (!a->gate) {
		pp_out_str(o, "not_measured", NULL, a->why);
	} else {
		pp_gate_application_write(j, "gate", a->gate);
		pp_json_object(j, "canary");
		pp_trial_write(j, &a->canary.trial);
		pp_json_end_object(j);
	}
	if (a->compared) {
		pp_json_object(j, "comparison");
		pp_comparison_write(j, &a->comparison);
		pp_json_end_object(j);
	}
	pp_out_close(o);
}

void pp_prove_application_emit(struct pp_out *o, const struct pp_prove_application *a)
{
	if (!a->gate && !*a->why)
		return;
	if (pp_out_is_json(o)) {
		emit_json(o, a);
		return;
	}
	pp_out_heading(o, a->gate && a->gate->simulated ? "Gate 4, simulated" : "Gate 4");
	if (!a->gate) {
		pp_out_para(o, 0, "not measured: %s", a->why);
		return;
	}
	if (a->compared)
		pp_compare_text(o, &a->comparison, "Change");
	else
		pp_canary_text(o, &a->canary.trial);
}

int pp_prove_application_files(struct pp_prove_application *a, struct pp_bundle_file *file,
			       size_t *n)
{
	for (size_t i = 0; a->gate && i <= a->before.n; i++) {
		const struct pp_trial *t = i ? a->before.trial[i - 1] : &a->canary.trial;
		char *name = a->name[i];

		if (i)
			(void)before_name(i - 1, name, sizeof(a->name[i]));
		else
			(void)snprintf(name, sizeof(a->name[i]), "%s", MEMBER);
		a->document[i] = pp_canary_document(t);
		if (!a->document[i])
			return -ENOMEM;
		file[(*n)++] =
			(struct pp_bundle_file){name, a->document[i], strlen(a->document[i])};
	}
	return 0;
}

void pp_prove_application_done(struct pp_prove_application *a)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(a->document); i++)
		free(a->document[i]);
	if (a->compared)
		pp_comparison_done(&a->comparison);
	pp_trials_done(&a->before);
	pp_canarying_done(&a->canary);
	free(a->gate);
	*a = (struct pp_prove_application){0};
}
