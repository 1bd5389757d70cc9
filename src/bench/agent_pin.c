/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/agent_state.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "node/numa.h"
#include "node/source.h"
#include "base/banned.h"

enum { CPUS = 8192, RANGES = 256 };

/* "0-3,8": what is set. */
static void describe(const cpu_set_t *set, size_t bytes, char *ret, size_t size)
{
	size_t len = 0;
	int n;

	*ret = '\0';
	for (int i = 0; i < CPUS; i++) {
		int last = i;

		if (!CPU_ISSET_S(i, bytes, set))
			continue;
		while (last + 1 < CPUS && CPU_ISSET_S(last + 1, bytes, set))
			last++;
		n = snprintf(ret + len, size - len, last > i ? "%s%d-%d" : "%s%d", len ? "," : "",
			     i, last);
		if (n < 0 || (size_t)n >= size - len)
			return;
		len += (size_t)n;
		i = last;
	}
}

static int cpus_of(int numa, struct pp_range *ret)
{
	struct pp_source *src;
	struct pp_error err;
	char path[64], text[1024];
	int r = pp_source_live(&src, &err);

	if (r)
		return r;
	(void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", numa);
	r = pp_source_text(src, path, text, sizeof(text));
	pp_source_free(src);
	return r ? r : pp_range_parse(text, ret, RANGES);
}

void pp_agent_pin(int numa, char *ret, size_t size)
{
	cpu_set_t *allowed = CPU_ALLOC(CPUS), *wanted = CPU_ALLOC(CPUS);
	size_t bytes = CPU_ALLOC_SIZE(CPUS);
	struct pp_range range[RANGES];
	int n = numa < 0 ? 0 : cpus_of(numa, range);

	*ret = '\0';
	if (allowed && wanted && n > 0 && !sched_getaffinity(0, bytes, allowed)) {
		CPU_ZERO_S(bytes, wanted);
		for (int i = 0; i < n; i++)
			for (unsigned int c = range[i].first; c <= range[i].last && c < CPUS; c++)
				if (CPU_ISSET_S(c, bytes, allowed))
					CPU_SET_S(c, bytes, wanted);
		if (CPU_COUNT_S(bytes, wanted) && !sched_setaffinity(0, bytes, wanted))
			describe(wanted, bytes, ret, size);
	}
	CPU_FREE(allowed);
	CPU_FREE(wanted);
}
