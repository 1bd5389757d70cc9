/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/budget.h"

#include <errno.h>

#include "mem/bar1.h"
#include "mem/cuda.h"
#include "base/banned.h"

enum { MIB = 20 };

int pp_budget_check(const struct pp_memory *m, uint64_t need, struct pp_error *err)
{
	const struct pp_cuda *c = m->cuda;
	int64_t total, used;
	uint64_t left;

	if (!c)
		return 0;
	pp_bar1_read(&c->bar1, &total, &used);
	/* Mapped once and for all: registrations take nothing of it. */
	if (total < 0 || (c->memory && (uint64_t)total >= c->memory))
		return 0;
	left = (uint64_t)(total - used);
	if (need <= left)
		return 0;
	return pp_error_set(
		err, -ENOSPC,
		"GPU %s: %llu MiB do not fit BAR1: %llu of its %llu MiB are left. Register less at "
		"a "
		"time, end what holds the rest (nvidia-smi -q -d MEMORY), or let the firmware make "
		"BAR1 large (resizable BAR, \"above 4G decoding\")",
		c->name, (unsigned long long)((need + (1 << MIB) - 1) >> MIB),
		(unsigned long long)(left >> MIB), (unsigned long long)total >> MIB);
}
