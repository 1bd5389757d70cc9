/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

enum { LINUX_ENOTSUPP = 524 };

int pp_error_set(struct pp_error *err, int code, const char *fmt, ...)
{
	va_list ap;

	err->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}

int pp_error_prefix(struct pp_error *err, const char *fmt, ...)
{
	char prefix[256], rest[sizeof(err->text)];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(prefix, sizeof(prefix), fmt, ap);
	va_end(ap);
	memcpy(rest, err->text, sizeof(rest));
	/* A line too long for the buffer is cut: err->text bounds every message. */
	if (snprintf(err->text, sizeof(err->text), "%s: %s", prefix, rest) < 0)
		err->text[0] = '\0';
	return err->code;
}

const char *pp_errno_name(int code)
{
	int e = code < 0 ? -code : code;
	const char *name = e == LINUX_ENOTSUPP ? "ENOTSUPP" : strerrorname_np(e);

	return name ? name : "errno";
}

const char *pp_errno_text(int code, char *text, size_t size)
{
	int e = code < 0 ? -code : code;
	const char *what = e == LINUX_ENOTSUPP ? "Operation not supported by the kernel driver"
					       : strerrordesc_np(e);

	(void)snprintf(text, size, "%s (%d): %s", pp_errno_name(e), e, what ? what : "unknown");
	return text;
}
