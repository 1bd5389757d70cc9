/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_signature: what a line must say, all of it:
 *
 *   "text|other"    one of these texts stands in the line (see automaton.h)
 *   !"text"         it does not
 *   errno=14|EPERM  a field has one of these values; call=ibv_reg_mr*, env=NAME or NAME:VALUE
 *   !call=*_cq      it has none of them
 */
#ifndef PP_JUDGE_SIGNATURE_H
#define PP_JUDGE_SIGNATURE_H

#include "judge/automaton.h"
#include "judge/field.h"
#include "base/arena.h"

enum { PP_SIGNATURE_TERMS = 12 };

struct pp_term {
	bool negated, is_field;
	enum pp_field field;
	const uint16_t *literals; /* one of them stands in a line that fulfils the term */
	unsigned int n_literals;  /* 0: cannot be told by literals */
	const int64_t *numbers;
	unsigned int n_numbers;
	const char *glob; /* of a field of words */
};

struct pp_signature {
	const char *text; /* as written */
	struct pp_term *terms;
	unsigned int n;
	unsigned int anchor; /* the term whose literals are the rarest */
};

/* Adds the literals to @a. Texts go to @arena. -EINVAL with the reason, -ENOMEM, -EFBIG. */
int pp_signature_parse(struct pp_arena *arena, struct pp_automaton *a, const char *text,
		       struct pp_signature *ret, struct pp_error *err);

/* A line: literals found, and fields that are read when the first term asks for them. */
struct pp_line {
	const char *text;
	size_t len;
	const struct pp_hits *hits;
	struct pp_fields *fields;
	bool has_fields;
	size_t at;   /* behind the literal that led here */
	bool quoted; /* read as a warning of NCCL, whose head it lacks */
};

bool pp_signature_test(const struct pp_signature *s, struct pp_line *line);

#endif
