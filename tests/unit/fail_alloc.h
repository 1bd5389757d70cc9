/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one allocation fail, and counts what was not freed: for tests that try a function with
 * its first allocation failing, then its second, until it succeeds.
 *
 * Works by the linker: malloc, calloc, realloc, aligned_alloc, strdup, strndup and free of
 * everything linked into the test come here (see fail_alloc_args in meson.build). What libc
 * allocates by itself (fopen, asprintf) does not.
 */
#ifndef PP_TESTS_FAIL_ALLOC_H
#define PP_TESTS_FAIL_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* From now on count allocations and let the @nth (from 1) and only that fail; 0: none. */
void pp_fail_alloc_start(size_t nth);
/* Back to normal. True when an allocation was made to fail. */
bool pp_fail_alloc_stop(void);
/* Allocations made since start that are not freed yet. */
size_t pp_fail_alloc_live(void);

#endif
