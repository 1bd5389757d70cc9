/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

enum { CHUNK_BYTES = 64 * 1024, ALIGN = 16 };

struct pp_arena_chunk {
	struct pp_arena_chunk *next;
	size_t used, size;
	_Alignas(ALIGN) char data[];
};

void pp_arena_done(struct pp_arena *a)
{
	struct pp_arena_chunk *c = a->chunks, *next;

	for (; c; c = next) {
		next = c->next;
		free(c);
	}
	*a = PP_ARENA(a->limit);
}

static struct pp_arena_chunk *grow(struct pp_arena *a, size_t size)
{
	size_t want = size > CHUNK_BYTES ? size : CHUNK_BYTES, total;
	struct pp_arena_chunk *c;

	if (__builtin_add_overflow(want, sizeof(*c), &total) ||
	    __builtin_add_overflow(a->used, want, &want) || want > a->limit) {
		a->failed = true;
		return NULL;
	}
	c = calloc(1, total);
	if (!c) {
		a->failed = true;
		return NULL;
	}
	c->size = total - sizeof(*c);
	c->next = a->chunks;
	a->chunks = c;
	a->used = want;
	return c;
}

void *pp_arena_alloc(struct pp_arena *a, size_t size)
{
	struct pp_arena_chunk *c = a->chunks;
	void *p;

	if (__builtin_add_overflow(size, ALIGN - 1, &size)) {
		a->failed = true;
		return NULL;
	}
	size &= ~(size_t)(ALIGN - 1);
	if (!c || c->size - c->used < size)
		c = grow(a, size);
	if (!c)
		return NULL;
	p = c->data + c->used;
	c->used += size;
	return p;
}

void *pp_arena_array(struct pp_arena *a, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		a->failed = true;
		return NULL;
	}
	return pp_arena_alloc(a, bytes);
}

const char *pp_arena_strn(struct pp_arena *a, const char *text, size_t len)
{
	size_t bytes;
	char *p;

	if (__builtin_add_overflow(len, 1, &bytes)) {
		a->failed = true;
		return "";
	}
	p = pp_arena_alloc(a, bytes);
	if (!p)
		return "";
	memcpy(p, text, len);
	return p;
}

const char *pp_arena_str(struct pp_arena *a, const char *text)
{
	return pp_arena_strn(a, text, strlen(text));
}

const char *pp_arena_printf(struct pp_arena *a, const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	p = n < 0 ? NULL : pp_arena_alloc(a, (size_t)n + 1);
	if (!p)
		return "";
	va_start(ap, fmt);
	(void)vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}
