/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

void pp_buf_done(struct pp_buf *b)
{
	free(b->data);
	*b = PP_BUF(b->max);
}

void pp_buf_reset(struct pp_buf *b)
{
	b->len = 0;
	b->failed = 0;
	if (b->data)
		b->data[0] = '\0';
}

/* Makes room for @more bytes and the NUL where there is none yet. */
static int grow(struct pp_buf *b, size_t more)
{
	size_t need, cap;
	char *data;

	if (b->failed)
		return b->failed;
	if (__builtin_add_overflow(b->len, more, &need) || need > b->max)
		return b->failed = -EFBIG;
	if (__builtin_add_overflow(need, 1, &need))
		return b->failed = -EFBIG;
	if (need <= b->cap)
		return 0;
	cap = b->cap ? b->cap : 256;
	while (cap < need && !__builtin_mul_overflow(cap, 2, &cap))
		continue;
	if (cap < need)
		cap = need;
	data = realloc(b->data, cap);
	if (!data)
		return b->failed = -ENOMEM;
	b->data = data;
	b->cap = cap;
	return 0;
}

static inline int reserve(struct pp_buf *b, size_t more)
{
	bool fits = !b->failed && b->len < b->cap && more < b->cap - b->len;

	return fits && b->len + more <= b->max ? 0 : grow(b, more);
}

void pp_buf_add(struct pp_buf *b, const void *bytes, size_t len)
{
	if (reserve(b, len))
		return;
	if (len)
		memcpy(b->data + b->len, bytes, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void pp_buf_str(struct pp_buf *b, const char *text)
{
	pp_buf_add(b, text, strlen(text));
}

void pp_buf_char(struct pp_buf *b, char c)
{
	pp_buf_add(b, &c, 1);
}

void pp_buf_vprintf(struct pp_buf *b, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0) {
		b->failed = b->failed ? b->failed : -EINVAL;
		return;
	}
	if (reserve(b, (size_t)n))
		return;
	(void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	b->len += (size_t)n;
}

void pp_buf_printf(struct pp_buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	pp_buf_vprintf(b, fmt, ap);
	va_end(ap);
}

const char *pp_buf_text(const struct pp_buf *b)
{
	return b->data ? b->data : "";
}
