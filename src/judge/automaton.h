/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_automaton: which of many literals a line holds, in one pass (Aho-Corasick).
 *
 * Text is compared without regard to case; '_' and '-', and the three ASCII quotes, are the same;
 * a run of blanks is one blank. A literal that begins or ends with a digit matches whole numbers
 * only: "error 14" is not in "error 140". One of up to three letters is in
 * no longer word: "efa" is not in "EFAULT".
 */
#ifndef PP_JUDGE_AUTOMATON_H
#define PP_JUDGE_AUTOMATON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { PP_LITERALS_MAX = 8192, PP_LITERAL_LONGEST = 200 };

struct pp_automaton; /* opaque */

int pp_automaton_new(struct pp_automaton **ret); /* -ENOMEM */
struct pp_automaton *pp_automaton_free(struct pp_automaton *a);

/* Number of @literal, the same for the same text. -EINVAL for an empty or too long one, -EFBIG. */
int pp_automaton_add(struct pp_automaton *a, const char *literal, unsigned int *ret,
		     struct pp_error *err);
/* After the last literal; before the first scan. -ENOMEM, -EFBIG. */
int pp_automaton_build(struct pp_automaton *a, struct pp_error *err);

size_t pp_automaton_literals(const struct pp_automaton *a);
/* Folded. */
const char *pp_automaton_text(const struct pp_automaton *a, unsigned int literal);
size_t pp_automaton_length(const struct pp_automaton *a, unsigned int literal);

/* Literals found in one line, each once. */
struct pp_hits {
	uint64_t set[PP_LITERALS_MAX / 64];
	uint16_t list[512]; /* the first of them; more only fill the set */
	uint32_t end[512];  /* of each: offset in the text behind its first place */
	unsigned int n;
};

/* @hits is emptied first; true when something was found. */
bool pp_automaton_scan(const struct pp_automaton *a, const char *text, size_t len,
		       struct pp_hits *hits);

/* As if the line held it, at its start. */
void pp_hits_add(struct pp_hits *hits, unsigned int literal);

static inline bool pp_hits_have(const struct pp_hits *hits, unsigned int literal)
{
	return hits->set[literal / 64] >> (literal % 64) & 1;
}

#endif
