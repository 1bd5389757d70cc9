/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page that peerpath explain prints.
 */
#ifndef PP_CLI_EXPLAIN_H
#define PP_CLI_EXPLAIN_H

#include "cli/session.h"
#include "judge/explain.h"
#include "judge/policy.h"

struct pp_explain_page {
	const struct pp_explanation *x;
	const struct pp_facts *facts; /* NULL: none were used */
	const char *facts_name;	      /* whose, or why none; never NULL */
	const struct pp_policy *policy;
	bool checks;	    /* show what the facts say, and run the commands that decide */
	const char *no_run; /* why no command is run; NULL: those that are safe are */
	bool all;	    /* every diagnosis in full */
	bool one_line;	    /* the text is one line: its number says nothing */
};

enum { PP_EXPLAIN_FULL = 3 }; /* diagnoses in full, unless all are */

void pp_explain_text(struct pp_out *o, const struct pp_explain_page *p);

#endif
