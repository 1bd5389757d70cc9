/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small language for the lines of a log, so that formats stay rows of a table.
 *
 *   %u decimal   %i signed decimal   %x hexadecimal, with or without 0x
 *   %w a word: up to a blank, or up to the next literal byte of the pattern
 *   %s text: up to the next literal piece of the pattern, or the rest; may be empty
 *   ' ' one or more blanks   '~' any number of blanks   any other byte: itself
 *   '*' first: the pattern may begin anywhere   '*' last: anything may follow
 */
#ifndef PP_NCCL_MATCH_H
#define PP_NCCL_MATCH_H

#include <stdbool.h>
#include <string.h>

#include "nccl/line.h"

enum { PP_NCCL_FIELDS = 12 };

struct pp_nccl_field {
	struct pp_nccl_span text;
	uint64_t value; /* of %u %x; of %i as two's complement */
};

bool pp_nccl_match(const char *pattern, struct pp_nccl_span text,
		   struct pp_nccl_field ret[PP_NCCL_FIELDS]);

/*
 * A text that is tried at several places and against several patterns. The end of a word is kept:
 * a long one with many places in it is not searched from each of them.
 */
struct pp_nccl_trial {
	const char *end;
	const char *from, *blank; /* there is no blank between these */
	const char *seen;	  /* behind what decided in the pattern that did not fit */
	bool never;		  /* nor does it fit further on in the text */
	const char *mark;	  /* the last %s that was reached in the pattern; NULL none */
	const char *mark_at;	  /* in the text */
	size_t mark_field;
};

/*
 * The pattern, without a * in front, at one place. Where it does not fit, no other pattern does
 * that is the same up to @t->seen.
 */
bool pp_nccl_match_at(struct pp_nccl_trial *t, const char *pattern, const char *at,
		      struct pp_nccl_field ret[PP_NCCL_FIELDS]);

/* Another pattern that is the same as @failed up to t->mark, %s included: on from there. */
bool pp_nccl_match_again(struct pp_nccl_trial *t, const char *failed, const char *pattern,
			 struct pp_nccl_field ret[PP_NCCL_FIELDS]);

/* What must stand in a text for a pattern with * in front to fit; empty for others. */
struct pp_nccl_span pp_nccl_pattern_head(const char *pattern);

/* Inline: most words are constants, whose comparison is an instruction or two. */
static inline bool pp_nccl_span_is(struct pp_nccl_span s, const char *word)
{
	return strlen(word) == s.len && !memcmp(s.at, word, s.len);
}

static inline bool pp_nccl_span_begins(struct pp_nccl_span s, const char *head)
{
	size_t n = strlen(head);

	return n <= s.len && !memcmp(s.at, head, n);
}

/* Where @word is within @s, or NULL. */
const char *pp_nccl_span_find(struct pp_nccl_span s, const char *word);
/* The number behind the first "@key " in @s. */
bool pp_nccl_span_number(struct pp_nccl_span s, const char *key, bool hex, uint64_t *ret);
/* Digits at the start of @s: how many bytes they take, 0 for none or an overflow. */
size_t pp_nccl_digits(struct pp_nccl_span s, bool hex, uint64_t *ret);

#endif
