/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_buf: a growable byte buffer with a mandatory maximum.
 *
 * Errors are sticky: after a failed append `failed` holds -ENOMEM or -EFBIG, further appends do
 * nothing, and the caller looks once at the end. data is always NUL-terminated after the first
 * append (the NUL is not counted in len); before it, data is NULL.
 */
#ifndef PP_BASE_BUF_H
#define PP_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

#include "base/compiler.h"

struct pp_buf {
	char *data; /* owned */
	size_t len, cap, max;
	int failed;
};

#define PP_BUF(max_bytes) ((struct pp_buf){.max = (max_bytes)})
#define PP_AUTO_BUF	  PP_CLEANUP(pp_buf_done)

void pp_buf_done(struct pp_buf *b);
void pp_buf_reset(struct pp_buf *b); /* empties, keeps the memory, clears the error */
void pp_buf_add(struct pp_buf *b, const void *bytes, size_t len);
void pp_buf_str(struct pp_buf *b, const char *text);
void pp_buf_char(struct pp_buf *b, char c);
void pp_buf_printf(struct pp_buf *b, const char *fmt, ...) PP_PRINTF(2, 3);
void pp_buf_vprintf(struct pp_buf *b, const char *fmt, va_list ap) PP_PRINTF(2, 0);

/* Never NULL: "" for an empty buffer. */
const char *pp_buf_text(const struct pp_buf *b);

#endif
