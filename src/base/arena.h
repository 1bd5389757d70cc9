/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_arena: memory that lives and dies together (the facts of one node).
 *
 * Failure is sticky: when memory or the limit is exhausted `failed` becomes true, strings come
 * back as "" and objects as NULL. The owner looks at `failed` once after filling.
 */
#ifndef PP_BASE_ARENA_H
#define PP_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

struct pp_arena_chunk;

struct pp_arena {
	struct pp_arena_chunk *chunks; /* owned, newest first */
	size_t used, limit;	       /* bytes; limit is mandatory */
	bool failed;
};

#define PP_ARENA(limit_bytes) ((struct pp_arena){.limit = (limit_bytes)})

void pp_arena_done(struct pp_arena *a);

/* Zeroed, 16-byte aligned; NULL when exhausted. */
void *pp_arena_alloc(struct pp_arena *a, size_t size);
/* Zeroed array of @n elements, overflow-checked. */
void *pp_arena_array(struct pp_arena *a, size_t n, size_t size);

const char *pp_arena_str(struct pp_arena *a, const char *text);
const char *pp_arena_strn(struct pp_arena *a, const char *text, size_t len);
const char *pp_arena_printf(struct pp_arena *a, const char *fmt, ...) PP_PRINTF(2, 3);

#endif
