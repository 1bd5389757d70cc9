/* SPDX-License-Identifier: Apache-2.0 */
#include "fail_alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *p);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

enum { MAX_LIVE = 1 << 16 };

/* One thread only: a test's. Pointers of libc's own never get in here, so freeing them is safe. */
static struct {
	bool on, failed;
	size_t left; /* allocations until the one that fails, 0: none will */
	size_t n;
	uintptr_t live[MAX_LIVE];
} state;

void pp_fail_alloc_start(size_t nth)
{
	state.on = true;
	state.failed = false;
	state.left = nth;
	state.n = 0;
}

bool pp_fail_alloc_stop(void)
{
	state.on = false;
	return state.failed;
}

size_t pp_fail_alloc_live(void)
{
	return state.n;
}

static bool fails(void)
{
	if (!state.on || !state.left || --state.left)
		return false;
	state.failed = true;
	return true;
}

static void *note(void *p)
{
	if (!p || !state.on)
		return p;
	if (state.n == MAX_LIVE)
		abort();
	state.live[state.n++] = (uintptr_t)p;
	return p;
}

static void forget(uintptr_t p)
{
	for (size_t i = state.n; p && i-- > 0;) {
		if (state.live[i] != p)
			continue;
		state.live[i] = state.live[--state.n];
		return;
	}
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : note(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : note(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size)
{
	uintptr_t old = (uintptr_t)p;
	void *fresh;

	if (fails())
		return NULL;
	fresh = __real_realloc(p, size);
	if (fresh)
		forget(old);
	return note(fresh);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : note(__real_aligned_alloc(alignment, size));
}

void __wrap_free(void *p)
{
	forget((uintptr_t)p);
	__real_free(p);
}

char *__wrap_strndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *copy = __wrap_malloc(len + 1);

	if (copy) {
		memcpy(copy, s, len);
		copy[len] = '\0';
	}
	return copy;
}

char *__wrap_strdup(const char *s)
{
	return __wrap_strndup(s, SIZE_MAX);
}
