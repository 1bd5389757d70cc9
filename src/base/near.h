/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nearest name: what an unknown verb, flag, fact or key was probably meant to be.
 */
#ifndef PP_BASE_NEAR_H
#define PP_BASE_NEAR_H

#include <stddef.h>

/* Optimal string alignment distance; words longer than 63 bytes count as infinitely far. */
unsigned int pp_near_distance(const char *a, const char *b);

/*
 * Keeps the best candidate while the caller walks its table:
 *   struct pp_near near = PP_NEAR(word);
 *   for (...) pp_near_offer(&near, table[i].name);
 *   near.best is NULL when nothing is near enough to be suggested.
 */
struct pp_near {
	const char *word; /* borrowed */
	const char *best; /* borrowed from the candidates */
	unsigned int distance;
};

#define PP_NEAR(w) ((struct pp_near){.word = (w), .distance = 4})

void pp_near_offer(struct pp_near *n, const char *candidate);

#endif
