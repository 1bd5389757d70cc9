/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help and completion, both from the verb table.
 */
#include <stdio.h>
#include <string.h>

#include "base/words.h"
#include "cli/verb.h"
#include "base/banned.h"

static const char EXIT_CODES[] =
	"Exit status: 0 pass, 1 measured and bad (degraded too, unless --fail-on=fail),\n"
	"2 no verdict, 64 usage, 65 unreadable or tampered input, 70 internal,\n"
	"130 interrupted.\n";

void pp_help_all(void)
{
	(void)printf("Usage: peerpath [VERB] [OPTION]...\n\n"
		     "Proves which path bytes take between GPU memory and an RDMA NIC.\n"
		     "Without a verb: one screen about this node, read-only.\n\n");
	for (const struct pp_verb *v = pp_verbs; v->name; v++)
		(void)printf("  %-12s %s\n", v->name, v->brief);
	(void)printf("\n'peerpath VERB --help' tells more, 'man peerpath' all.\n\n%s", EXIT_CODES);
}

static void print_options(const struct pp_option *o)
{
	char left[64];

	for (; o && o->name; o++) {
		(void)snprintf(left, sizeof(left), "%c%c%c --%s%s%s", o->letter ? '-' : ' ',
			       o->letter ? o->letter : ' ', o->letter ? ',' : ' ', o->name,
			       o->arg ? "=" : "", o->arg ? o->arg : "");
		(void)printf("  %-26s %s", left, o->doc);
		for (const char *const *w = o->words; w && *w; w++)
			(void)printf("%s%s", w == o->words ? ": " : " | ", *w);
		(void)printf("\n");
	}
}

void pp_help_verb(const struct pp_verb *v)
{
	if (!strcmp(v->name, "show")) {
		pp_help_all();
		return;
	}
	(void)printf("Usage: peerpath %s [OPTION]...%s%s\n\n%s\n\n", v->name,
		     *v->operands ? " " : "", v->operands, v->doc);
	if (v->options) {
		print_options(v->options);
		(void)printf("\n");
	}
	print_options(pp_common_options);
	(void)printf("\n%s", EXIT_CODES);
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
	return PP_EXIT_PASS;
}

static void complete_options(const struct pp_option *o)
{
	for (; o && o->name; o++) {
		(void)printf(" --%s", o->name);
		if (o->letter)
			(void)printf(" -%c", o->letter);
	}
}

/* Words of an option's argument, or file names for those that take a path. */
static void complete_arguments(const struct pp_option *o)
{
	for (; o && o->name; o++) {
		if (!o->words)
			continue;
		(void)printf("\t--%s) COMPREPLY=($(compgen -W \"", o->name);
		for (const char *const *w = o->words; *w; w++)
			(void)printf("%s%s", w == o->words ? "" : " ", *w);
		(void)printf("\" -- \"$cur\")); return ;;\n");
	}
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
		complete_arguments(v->options);
	complete_arguments(pp_common_options);
	(void)printf("\tesac\n\tcase $verb in\n\t'') options=\"");
	for (const struct pp_verb *v = pp_verbs; v->name; v++)
		(void)printf("%s%s", v == pp_verbs ? "" : " ", v->name);
	complete_options(pp_common_options);
	(void)printf("\" ;;\n");
	for (const struct pp_verb *v = pp_verbs; v->name; v++) {
		(void)printf("\t%s) options=\"", v->name);
		complete_options(v->options);
		complete_options(pp_common_options);
		(void)printf("\" ;;\n");
	}
	(void)printf("\t*) options= ;;\n\tesac\n"
		     "\tCOMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n}\n"
		     "complete -o bashdefault -o default -F _peerpath peerpath\n");
	return PP_EXIT_PASS;
}
