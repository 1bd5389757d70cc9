/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel answered, as it was captured: tests/fixtures/trace.
 */
#ifndef PP_TESTS_TRACE_FIXTURE_H
#define PP_TESTS_TRACE_FIXTURE_H

#include "unit.h"

#include <errno.h>

/* Its length, not more than @size. */
static inline size_t trace_fixture(const char *name, void *buf, size_t size)
{
	char path[1024];
	const char *top = getenv("PP_TEST_DIR");
	size_t n;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/../fixtures/trace/%s", top ? top : ".", name);
	f = fopen(path, "rb");
	if (!f)
		fail_msg("%s: %s", path, strerror(errno));
	n = fread(buf, 1, size, f);
	(void)fclose(f);
	return n;
}

#endif
