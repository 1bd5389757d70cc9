/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the command of a diagnosis that decides, where that is safe: programs of a short list, in
 * forms that only read, without a shell, with a deadline. Everything else is left to the reader,
 * with the reason.
 */
#ifndef PP_CLI_EXPLAIN_RUN_H
#define PP_CLI_EXPLAIN_RUN_H

#include <stdbool.h>
#include <stddef.h>

enum { PP_RUN_OUTPUT = 4096 };

struct pp_run {
	bool ran;
	const char *why_not;	    /* a reason; NULL when it ran */
	int status;		    /* of the last program: exit code; -1 killed by a signal */
	char output[PP_RUN_OUTPUT]; /* printable text and line ends; cut where it is too long */
	bool cut;
};

/* Whether @command would be run; NULL, or the reason why not. Runs nothing. */
const char *pp_run_refuses(const char *command);
void pp_run(const char *command, struct pp_run *ret);

#endif
