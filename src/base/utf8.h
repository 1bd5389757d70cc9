/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 of texts that others wrote.
 */
#ifndef PP_BASE_UTF8_H
#define PP_BASE_UTF8_H

#include <stddef.h>

/*
 * Bytes of the character at @text, 0 if none is there: no UTF-8 (Unicode 15, table 3-7), or not
 * whole within @left bytes. Reads nothing behind a NUL, which is a character of one byte: of a
 * string @left may be SIZE_MAX.
 */
size_t pp_utf8_length(const void *text, size_t left);

/* How much of @len bytes fits into @most, without half a character at the end. */
size_t pp_utf8_fit(const char *text, size_t len, size_t most);

#endif
