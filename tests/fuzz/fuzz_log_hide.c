/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log of anybody's: what is a secret by its place is gone, the known one wherever it stands, and
 * the rest is as it was.
 */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "bundle/log_hide.h"

static const char SECRET[] = "swordfish-0123";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_buf once = PP_BUF(1 << 20), twice = PP_BUF(1 << 20);
	size_t n, again;

	if (size > 1 << 16)
		return 0;
	n = pp_log_hide((const char *)data, size, SECRET, &once);
	assert(!once.failed && once.len <= size + 8 * n);
	assert(n || (once.len == size && !memcmp(pp_buf_text(&once), data, size)));
	assert(!once.len || !memmem(once.data, once.len, SECRET, sizeof(SECRET) - 1));
	again = pp_log_hide(pp_buf_text(&once), once.len, SECRET, &twice);
	assert(again <= n);
	pp_buf_done(&once);
	pp_buf_done(&twice);
	return 0;
}
