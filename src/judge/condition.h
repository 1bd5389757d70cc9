/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_condition: one comparison of a rule, over one fact, in three-valued logic.
 *
 *   fact == value    != < <= > >=    ~ pattern    contains text    is known    is unknown
 *   is empty         is not empty    and "@other.fact" in place of a value
 *
 * A condition about an unknown fact is OPEN, never false: what was not seen excludes nothing.
 * Only "is known" and "is unknown" always have an answer.
 */
#ifndef PP_JUDGE_CONDITION_H
#define PP_JUDGE_CONDITION_H

#include "base/error.h"
#include "node/fact.h"

enum pp_truth { PP_FALSE, PP_TRUE, PP_OPEN };

enum pp_op {
	PP_OP_EQ,
	PP_OP_NE,
	PP_OP_LT,
	PP_OP_LE,
	PP_OP_GT,
	PP_OP_GE,
	PP_OP_MATCH,
	PP_OP_CONTAINS,
	PP_OP_KNOWN,
	PP_OP_UNKNOWN,
	PP_OP_EMPTY,
	PP_OP_NOT_EMPTY,
};

struct pp_condition {
	const char *text; /* as written, blanks normalised */
	enum pp_fact_id fact;
	enum pp_op op;
	const char *value; /* right side; NULL for "is" and for another fact */
	int64_t number;	   /* right side of an integer or boolean */
	int other;	   /* right side is this fact (enum pp_fact_id), -1 none */
};

/*
 * A rule for @scope may use facts of its object, of what that object belongs to (port: hca; pair:
 * gpu and hca) and of the node. -EINVAL with the reason, naming the nearest fact for a wrong one.
 * Text is copied into @arena.
 */
int pp_condition_parse(struct pp_arena *arena, enum pp_kind scope, const char *text,
		       struct pp_condition *ret, struct pp_error *err);

/* A fact that a rule for @scope may name; -EINVAL likewise. */
int pp_condition_fact(enum pp_kind scope, const char *key, enum pp_fact_id *ret,
		      struct pp_error *err);

/*
 * @o is an object of the rule's scope. *ret_missing is the fact that leaves it open, -1 when it is
 * not open; may be NULL.
 */
enum pp_truth pp_condition_test(const struct pp_condition *c, const struct pp_facts *facts,
				const struct pp_object *o, int *ret_missing);

/* The object that holds facts of @kind for @o: itself, its hca, its gpu, the node; else NULL. */
const struct pp_object *pp_condition_holder(const struct pp_facts *facts, const struct pp_object *o,
					    enum pp_kind kind);

/*
 * Whole-text match with '*' (any text), '?' (one byte) and '|' between alternatives; no case
 * folding. Time is bounded by pattern times text.
 */
bool pp_glob_match(const char *pattern, const char *text);

#endif
