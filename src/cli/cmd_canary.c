/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath canary: an application as it is now, measured the way a file declares, for a comparison
 * with itself after a change.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "bundle/capture.h"
#include "cli/canary.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "base/banned.h"

static int read_file(struct pp_canarying *c)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_CANARY_FILE);
	const char *file = pp_args_get(c->args, "file");
	struct pp_error err = {0};
	uint64_t n;
	int r;

	if (!file)
		return pp_complain(c->args, PP_EXIT_USAGE,
				   "--file names what is measured; man peerpath-canary has one");
	r = pp_input_read(file, &text, &err);
	if (!r)
		r = pp_canary_parse(pp_input_name(file), pp_buf_text(&text), text.len,
				    &c->trial.canary, &err);
	if (r)
		return pp_complain(c->args, r == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT, "%s",
				   err.text);
	c->repeats = c->trial.canary.repeats;
	if (!pp_args_has(c->args, "repeats"))
		return 0;
	if (pp_parse_u64(pp_args_get(c->args, "repeats"), 1, PP_CANARY_REPEATS, &n))
		return pp_complain(c->args, PP_EXIT_USAGE, "--repeats takes 1 to %d",
				   PP_CANARY_REPEATS);
	c->repeats = (size_t)n;
	return 0;
}

static int read_command(struct pp_canarying *c)
{
	size_t n = pp_args_operands(c->args);

	c->argv = calloc(n + 1, sizeof(*c->argv));
	if (!c->argv)
		return pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory");
	for (size_t i = 0; i < n; i++)
		c->argv[i] = (char *)(uintptr_t)pp_args_operand(c->args, i);
	return 0;
}

static struct pp_capture_options target(const struct pp_args *args)
{
	return (struct pp_capture_options){.path = pp_args_get(args, "output"),
					   .force = pp_args_has(args, "force"),
					   .stopped = pp_interrupted};
}

/* Where the bundle can not be written is said before the runs. */
static int check_target(const struct pp_args *args)
{
	const struct pp_capture_options options = target(args);
	struct pp_error err = {0};
	int r = pp_args_has(args, "output") ? pp_capture_check(&options, &err) : 0;

	return r ? pp_complain(args, pp_exit_of_writing(r), "%s", err.text) : 0;
}

/* Warm-up first: the same run, and nothing of it is kept. */
static int runs(struct pp_canarying *c)
{
	struct pp_trial *t = &c->trial;
	size_t warmup = t->canary.warmup;
	struct pp_trial_run unkept;
	char label[32];
	int code = 0;

	t->run = pp_arena_array(&t->arena, c->repeats, sizeof(*t->run));
	if (!t->run)
		return pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory");
	for (size_t i = 0; !code && i < warmup + c->repeats; i++) {
		struct pp_trial_run *run = i < warmup ? &unkept : &t->run[t->n_runs];

		(void)snprintf(label, sizeof(label), "run-%zu", i);
		*run = (struct pp_trial_run){0};
		code = pp_canary_run(c, label, run);
		if (code || i < warmup)
			continue;
		t->n_runs++;
		if (run->void_why)
			(void)fprintf(stderr, "peerpath canary: run %zu is void: %s\n", t->n_runs,
				      run->void_why);
	}
	return code;
}

static void emit(const struct pp_canarying *c, struct pp_out *o)
{
	pp_out_document(o, "peerpath.canary/1");
	pp_out_str(o, "version", NULL, PEERPATH_VERSION);
	if (pp_out_is_json(o))
		pp_trial_write(pp_out_json(o), &c->trial);
	else
		pp_canary_text(o, &c->trial);
}

/* canary.json: the JSON document whatever the terminal got. malloc'ed; NULL: no memory. */
static char *document(const struct pp_canarying *c)
{
	char *PP_AUTO_FREE text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct pp_out *o = f ? pp_out_new(true, f, 0, false) : NULL;
	bool good = o != NULL;

	if (o) {
		emit(c, o);
		good = !pp_out_finish(o);
	}
	pp_out_free(o);
	if (f && fclose(f))
		good = false;
	return good ? pp_take(text) : NULL;
}

static int write_bundle(struct pp_canarying *c)
{
	char *PP_AUTO_FREE text = document(c);
	struct pp_bundle_file file = {"canary.json", text, text ? strlen(text) : 0};
	struct pp_capture_options options = target(c->args);
	struct pp_captured captured;
	struct pp_error err = {0};
	int r;

	if (!pp_args_has(c->args, "output"))
		return 0;
	if (!text)
		return pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory");
	options.files = &file;
	options.n_files = 1;
	pp_capture_names(c->session.src);
	r = pp_capture_write(c->session.node, c->session.record, &options, &captured, &err);
	if (r)
		return pp_complain(c->args, pp_exit_of_writing(r), "%s", err.text);
	pp_out_str(c->session.out, "bundle", "bundle", captured.path);
	return 0;
}

static int examine(struct pp_canarying *c)
{
	struct pp_error err = {0};
	int code = pp_session_open(c->args, true, &c->session);

	if (!code && pp_canary_node(&c->trial, c->session.node))
		code = pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory");
	if (!code && pp_place_make(PP_PLACE_LOGS, &c->place, &err))
		code = pp_complain(c->args, PP_EXIT_INTERNAL, "%s", err.text);
	if (!code)
		c->trial.simulated = c->trial.node[0].simulated;
	code = code ? code : pp_canary_evidence(c);
	code = code ? code : runs(c);
	if (!code) {
		emit(c, c->session.out);
		code = write_bundle(c);
		c->session.answered = true;
	}
	if (!code && !pp_trial_valid(&c->trial))
		code = PP_EXIT_UNKNOWN;
	pp_place_done(&c->place);
	return pp_session_close(&c->session, code);
}

int pp_cmd_canary(const struct pp_args *args)
{
	struct pp_canarying *c = calloc(1, sizeof(*c));
	int code;

	if (!c)
		return pp_complain(args, PP_EXIT_INTERNAL, "out of memory");
	c->args = args;
	c->trial.arena = PP_ARENA((size_t)PP_TRIAL_BYTES * 4);
	code = read_file(c);
	code = code ? code : read_command(c);
	code = code ? code : check_target(args);
	code = code ? code : examine(c);
	pp_trial_done(&c->trial);
	free(c->argv);
	free(c);
	return code;
}
