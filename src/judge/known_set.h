/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling a struct pp_known_set, for the files that do: known.c and known_take.c.
 */
#ifndef PP_JUDGE_KNOWN_SET_H
#define PP_JUDGE_KNOWN_SET_H

#include "judge/known.h"

/* Copies *@one; owners of its signatures are set. -EINVAL for a second one of its id, -EFBIG. */
int pp_known_add(struct pp_known_set *k, const struct pp_known *one, struct pp_error *err);
/* A signature of the problem that will be added next. */
int pp_known_add_signature(struct pp_known_set *k, const char *text, struct pp_error *err);

#endif
