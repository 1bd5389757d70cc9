/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of struct pp_rules, for the files that fill it: rule.c and rule_parse.c.
 */
#ifndef PP_JUDGE_RULE_SET_H
#define PP_JUDGE_RULE_SET_H

#include <sodium.h>

#include "judge/rule.h"

struct pp_rules {
	struct pp_arena arena; /* every text and condition */
	struct pp_rule *list;  /* owned */
	size_t n, cap;
	const char *where; /* NULL: not loaded from a directory */
	bool own;	   /* the program's, with nothing of the site over them */
	size_t files;
	crypto_hash_sha256_state text; /* of all files so far */
};

/* Adds, or replaces the rule of a lower tier. -EINVAL for a second one of its tier, -EFBIG. */
int pp_rules_add(struct pp_rules *r, const struct pp_rule *rule, struct pp_error *err);
/* Needs nothing but the id, and a rule of that id in a lower tier. */
int pp_rules_disable(struct pp_rules *r, const struct pp_rule *rule, struct pp_error *err);

#endif
