/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text to numbers: range-checked, fully consumed, never locale-dependent.
 *
 * All return 0 and write *ret, or -EINVAL (not a number, or something follows it) or -ERANGE, and
 * leave *ret alone. Surrounding blanks are not accepted: trim first.
 */
#ifndef PP_BASE_PARSE_H
#define PP_BASE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

int pp_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret);
int pp_parse_i64(const char *text, int64_t min, int64_t max, int64_t *ret);
/* With or without 0x. */
int pp_parse_hex(const char *text, uint64_t max, uint64_t *ret);
/* 4096, 4K, 4KiB, 1M, 2G: powers of 1024. */
int pp_parse_size(const char *text, uint64_t max, uint64_t *ret_bytes);
/* 5, 5s, 250ms, 2m, 3h, 7d: a bare number is seconds. */
int pp_parse_duration(const char *text, pp_ns max, pp_ns *ret);
/* yes/no, on/off, true/false, 1/0, y/n (kernel parameter style). */
int pp_parse_bool(const char *text, bool *ret);

/* Cuts blanks at both ends in place; returns the first character kept. */
char *pp_trim(char *text);

/* True if the bytes are printable text (UTF-8 is let through; no NUL, no other control bytes). */
bool pp_is_text(const char *bytes, size_t len);

/*
 * Replaces control bytes (except '\n' and '\t' when @keep_lines) by '?', in place: text of a log
 * or a file that goes to a terminal must not drive it.
 */
void pp_sanitize(char *text, bool keep_lines);

#endif
