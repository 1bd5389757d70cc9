/* SPDX-License-Identifier: Apache-2.0 */
#include "node/numa.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

enum { MAX_RANGES = 64, MAX_CPU = 1 << 20, LIST_BYTES = 4096 };

static int number(const char *text, size_t len, unsigned int *ret)
{
	char digits[12];
	uint64_t value;

	if (!len || len >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (pp_parse_u64(digits, 0, MAX_CPU, &value))
		return -EINVAL;
	*ret = (unsigned int)value;
	return 0;
}

int pp_range_parse(const char *text, struct pp_range *ret, unsigned int max)
{
	struct pp_range range;
	unsigned int n = 0;
	size_t part, dash;

	for (const char *p = text; *p; p += part + (p[part] == ',')) {
		part = strcspn(p, ",");
		dash = strcspn(p, ",-");
		if (number(p, dash, &range.first))
			return -EINVAL;
		range.last = range.first;
		if (dash < part && number(p + dash + 1, part - dash - 1, &range.last))
			return -EINVAL;
		if (range.last < range.first || n == max)
			return -EINVAL;
		ret[n++] = range;
	}
	return (int)n;
}

static int read_ranges(struct pp_source *src, const char *path, struct pp_range *ret)
{
	char text[LIST_BYTES];
	int r = pp_source_text(src, path, text, sizeof(text));

	return r ? r : pp_range_parse(text, ret, MAX_RANGES);
}

static int package_of_cpu(struct pp_source *src, unsigned int cpu)
{
	char path[96], text[16];
	int64_t package;

	(void)snprintf(path, sizeof(path),
		       "/sys/devices/system/cpu/cpu%u/topology/physical_package_id", cpu);
	if (pp_source_text(src, path, text, sizeof(text)) ||
	    pp_parse_i64(text, 0, INT32_MAX, &package))
		return -1;
	return (int)package;
}

/*
 * The ends of each range of CPUs are looked at: a node that spans sockets (node interleaving)
 * has no socket. A node of memory alone has none either.
 */
static int package_of_node(struct pp_source *src, unsigned int node)
{
	struct pp_range cpus[MAX_RANGES];
	int n, package = -1, other;
	char path[64];

	(void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", node);
	n = read_ranges(src, path, cpus);
	for (int i = 0; i < n; i++) {
		const unsigned int ends[] = {cpus[i].first, cpus[i].last};

		for (size_t e = 0; e < PP_ARRAY_LEN(ends); e++) {
			other = package_of_cpu(src, ends[e]);
			if (other < 0 || (package >= 0 && other != package))
				return -1;
			package = other;
		}
	}
	return package;
}

void pp_numa_collect(struct pp_source *src, struct pp_arena *a, struct pp_pci *pci)
{
	struct pp_range online[MAX_RANGES];
	int n = read_ranges(src, "/sys/devices/system/node/online", online), nodes = 0;
	unsigned int top;

	pci->online_nodes = -1;
	if (n <= 0 || online[n - 1].last >= PP_NUMA_MAX)
		return;
	top = online[n - 1].last + 1;
	pci->node_package = pp_arena_array(a, top, sizeof(*pci->node_package));
	if (!pci->node_package)
		return;
	pci->n_node_package = top;
	memset(pci->node_package, -1, top * sizeof(*pci->node_package));
	for (int i = 0; i < n; i++) {
		for (unsigned int node = online[i].first; node <= online[i].last && node < top;
		     node++) {
			pci->node_package[node] = package_of_node(src, node);
			nodes++;
		}
	}
	pci->online_nodes = nodes;
}
