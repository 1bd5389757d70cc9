/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiler attributes and ownership helpers: the one place for them.
 */
#ifndef PP_BASE_COMPILER_H
#define PP_BASE_COMPILER_H

#include <stddef.h>

#define PP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define PP_CLEANUP(fn)	     __attribute__((cleanup(fn)))
#define PP_UNUSED	     __attribute__((unused))
#define PP_NORETURN	     __attribute__((noreturn))

#define PP_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Gives a cleanup-owned pointer away: the variable no longer owns it. */
#define pp_take(p)                          \
	({                                  \
		__typeof__(p) taken_ = (p); \
		(p) = NULL;                 \
		taken_;                     \
	})

void pp_cleanup_free(void *ptr_to_ptr);
void pp_cleanup_close(int *fd);

#define PP_AUTO_FREE  PP_CLEANUP(pp_cleanup_free)
#define PP_AUTO_CLOSE PP_CLEANUP(pp_cleanup_close)

/* Does another processor, or a device, see the stores of one in their order? */
#if defined(__x86_64__)
#define PP_STORES_IN_ORDER true
#else
#define PP_STORES_IN_ORDER false
#endif

/* In a loop that waits for another processor: less of the bus and of the neighbour's time. */
#if defined(__x86_64__)
#define PP_SPIN() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PP_SPIN() __asm__ volatile("yield")
#else
#define PP_SPIN() ((void)0)
#endif

#endif
