/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a verb is run: as it is; for --quick within a limit; for --exit-style with its verdict
 * translated into the exit status and the one line that others read. This is the only place where
 * that happens: a verb knows native exit codes alone.
 *
 *   nagios  0 OK, 1 WARNING (degraded), 2 CRITICAL (fail), 3 UNKNOWN; a line with figures
 *   npd     0 no problem, 1 problem, 2 not known; a line of at most 80 bytes
 *   slurm   0, or 1 for what must drain; silent when fine. Unknown drains only when asked to.
 */
#ifndef PP_CLI_EXIT_STYLE_H
#define PP_CLI_EXIT_STYLE_H

#include "cli/verb.h"

/* Runs the verb; returns the program's exit status. */
int pp_exit_style_run(const struct pp_verb *verb, struct pp_args *args);
/*
 * A command line that could not be parsed: PP_EXIT_USAGE, or what the style that stands in it has
 * for that, which is never its "fine".
 */
int pp_exit_style_usage(int argc, char *const *argv);

extern const char *const pp_exit_style_words[];
extern const char *const pp_on_unknown_words[];

#endif
