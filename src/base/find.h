/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A short piece of text in a line: what memmem() does, without the table that it builds first,
 * which costs more than a look at all of a usual line.
 */
#ifndef PP_BASE_FIND_H
#define PP_BASE_FIND_H

#include <stddef.h>

/* Where @piece of @n bytes begins in @text, or NULL. */
const char *pp_find(const char *text, size_t len, const char *piece, size_t n);

#endif
