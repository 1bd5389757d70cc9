/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one entry of a fuzz target: libFuzzer's, also called by seeds_main.c when not fuzzing.
 *
 * A target feeds @data to the real parser and must return 0. It asserts what holds for every
 * input (an error has a text, a count is within its bound), never what holds for one.
 */
#ifndef PP_TESTS_FUZZ_H
#define PP_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * The input as a string: malloc'ed, NUL-terminated, exactly size + 1 bytes so that a sanitizer
 * sees the first byte read beyond it. Aborts when out of memory.
 */
char *pp_fuzz_text(const uint8_t *data, size_t size);

#endif
