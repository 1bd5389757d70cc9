/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_error: why a call failed, in one line for a person.
 *
 * Library code never prints. A function that can fail for a reason worth telling takes a
 * struct pp_error owned by its caller (never NULL), fills it once, and returns the negative errno.
 * The line says what, where and, if it helps, what to do.
 */
#ifndef PP_BASE_ERROR_H
#define PP_BASE_ERROR_H

#include "base/compiler.h"

struct pp_error {
	int code; /* negative errno, 0 = none */
	char text[512];
};

/* Fills *err and returns @code, so that callers write: return pp_error_set(err, -EINVAL, ...). */
int pp_error_set(struct pp_error *err, int code, const char *fmt, ...) PP_PRINTF(3, 4);

/* "'NAME': cut" becomes "cut", for whoever says the name himself. */
void pp_error_drop_name(struct pp_error *err, const char *name);
/* Puts "prefix: " before the text, for the layer that knows the file or line. */
int pp_error_prefix(struct pp_error *err, const char *fmt, ...) PP_PRINTF(2, 3);

/*
 * Name of an errno value as "EFAULT (14): Bad address"; knows 524 (ENOTSUPP), which the kernel
 * leaks and libc does not name. @code may be negative. Writes into @text, returns @text.
 */
const char *pp_errno_text(int code, char *text, size_t size);

/* Only the symbolic name ("EACCES"), or "errno". Static string. */
const char *pp_errno_name(int code);

#endif
