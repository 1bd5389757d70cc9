/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exit_style.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/out.h"
#include "base/parse.h"
#include "cli/guarded.h"
#include "cli/nfd.h"
#include "cli/session.h"
#include "base/banned.h"

enum style { NATIVE, SLURM, NPD, NAGIOS };

const char *const pp_exit_style_words[] = {"slurm", "npd", "nagios", NULL};
const char *const pp_on_unknown_words[] = {"pass", "fail", NULL};

static const pp_ns QUICK = 5 * PP_SECOND, USUAL = 30 * PP_SECOND, LONGEST = 24 * 3600 * PP_SECOND;

/* What the verb found, native. */
struct answer {
	enum pp_verdict verdict;
	bool is_degraded_fine; /* --fail-on=fail */
	bool usage;
	char text[512]; /* why, on one line */
	json_t *doc;	/* NULL: it printed none */
};

static bool given(const struct pp_args *args, const char *option)
{
	return pp_args_knows(args, option) && pp_args_has(args, option);
}

static const char *value(const struct pp_args *args, const char *option)
{
	return pp_args_knows(args, option) ? pp_args_get(args, option) : NULL;
}

static enum style style_of(const char *word)
{
	for (int i = 0; word && pp_exit_style_words[i]; i++)
		if (!strcmp(word, pp_exit_style_words[i]))
			return (enum style)(SLURM + i);
	return NATIVE;
}

/* Statuses of each style for a verdict; for a command line that is wrong. */
static const struct {
	int status[4]; /* by enum pp_verdict */
	int usage;
	size_t most; /* bytes of the line */
} styles[] = {
	[NATIVE] = {{0, 1, 2, 1}, PP_EXIT_USAGE, 0},
	[SLURM] = {{0, 1, 0, 1}, PP_EXIT_USAGE, 200},
	[NPD] = {{0, 1, 2, 1}, 2, 80},
	[NAGIOS] = {{0, 1, 3, 2}, 3, 1000},
};

static int status_of(enum style style, const struct pp_args *args, const struct answer *a)
{
	const char *unknown = value(args, "on-unknown");

	if (a->usage)
		return styles[style].usage;
	if (a->verdict == PP_DEGRADED && a->is_degraded_fine)
		return 0;
	if (a->verdict == PP_UNKNOWN && unknown && !strcmp(unknown, "fail"))
		return 1;
	return styles[style].status[a->verdict];
}

/* The first gate that the overall verdict is of; of a pass the last, which says most. NULL for a
 * document without gates. */
static const json_t *gate_of(const json_t *doc, const char *verdict)
{
	const json_t *gates = json_object_get(doc, "gates"), *g, *found = NULL;
	const char *word;
	size_t i;

	json_array_foreach(gates, i, g)
	{
		word = json_string_value(json_object_get(g, "verdict"));
		if (!json_is_true(json_object_get(g, "asked")) || !word ||
		    strcmp(word, verdict) != 0)
			continue;
		found = g;
		if (strcmp(verdict, "pass") != 0)
			break;
	}
	return found;
}

/*
 * Why: for unknown what does not return, or what is missing; else the claim, which names the worst
 * finding. A list ends at its first entry.
 */
static void reason(const struct answer *a, char *text, size_t size)
{
	const json_t *gate = gate_of(a->doc, pp_verdict_name(a->verdict));
	const json_t *from = gate ? gate : a->doc;
	const char *claim = json_string_value(json_object_get(from, "claim"));
	const char *raise = json_string_value(json_object_get(from, "raise"));
	const char *stuck = json_string_value(json_array_get(json_object_get(a->doc, "stuck"), 0));

	if (a->verdict == PP_UNKNOWN && stuck)
		(void)snprintf(text, size, "%s", stuck);
	else if (a->verdict == PP_UNKNOWN && raise)
		(void)snprintf(text, size, "%.*s", (int)strcspn(raise, ";"), raise);
	else
		(void)snprintf(text, size, "%s", claim ? claim : "");
}

/* Without a document: the exit status, and what was said on stderr. */
static void without_document(const struct pp_guarded *g, struct answer *a)
{
	const char *said = pp_buf_text(&g->err), *line = said;
	size_t len = strcspn(line, "\n");

	a->usage = !g->why[0] && g->code == PP_EXIT_USAGE;
	a->verdict = g->why[0]		       ? PP_UNKNOWN
		     : g->code == PP_EXIT_PASS ? PP_PASS
		     : g->code == PP_EXIT_BAD  ? PP_FAIL
					       : PP_UNKNOWN;
	if (g->why[0])
		(void)snprintf(a->text, sizeof(a->text), "%s", g->why);
	else if (*said)
		(void)snprintf(a->text, sizeof(a->text), "%.*s", (int)len, line);
	else
		(void)snprintf(a->text, sizeof(a->text), "exit status %d", g->code);
}

static void read_answer(const struct pp_args *args, const struct pp_guarded *g, struct answer *a)
{
	const char *on = value(args, "fail-on"), *word;

	a->is_degraded_fine = on && !strcmp(on, "fail");
	if (!g->why[0])
		a->doc = json_loadb(pp_buf_text(&g->out), g->out.len, 0, NULL);
	word = json_string_value(json_object_get(a->doc, "verdict"));
	if (!a->doc || !word || pp_verdict_parse(word, &a->verdict) || g->code > PP_EXIT_UNKNOWN) {
		without_document(g, a);
	} else {
		/* A simulation that was asked for: its own word decides, as natively. */
		if (json_is_string(json_object_get(a->doc, "simulation")))
			without_document(g, a);
		else
			reason(a, a->text, sizeof(a->text));
	}
	pp_sanitize(a->text, false);
}

/* Text that fits in @most bytes: what leads to a finding goes before the finding does. */
static void fit(const char *verdict, const char *text, size_t most, char *line, size_t size)
{
	const char *colon = strstr(text, ": ");
	size_t len;

	if (strlen(verdict) + 2 + strlen(text) > most && colon && strlen(colon) > 8)
		text = colon + 2;
	len = (size_t)snprintf(line, size < most + 1 ? size : most + 1, "%s%s%s", verdict,
			       *text ? ": " : "", text);
	if (len > most && most > 3)
		(void)snprintf(line + most - 3, 4, "...");
}

/* 'label'=value[unit];warn;crit;min of the monitoring plug-ins; what is no figure is left out. */
static void figures(const struct answer *a, const struct pp_guarded *g, pp_ns limit)
{
	const json_t *gates = json_object_get(a->doc, "gates"), *gate;
	int asked = 0, passed = 0;
	const char *word;
	size_t i;

	(void)printf(" | 'time'=%.3fs;;", (double)g->took / (double)PP_SECOND);
	if (limit)
		(void)printf("%.3f", (double)limit / (double)PP_SECOND);
	(void)printf(";0");
	json_array_foreach(gates, i, gate)
	{
		word = json_string_value(json_object_get(gate, "verdict"));
		if (!json_is_true(json_object_get(gate, "asked")))
			continue;
		asked++;
		passed += word && !strcmp(word, "pass");
	}
	if (asked)
		(void)printf(" 'gates_passed'=%d;%d:;;0;%d", passed, asked, asked);
}

static void print_line(enum style style, const struct pp_args *args, const struct answer *a,
		       const struct pp_guarded *g, pp_ns limit, size_t most)
{
	static const char *const nagios[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
	int status = status_of(style, args, a);
	char line[1024];

	fit(pp_verdict_name(a->verdict), a->text, most, line, sizeof(line));
	if (style == NAGIOS) {
		for (char *c = line; *c; c++)
			*c = *c == '|' ? '/' : *c;
		(void)printf("PEERPATH %s - %s", nagios[status], line);
		figures(a, g, limit);
		(void)printf("\n");
	} else if (style == NPD) {
		(void)printf("%s\n", line);
	} else if (status) {
		(void)printf("peerpath: %s\n", line);
	} else if (a->verdict != PP_PASS) {
		/* What lets a node pass though it is not known to be good is for the log alone. */
		(void)fprintf(stderr, "peerpath: %s\n", line);
	}
}

/* --quick without a style, and no answer in time: the verdict is known all the same. */
static int say_late(const struct pp_args *args, const struct pp_guarded *g)
{
	struct pp_session s;
	int code = pp_session_open_output(args, &s);

	if (code)
		return code;
	pp_out_document(s.out, "peerpath.prove/1");
	pp_out_str(s.out, "version", NULL, PEERPATH_VERSION);
	pp_out_verdict(s.out, "verdict", "overall", PP_UNKNOWN);
	pp_out_str(s.out, "unfinished", "why", g->why);
	return pp_session_close(&s, PP_EXIT_UNKNOWN);
}

static int relay(const struct pp_args *args, const struct pp_guarded *g)
{
	char text[128];
	int r;

	(void)fwrite(pp_buf_text(&g->err), 1, g->err.len, stderr);
	if (g->why[0])
		return say_late(args, g);
	r = pp_fd_write(STDOUT_FILENO, pp_buf_text(&g->out), g->out.len);
	if (r && g->code <= PP_EXIT_UNKNOWN)
		return pp_complain(args, PP_EXIT_INTERNAL, "cannot write the output: %s",
				   pp_errno_text(r, text, sizeof(text)));
	return g->code;
}

static int translate(enum style style, const struct pp_args *args, const struct pp_guarded *g,
		     pp_ns limit)
{
	const char *text = value(args, "max-output");
	uint64_t most = styles[style].most;
	struct answer a = {0};
	int status;

	if (text)
		(void)pp_parse_u64(text, 1, 1000, &most); /* was looked at before the run */
	read_answer(args, g, &a);
	/* With a document, stderr holds remarks; without, its first line is the text already. */
	if (a.doc)
		(void)fwrite(pp_buf_text(&g->err), 1, g->err.len, stderr);
	print_line(style, args, &a, g, limit, most);
	status = status_of(style, args, &a);
	json_decref(a.doc);
	if (pp_help_finish() && !status)
		status = styles[style].usage;
	return status;
}

/*
 * How long the run may take, and how long it may ask drivers: the rest is for judging. 0: the verb
 * has no limit. Usage error for what is no time.
 */
static int limits(struct pp_args *args, bool quick, pp_ns *ret_limit, char *asking, size_t size)
{
	const char *text = value(args, "deadline");
	pp_ns limit = quick ? QUICK : USUAL, judging;

	*ret_limit = 0;
	if (!pp_args_knows(args, "deadline") || (!quick && !strcmp(pp_args_verb(args), "prove")))
		return 0;
	if (text && (pp_parse_duration(text, LONGEST, &limit) || limit == 0))
		return pp_complain(
			args, PP_EXIT_USAGE,
			"--deadline does not take '%s': a time such as 30, 30s, 500ms or 2m", text);
	judging = limit / 5 < PP_SECOND ? limit / 5 : PP_SECOND;
	(void)snprintf(asking, size, "%lldms", (long long)((limit - judging) / PP_MILLISECOND));
	if (limit - judging >= PP_MILLISECOND)
		pp_args_imply(args, "deadline", asking);
	*ret_limit = limit;
	return 0;
}

/* What goes with a style alone, or with one of them. */
static int check(const struct pp_args *args, enum style style)
{
	uint64_t most;

	if (style != SLURM && given(args, "on-unknown"))
		return pp_complain(args, PP_EXIT_USAGE,
				   "--on-unknown goes with --exit-style=slurm");
	if (!style && given(args, "max-output"))
		return pp_complain(args, PP_EXIT_USAGE, "--max-output goes with --exit-style");
	if (style && given(args, "json"))
		return pp_complain(args, PP_EXIT_USAGE,
				   "--exit-style prints one line, so it takes no --json");
	if (given(args, "max-output") &&
	    pp_parse_u64(pp_args_get(args, "max-output"), 16, 1000, &most))
		return pp_complain(args, PP_EXIT_USAGE,
				   "--max-output does not take '%s': 16 to 1000 bytes",
				   pp_args_get(args, "max-output"));
	return 0;
}

int pp_exit_style_run(const struct pp_verb *verb, struct pp_args *args)
{
	enum style style = style_of(value(args, "exit-style"));
	bool quick = given(args, "quick");
	struct pp_guarded g;
	char asking[32], text[128];
	pp_ns limit = 0;
	int r = check(args, style);

	if (!r && !style && !quick)
		return verb->run(args);
	r = r ? r : limits(args, quick, &limit, asking, sizeof(asking));
	if (r)
		return styles[style].usage;
	if (style)
		pp_args_imply(args, "json", NULL);
	r = pp_guarded_run(verb, args, limit, &g);
	if (r) {
		g = (struct pp_guarded){0};
		(void)snprintf(g.why, sizeof(g.why), "no process for the run: %s",
			       pp_errno_text(r, text, sizeof(text)));
	}
	if (g.why[0] && given(args, "nfd"))
		(void)pp_nfd_write(args, NULL, NULL);
	r = style ? translate(style, args, &g, limit) : relay(args, &g);
	pp_guarded_done(&g);
	return r;
}

int pp_exit_style_usage(int argc, char *const *argv)
{
	static const char option[] = "--exit-style";
	enum style style = NATIVE;

	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], option, sizeof(option) - 1) != 0)
			continue;
		if (argv[i][sizeof(option) - 1] == '=')
			style = style_of(argv[i] + sizeof(option));
		else if (i + 1 < argc)
			style = style_of(argv[i + 1]);
	}
	return styles[style].usage;
}
