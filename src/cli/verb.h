/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verbs and their options: one table row each. The rows make the parser, --help, the bash
 * completion, and what tests compare the man pages with.
 */
#ifndef PP_CLI_VERB_H
#define PP_CLI_VERB_H

#include <stdbool.h>
#include <stddef.h>

struct pp_option {
	const char *name; /* long name, without dashes; NULL ends a table */
	char letter;	  /* short form, 0 none */
	const char *arg;  /* what help calls its argument ("FILE"); NULL: a switch; "[N]": it
			     may be left out, only without a letter */
	const char *doc;  /* one line */
	const char *const *words; /* allowed arguments, NULL-terminated; NULL: any */
};

struct pp_args; /* parsed command line, const after parsing */

struct pp_verb {
	const char *name;
	const char *operands;		 /* "FILE...", "" for none */
	const char *brief;		 /* one line for the list of verbs */
	const char *doc;		 /* one paragraph for its --help */
	const char *exits;		 /* what 0, 1, 2 mean: "0 shown"; NULL: the usual */
	const struct pp_option *options; /* NULL: only the common ones */
	const struct pp_option *common;	 /* those common ones that it heeds */
	const char *const *words;	 /* first operands, NULL-terminated; NULL: any */
	unsigned int min_operands, max_operands;
	int (*run)(const struct pp_args *args); /* returns an exit code */
};

extern const struct pp_verb pp_verbs[]; /* ends with name NULL */
/* For verbs about a node; for those that only print; for those that are no document. */
extern const struct pp_option pp_common_options[];
extern const struct pp_option pp_output_options[];
extern const struct pp_option pp_help_options[];

/* NULL for an unknown name. */
const struct pp_verb *pp_verb_find(const char *name);

/*
 * Parses argv[1..] behind the verb's name. Prints one line on stderr and returns PP_EXIT_USAGE
 * for bad usage; prints help and returns -1 for --help (the caller ends with pp_help_finish()); 0 =
 * go on.
 */
int pp_args_parse(const struct pp_verb *verb, int argc, char **argv, struct pp_args **ret);
struct pp_args *pp_args_free(struct pp_args *a); /* returns NULL */

/* By long name; the name must be an option of the verb or a common one. */
bool pp_args_has(const struct pp_args *a, const char *name);
const char *pp_args_get(const struct pp_args *a, const char *name); /* last one given, or NULL */
size_t pp_args_count(const struct pp_args *a, const char *name);
const char *pp_args_nth(const struct pp_args *a, const char *name, size_t i);
/* As if it had been given last; a few only. @value is borrowed. */
void pp_args_imply(struct pp_args *a, const char *name, const char *value);
size_t pp_args_operands(const struct pp_args *a);
const char *pp_args_operand(const struct pp_args *a, size_t i); /* NULL beyond the last */
const char *pp_args_verb(const struct pp_args *a);		/* its name */
/* The verb and all that was given, for a process of its own; argv-like, options first. */
char *const *pp_args_raw(const struct pp_args *a);
/* True if the verb (or every verb) has this option at all. */
bool pp_args_knows(const struct pp_args *a, const char *name);

/* Help to stdout. */
void pp_help_all(void);
void pp_help_verb(const struct pp_verb *verb);
/* Flushes stdout: an exit code, after one line on stderr when it could not be written. */
int pp_help_finish(void);

/* The verbs; each in its own file. */
int pp_cmd_show(const struct pp_args *args); /* bare peerpath */
int pp_cmd_bench(const struct pp_args *args);
int pp_cmd_identity(const struct pp_args *args);
int pp_cmd_topo(const struct pp_args *args);
int pp_cmd_check(const struct pp_args *args);
int pp_cmd_nccl(const struct pp_args *args);
int pp_cmd_prove(const struct pp_args *args);
int pp_cmd_canary(const struct pp_args *args);
int pp_cmd_capture(const struct pp_args *args);
int pp_cmd_compare(const struct pp_args *args);
int pp_cmd_explain(const struct pp_args *args);
int pp_cmd_bundle(const struct pp_args *args);
int pp_cmd_soft(const struct pp_args *args);
int pp_cmd_trace(const struct pp_args *args);
int pp_cmd_profile(const struct pp_args *args);
int pp_cmd_rollout(const struct pp_args *args);
int pp_cmd_fleet(const struct pp_args *args);
int pp_cmd_history(const struct pp_args *args);
int pp_cmd_monitor(const struct pp_args *args);
int pp_cmd_completion(const struct pp_args *args);
int pp_cmd_help(const struct pp_args *args);

#endif
