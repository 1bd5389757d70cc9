/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/fleet_options.h"

#include "base/banned.h"

const char *const pp_fleet_words[] = {"add",   "list", "show",	"odd",	 "classes",
				      "rails", "diff", "serve", "prune", NULL};

#define DATABASE                                                                          \
	{                                                                                 \
		"database", 0, "WHERE",                                                   \
			"a SQLite file or postgresql://...; else PEERPATH_DATABASE", NULL \
	}
#define SIMULATED                                                                           \
	{                                                                                   \
		"simulated", 0, NULL, "of simulated results instead of measured ones", NULL \
	}

const struct pp_option pp_fleet_options_table[] = {
	DATABASE,
	SIMULATED,
	{"verdict", 0, "VERDICT", "list: nodes with it alone", NULL},
	{"module", 0, "FLAVOUR", "list: nodes with this flavour of NVIDIA's module", NULL},
	{"wiring", 0, "DIGEST", "list: nodes wired so; its first digits do", NULL},
	{"software", 0, "DIGEST", "list: nodes with this software; its first digits do", NULL},
	{"limit", 0, "N", "list: not more than so many (200); 0: all", NULL},
	{"silent-after", 0, "TIME", "list, odd: not heard from for so long is silent (3d)", NULL},
	{"listen", 0, "ADDRESS", "serve: here (127.0.0.1)", NULL},
	{"port", 'p', "PORT", "serve: here (18517); 0 takes any", NULL},
	{"host", 0, "NAME", "serve: a name by which it may be called; repeatable", NULL},
	{"token-file", 0, "FILE", "serve: what a push must know; without it nobody can push", NULL},
	{"max-push", 0, "SIZE", "serve: the largest push (64M)", NULL},
	{"older-than", 0, "AGE", "prune: results older than 36h, 90d, 26w", NULL},
	{"gains", 0, NULL, "prune: old gains, too", NULL},
	{"dry-run", 0, NULL, "prune: say what would go", NULL},
	{"compact", 0, NULL, "prune: then make the SQLite file smaller", NULL},
	{NULL},
};

const struct pp_option pp_history_options_table[] = {
	DATABASE,
	SIMULATED,
	{"what", 0, "TEXT", "gains whose name has it", NULL},
	{"wiring", 0, "DIGEST", "of nodes wired so; its first digits do", NULL},
	{"software", 0, "DIGEST", "of this software; its first digits do", NULL},
	{NULL},
};
