/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc/kallsyms says of the RDMA core's way to GPU memory.
 *
 * A module's symbols are there only while it is loaded, so "no" needs a witness of the same
 * module: ib_register_device for ib_core, ib_umem_release for ib_uverbs (peer memory is built
 * into the one or the other). Reading costs the kernel some 10 ms per MiB, so it is not done
 * where no RDMA core is in sight.
 */
#include <string.h>

#include "node/collect_kernel.h"
#include "base/banned.h"

enum { MAX_KALLSYMS = 64 << 20 };

static const char KALLSYMS[] = "/proc/kallsyms";

enum symbol { CORE, UMEM, PEER_MEMORY, DMABUF, SYMBOLS };

static const char *const names[SYMBOLS] = {
	[CORE] = "ib_register_device",
	[UMEM] = "ib_umem_release",
	[PEER_MEMORY] = "ib_register_peer_memory_client",
	[DMABUF] = "ib_umem_dmabuf_get",
};

static bool all_of(const bool seen[SYMBOLS])
{
	for (size_t i = 0; i < SYMBOLS; i++)
		if (!seen[i])
			return false;
	return true;
}

/* "ffffffffc0a01230 T ib_umem_release\t[ib_uverbs]" */
static enum pp_scan_step keep_symbol(void *arg, const char *line, size_t len)
{
	bool *seen = arg;
	const char *name = memchr(line, ' ', len);
	size_t name_len;

	if (!name || strncmp(name + 1, "T ib_", 5) != 0)
		return PP_SCAN_DROP;
	name += 3;
	name_len = strcspn(name, "\t ");
	for (size_t i = 0; i < SYMBOLS; i++) {
		if (strlen(names[i]) != name_len || memcmp(names[i], name, name_len) != 0)
			continue;
		seen[i] = true;
		return all_of(seen) ? PP_SCAN_LAST : PP_SCAN_KEEP;
	}
	return PP_SCAN_DROP;
}

static bool core_in_sight(struct pp_node *n)
{
	static const char *const signs[] = {"/sys/module/ib_uverbs", "/sys/module/ib_core",
					    "/sys/class/infiniband"};

	for (size_t i = 0; i < PP_ARRAY_LEN(signs); i++)
		if (pp_source_exists(n->src, signs[i]))
			return true;
	return false;
}

static void set_symbol(struct pp_node *n, enum pp_fact_id id, bool yes, bool witnessed)
{
	if (yes || witnessed)
		pp_fact_bool(&n->facts, n->self, id, yes, KALLSYMS);
	else
		pp_fact_unknown(
			&n->facts, n->self, id, KALLSYMS,
			"ib_core and ib_uverbs are not loaded: a module's symbols show only "
			"while it is loaded");
}

void pp_kernel_symbols_collect(struct pp_node *n)
{
	bool seen[SYMBOLS] = {false};
	const struct pp_scan scan = {
		.separator = '\n', .max = MAX_KALLSYMS, .filter = keep_symbol, .arg = seen};
	int r = core_in_sight(n) ? pp_source_scan(n->src, KALLSYMS, &scan) : 0;

	if (r) {
		pp_fact_unknown(&n->facts, n->self, PP_F_KERNEL_PEER_MEMORY, KALLSYMS, "%s: %s",
				KALLSYMS, pp_source_why(r));
		pp_fact_unknown(&n->facts, n->self, PP_F_KERNEL_DMABUF_VERB, KALLSYMS, "%s: %s",
				KALLSYMS, pp_source_why(r));
		return;
	}
	set_symbol(n, PP_F_KERNEL_PEER_MEMORY, seen[PEER_MEMORY], seen[CORE] && seen[UMEM]);
	set_symbol(n, PP_F_KERNEL_DMABUF_VERB, seen[DMABUF], seen[UMEM]);
}
