/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This process's environment, by an allow-list: the variables that decide which path bytes take
 * and where libraries are found. What is not on the list is never read; a name on it that looks
 * like a secret is counted and its value left out.
 */
#ifndef PP_NODE_ENVIRONMENT_H
#define PP_NODE_ENVIRONMENT_H

#include "node/ask.h"

struct pp_environment {
	json_t *variables; /* owned; object, possibly empty */
	bool known;
	char why[256]; /* not known: the reason */
	int64_t redacted;
};

/* Is the variable on the list? */
bool pp_environment_allowed(const char *name);
/* Does the name say that its value is a secret? */
bool pp_environment_secret(const char *name);

/* Asks "environment". -ENOMEM only; pp_environment_done() after it. */
int pp_environment_ask(struct pp_source *s, struct pp_environment *ret);
void pp_environment_done(struct pp_environment *env);

/* NULL when not set, or not known. Borrowed. */
const char *pp_environment_get(const struct pp_environment *env, const char *name);

#endif
