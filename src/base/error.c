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

void pp_error_drop_name(struct pp_error *err, const char *name)
{
	size_t n = strlen(name);
	char *rest = err->text + n + 2;

	if (n + 4 < sizeof(err->text) && err->text[0] == '\'' && !strncmp(err->text + 1, name, n) &&
	    !strncmp(err->text + 1 + n, "': ", 3))
		memmove(err->text, rest + 2, strlen(rest + 2) + 1);
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
