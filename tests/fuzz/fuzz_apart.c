/* SPDX-License-Identifier: Apache-2.0 */
/* What a process that looks for the monitor answers: taken whole, or not at all. */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>

#include "daemon/apart_answer.h"

static int remember(void *ctx, const char *watcher, const char *key, const char *value)
{
	size_t *n = ctx;

	assert(watcher && key && value);
	++*n;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_arena arena = PP_ARENA((size_t)4 << 20);
	struct pp_looks looks = {.arena = &arena};
	size_t marks = 0;
	const struct pp_watch_context at = {.remember = remember, .ctx = &marks};
	int r = pp_apart_take((const char *)data, size, &at, &looks);

	assert(r == 0 || (r == -EBADMSG && !marks && !looks.n && !looks.left_out) || r == -ENOMEM);
	for (size_t i = 0; i < looks.n; i++)
		assert(looks.looks[i].object && looks.looks[i].kind < PP_SIGNAL_KINDS);
	pp_arena_done(&arena);
	return 0;
}
