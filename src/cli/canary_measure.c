/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/canary.h"
#include "cli/input.h"
#include "soft/abi/witness.h"
#include "base/banned.h"

static const size_t COMMAND_MOST = 4096;

static int read_file(struct pp_canarying *c, const char *file, const char *repeats)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_CANARY_FILE);
	struct pp_error err = {0};
	uint64_t n;
	int r = pp_input_read(file, &text, &err);

	if (!r)
		r = pp_canary_parse(pp_input_name(file), pp_buf_text(&text), text.len,
				    &c->trial.canary, &err);
	if (r)
		return pp_complain(c->args, r == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_INPUT, "%s",
				   err.text);
	c->repeats = c->trial.canary.repeats;
	if (!repeats)
		return 0;
	if (pp_parse_u64(repeats, 1, PP_CANARY_REPEATS, &n))
		return pp_complain(c->args, PP_EXIT_USAGE, "--repeats takes 1 to %d",
				   PP_CANARY_REPEATS);
	c->repeats = (size_t)n;
	return 0;
}

static int read_command(struct pp_canarying *c, const char *const *before, size_t n_before)
{
	size_t n = pp_args_operands(c->args);

	c->argv = calloc(n_before + n + 1, sizeof(*c->argv));
	if (!c->argv)
		return pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory");
	for (size_t i = 0; i < n_before; i++)
		c->argv[i] = (char *)(uintptr_t)before[i];
	for (size_t i = 0; i < n; i++)
		c->argv[n_before + i] = (char *)(uintptr_t)pp_args_operand(c->args, i);
	return 0;
}

/*
 * What is run is part of what the workload is: two commands under one name are not one workload.
 * Who has to change the command says in the file what stays the same.
 */
static int declare_command(struct pp_canarying *c)
{
	struct pp_canary *canary = &c->trial.canary;
	struct pp_buf PP_AUTO_BUF text = PP_BUF(COMMAND_MOST);

	for (size_t i = 0; i < canary->n_keys; i++)
		if (!strcmp(canary->key[i].name, "command"))
			return 0;
	if (canary->n_keys == PP_CANARY_KEYS)
		return pp_complain(
			c->args, PP_EXIT_INPUT,
			"[workload] has %d keys, and no room for the command beside them",
			PP_CANARY_KEYS);
	for (size_t i = 0; i < pp_args_operands(c->args); i++)
		pp_buf_printf(&text, "%s%s", i ? " " : "", pp_args_operand(c->args, i));
	if (text.failed) /* longer: its beginning stands for it */
		text.failed = 0;
	if (text.data)
		pp_sanitize(text.data, false);
	canary->key[canary->n_keys++] =
		(struct pp_canary_key){"command", pp_arena_str(&canary->arena, pp_buf_text(&text))};
	return canary->arena.failed ? pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory") : 0;
}

int pp_canarying_open(struct pp_canarying *c, const struct pp_args *args, const char *file,
		      const char *repeats, const char *const *before, size_t n_before)
{
	int code;

	*c = (struct pp_canarying){.args = args};
	c->trial.arena = PP_ARENA((size_t)PP_TRIAL_BYTES * 4);
	code = read_file(c, file, repeats);
	code = code ? code : read_command(c, before, n_before);
	return code ? code : declare_command(c);
}

int pp_canarying_begin(struct pp_canarying *c)
{
	struct pp_error err = {0};

	if (pp_canary_node(&c->trial, c->session->node))
		return pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory");
	if (pp_place_make(PP_PLACE_LOGS, &c->place, &err))
		return pp_complain(c->args, PP_EXIT_INTERNAL, "%s", err.text);
	c->trial.simulated |= c->trial.node[0].simulated;
	/* What runs on the software device is no hardware's, whoever started it there. */
	(void)snprintf(c->witness, sizeof(c->witness), "%s/simulated", c->place.path);
	return setenv(SOFT_WITNESS, c->witness, 1)
		       ? pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory")
		       : 0;
}

/* Warm-up first: the same run, and nothing of it is kept. */
int pp_canarying_run(struct pp_canarying *c)
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
			(void)pp_complain(c->args, 0, "run %zu is void: %s", t->n_runs,
					  run->void_why);
	}
	c->trial.simulated |= !access(c->witness, F_OK);
	return code;
}

char *pp_canary_document(const struct pp_trial *t)
{
	char *PP_AUTO_FREE text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct pp_out *o = f ? pp_out_new(true, f, 0, false) : NULL;
	bool good = o != NULL;

	if (o) {
		pp_out_document(o, "peerpath.canary/1");
		pp_out_str(o, "version", NULL, PEERPATH_VERSION);
		pp_trial_write(pp_out_json(o), t);
		good = !pp_out_finish(o);
	}
	pp_out_free(o);
	if (f && fclose(f))
		good = false;
	return good ? pp_take(text) : NULL;
}

void pp_canarying_done(struct pp_canarying *c)
{
	if (*c->witness)
		(void)unsetenv(SOFT_WITNESS);
	pp_place_done(&c->place);
	pp_trial_done(&c->trial);
	free(c->argv);
	*c = (struct pp_canarying){0};
}
