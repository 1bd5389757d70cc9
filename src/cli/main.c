/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath: table -> verb -> pp_cmd_<verb>().
 */
#include <stdio.h>
#include <string.h>

#include "base/near.h"
#include "base/parse.h"
#include "base/words.h"
#include "cli/exit_style.h"
#include "cli/interrupt.h"
#include "cli/verb.h"
#include "base/banned.h"

static const struct pp_verb bare = {
	.name = "show", .operands = "", .common = pp_common_options, .run = pp_cmd_show};

static int unknown_verb(const char *name)
{
	struct pp_near near = PP_NEAR(name);
	char shown[64];

	for (const struct pp_verb *v = pp_verbs; v->name; v++)
		pp_near_offer(&near, v->name);
	(void)snprintf(shown, sizeof(shown), "%s", name);
	pp_sanitize(shown, false);
	(void)fprintf(stderr, "peerpath: unknown verb '%s'%s%s%s; see 'peerpath --help'\n", shown,
		      near.best ? ", did you mean '" : "", near.best ? near.best : "",
		      near.best ? "'" : "");
	return PP_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	const struct pp_verb *verb = &bare;
	struct pp_args *args;
	int r;

	if (argc > 1 && (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))) {
		(void)printf("peerpath %s\n", PEERPATH_VERSION);
		return pp_help_finish();
	}
	if (argc > 1 && argv[1][0] != '-') {
		verb = pp_verb_find(argv[1]);
		if (!verb)
			return unknown_verb(argv[1]);
		argc--;
		argv++;
	}
	r = pp_args_parse(verb, argc, argv, &args);
	if (r)
		return r < 0		    ? pp_help_finish()
		       : r == PP_EXIT_USAGE ? pp_exit_style_usage(argc, argv)
					    : r;
	pp_interrupt_catch();
	r = pp_exit_style_run(verb, args);
	pp_args_free(args);
	return pp_interrupted() ? PP_EXIT_INTERRUPTED : r;
}
