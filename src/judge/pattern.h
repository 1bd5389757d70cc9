/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How large a regular expression is for libc, which copies what is repeated: "a++" is four, and
 * each further "+" twice that, so that a line of them takes all memory there is.
 */
#ifndef PP_JUDGE_PATTERN_H
#define PP_JUDGE_PATTERN_H

#include <stddef.h>

enum { PP_PATTERN_ATOMS = 256 }; /* what a pattern may come to */

/*
 * Characters, brackets and groups of the POSIX extended expression @text, as often as repeats copy
 * them; no more than PP_PATTERN_ATOMS + 1 is told. Of what is no expression it may be anything.
 */
size_t pp_pattern_atoms(const char *text);

#endif
