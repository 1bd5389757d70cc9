/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes that a transfer carries: a stream of 64-bit words, little-endian, each a mixture of a
 * seed and of the word's number. Any part of it can be made and looked at, from any byte on.
 *
 * Pure. Two seeds, or two places of one seed, agree in a byte as often as chance has it.
 */
#ifndef PP_MEM_PATTERN_H
#define PP_MEM_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* Writes the stream's bytes [from, from + len). */
void pp_pattern_fill(void *to, uint64_t from, size_t len, uint64_t seed);

struct pp_pattern_wrong {
	uint64_t bytes; /* that differ */
	size_t first;	/* index of the first of them */
	uint8_t expected, found;
};
/* Compares @len bytes at @at with the stream's from @from on. */
void pp_pattern_check(const void *at, uint64_t from, size_t len, uint64_t seed,
		      struct pp_pattern_wrong *ret);

#endif
