/* SPDX-License-Identifier: Apache-2.0 */
/* The input as each of the files that tell of kernel modules. */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>

#include "node/node.h"

static const char *const files[] = {
	"/proc/modules",
	"/proc/driver/nvidia/version",
	"/proc/driver/nvidia/params",
	"/sys/module/nvidia/taint",
	"/sys/module/nvidia/version",
	"/sys/module/nvidia_peermem/refcnt",
	"/sys/module/nvidia_peermem/version",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_node n = {.arena = PP_ARENA((size_t)8 << 20)};
	struct pp_record *record = NULL;
	struct pp_error err = {0};
	const struct pp_fact *loaded;

	if (pp_record_new((size_t)64 << 20, &record))
		abort();
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (pp_record_put(record, PP_ENTRY_FILE, files[i], data, size, 0))
			abort();
	if (pp_source_replay_record(record, &n.src, &err))
		abort();
	n.facts.arena = &n.arena;
	n.self = pp_object_add(&n.facts, PP_NODE, "node");
	pp_collect_modules(&n);
	assert(!n.arena.failed);
	/* It is in /sys/module: whatever the list holds, "not loaded" would be a lie. */
	loaded = pp_fact_get(n.self, PP_F_PEERMEM_LOADED);
	assert(loaded && (!loaded->known || loaded->i64));
	assert(pp_fact_get(n.self, PP_F_NVIDIA_FLAVOUR));
	pp_arena_done(&n.arena);
	pp_source_free(n.src);
	return 0;
}
