/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_wrapped: lines that a terminal, an editor or a mail cut at its width, together again.
 *
 * Two lines belong together when the first is long, ends inside a sentence, and the next one goes
 * on in the middle of it: by a word that had no room at that width, or, cut at exactly a terminal's
 * width, by the rest of a torn one. A logger's head, a date or a "name:" begins a line of its own.
 * Bounded: at most PP_WRAPPED_LINES lines, each at most PP_WRAPPED_WIDEST bytes.
 */
#ifndef PP_JUDGE_WRAPPED_H
#define PP_JUDGE_WRAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PP_WRAPPED_LINES = 4, PP_WRAPPED_WIDEST = 160, PP_WRAPPED_NARROWEST = 48 };

struct pp_wrapped {
	char text[PP_WRAPPED_LINES * (PP_WRAPPED_WIDEST + 1)];
	size_t len;	     /* of text */
	size_t last;	     /* length of its last line */
	size_t widest, room; /* the width lies between these: widest <= width < room */
	uint64_t first, end; /* numbers of its lines */
	unsigned int n;	     /* lines; 0 none */
	bool worth;	     /* set by the owner: a line of it held a word that counts */
};

/* Appends the line if it goes on with the one before; false: a run ends before it. */
bool pp_wrapped_add(struct pp_wrapped *w, const char *text, size_t len, uint64_t line);
/* The line is the first of a run. */
void pp_wrapped_begin(struct pp_wrapped *w, const char *text, size_t len, uint64_t line);

#endif
