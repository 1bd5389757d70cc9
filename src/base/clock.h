/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One clock type: pp_ns, nanoseconds, signed.
 */
#ifndef PP_BASE_CLOCK_H
#define PP_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

typedef int64_t pp_ns;

#define PP_SECOND      ((pp_ns)1000000000)
#define PP_MILLISECOND ((pp_ns)1000000)

pp_ns pp_clock_monotonic(void);
pp_ns pp_clock_wall(void); /* since the epoch, UTC */

/* "2026-11-29T15:20:01Z" (@size >= 21); returns @text. */
const char *pp_clock_format(pp_ns wall, char *text, size_t size);
/* The same text back, in seconds; -EINVAL for another shape, and what is no time. */
int pp_clock_parse(const char *text, pp_ns *ret);
/* "20261129T152001Z" for file names (@size >= 17); returns @text. */
const char *pp_clock_stamp(pp_ns wall, char *text, size_t size);

#endif
