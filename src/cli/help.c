/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help and completion, both from the verb table.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/words.h"
#include "cli/verb.h"
#include "base/banned.h"

enum { WIDTH = 80, OPTION_TEXT = 27 };

static const char USUAL_EXITS[] =
	"0 pass, 1 measured and bad (degraded too, unless --fail-on=fail), 2 no verdict";
static const char OTHER_EXITS[] =
	"64 usage, 65 unreadable or tampered input, 70 internal, 130 interrupted.";

/* Words of @text, line breaks in it being blanks, from column @at on. */
static void print_wrapped(const char *text, size_t at, size_t indent)
{
	bool first = true;
	size_t len;

	for (; *text; text += strspn(text, " \n")) {
		len = strcspn(text, " \n");
		if (!first && at + 1 + len > WIDTH) {
			(void)printf("\n%*s", (int)indent, "");
			at = indent;
		} else if (!first) {
			(void)printf(" ");
			at++;
		}
		(void)printf("%.*s", (int)len, text);
		at += len;
		text += len;
		first = false;
	}
	(void)printf("\n");
}

static void print_options(const struct pp_option *o)
{
	char left[64], text[256];
	size_t len;

	for (; o && o->name; o++) {
		(void)snprintf(left, sizeof(left), "%c%c%c --%s%s%s", o->letter ? '-' : ' ',
			       o->letter ? o->letter : ' ', o->letter ? ',' : ' ', o->name,
			       o->arg ? (*o->arg == '[' ? "[=" : "=") : "",
			       o->arg ? o->arg + (*o->arg == '[') : "");
		(void)printf("  %-*s ", OPTION_TEXT - 3, left);
		len = (size_t)snprintf(text, sizeof(text), "%s", o->doc);
		for (const char *const *w = o->words; w && *w && len < sizeof(text); w++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
						w == o->words ? ": " : " | ", *w);
		print_wrapped(text, OPTION_TEXT, OPTION_TEXT);
	}
}

static void print_exits(const char *exits)
{
	char text[512];

	bool whole = exits && *exits && exits[strlen(exits) - 1] == '.';

	(void)snprintf(text, sizeof(text), "Exit status: %s%s%s", exits ? exits : USUAL_EXITS,
		       whole ? "" : ", ", whole ? "" : OTHER_EXITS);
	(void)printf("\n");
	print_wrapped(text, 0, 0);
}

void pp_help_all(void)
{
	static const struct pp_option version[] = {
		{"version", 'V', NULL, "the version of this program; stands alone", NULL},
		{NULL},
	};

	(void)printf("Usage: peerpath [VERB] [OPTION]...\n\n"
		     "Proves which path bytes take between GPU memory and an RDMA NIC.\n"
		     "Without a verb: one screen about this node, read-only.\n\n");
	for (const struct pp_verb *v = pp_verbs; v->name; v++)
		(void)printf("  %-12s %s\n", v->name, v->brief);
	(void)printf("\n");
	print_options(pp_common_options);
	print_options(version);
	(void)printf("\n'peerpath VERB --help' tells more, 'man peerpath' all.\n");
	print_exits(NULL);
}

void pp_help_verb(const struct pp_verb *v)
{
	if (!strcmp(v->name, "show")) {
		pp_help_all();
		return;
	}
	(void)printf("Usage: peerpath %s [OPTION]...%s%s\n\n", v->name, *v->operands ? " " : "",
		     v->operands);
	print_wrapped(v->doc, 0, 0);
	(void)printf("\n");
	if (v->options) {
		print_options(v->options);
		(void)printf("\n");
	}
	print_options(v->common);
	print_exits(v->exits);
}

int pp_help_finish(void)
{
	char text[128];
	int r = fflush(stdout) ? -errno : ferror(stdout) ? -EIO : 0;

	if (!r)
		return PP_EXIT_PASS;
	(void)fprintf(stderr, "peerpath: cannot write the output: %s\n",
		      pp_errno_text(r, text, sizeof(text)));
	return PP_EXIT_INTERNAL;
}

int pp_cmd_help(const struct pp_args *args)
{
	const char *name = pp_args_operand(args, 0);
	const struct pp_verb *v = name ? pp_verb_find(name) : NULL;

	if (name && !v) {
		(void)fprintf(stderr, "peerpath help: no verb '%s'; see 'peerpath help'\n", name);
		return PP_EXIT_USAGE;
	}
	if (v)
		pp_help_verb(v);
	else
		pp_help_all();
	return pp_help_finish();
}

static void complete_options(const struct pp_option *o)
{
	for (; o && o->name; o++) {
		(void)printf(" --%s", o->name);
		if (o->letter)
			(void)printf(" -%c", o->letter);
	}
}

static bool has_option(const struct pp_verb *v, const char *name)
{
	for (const struct pp_option *o = v->options; o && o->name; o++)
		if (!strcmp(o->name, name))
			return true;
	return false;
}

/* Options of several verbs take the same words everywhere: one case is enough. */
static bool is_done(const struct pp_verb *until, const char *name)
{
	for (const struct pp_verb *v = pp_verbs; v != until; v++)
		if (has_option(v, name))
			return true;
	return false;
}

static void complete_arguments(const struct pp_option *o, const struct pp_verb *of)
{
	for (; o && o->name; o++) {
		if (!o->words || (of && is_done(of, o->name)))
			continue;
		(void)printf("\t--%s) COMPREPLY=($(compgen -W \"", o->name);
		for (const char *const *w = o->words; *w; w++)
			(void)printf("%s%s", w == o->words ? "" : " ", *w);
		(void)printf("\" -- \"$cur\")); return ;;\n");
	}
}

static void complete_verbs(void)
{
	for (const struct pp_verb *v = pp_verbs; v->name; v++)
		(void)printf("%s%s", v == pp_verbs ? "" : " ", v->name);
}

static void complete_verb(const struct pp_verb *v)
{
	(void)printf("\t%s) options=\"", v->name);
	if (v->run == pp_cmd_help)
		complete_verbs();
	for (const char *const *w = v->words; w && *w; w++)
		(void)printf("%s%s", w == v->words ? "" : " ", *w);
	complete_options(v->options);
	complete_options(v->common);
	(void)printf("\" ;;\n");
}

int pp_cmd_completion(const struct pp_args *args)
{
	(void)args;
	(void)printf(
		"# bash completion of peerpath, made by 'peerpath completion'\n"
		"_peerpath()\n{\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb=\n"
		"\tlocal options word\n"
		"\tfor word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
		"\t\tcase $word in -*) ;; *) verb=$word; break ;; esac\n\tdone\n"
		"\tcase $prev in\n");
	for (const struct pp_verb *v = pp_verbs; v->name; v++)
		complete_arguments(v->options, v);
	complete_arguments(pp_common_options, NULL);
	(void)printf("\tesac\n\tcase $verb in\n\t'') options=\"");
	complete_verbs();
	complete_options(pp_common_options);
	(void)printf(" --version -V\" ;;\n");
	for (const struct pp_verb *v = pp_verbs; v->name; v++)
		complete_verb(v);
	(void)printf("\t*) options= ;;\n\tesac\n"
		     "\tCOMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n}\n"
		     "complete -o bashdefault -o default -F _peerpath peerpath\n");
	return pp_help_finish();
}
