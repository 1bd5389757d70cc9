/* SPDX-License-Identifier: Apache-2.0 */
/* A recording's answers of NVML and CUDA: one input stands for both, as their lists differ in name.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "node/node.h"
#include "node/nvml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_node n = {.arena = PP_ARENA((size_t)64 << 20)};
	struct pp_record *record = NULL;
	const struct pp_object *o;
	struct pp_error err = {0};

	if (pp_record_new((size_t)4 << 20, &record))
		abort();
	if (pp_record_put(record, PP_ENTRY_ANSWER, "nvml", data, size, 0) ||
	    pp_record_put(record, PP_ENTRY_ANSWER, "cuda", data, size, 0) ||
	    pp_source_replay_record(record, &n.src, &err))
		abort();
	n.facts.arena = &n.arena;
	n.self = pp_object_add(&n.facts, PP_NODE, "node");
	pp_collect_gpu(&n);
	assert(!n.arena.failed);
	assert(n.facts.count[PP_GPU] <= 2 * PP_NVML_GPUS);
	pp_objects_foreach (&n.facts, o) {
		if (o->kind != PP_GPU)
			continue;
		assert(pp_fact_get(o, PP_F_GPU_NVLINKS) && pp_fact_get(o, PP_F_GPU_DMABUF));
		/* What reaches a terminal does not drive it. */
		assert(!strchr(pp_fact_str_or(o, PP_F_GPU_NAME, ""), '\x1b'));
	}
	for (unsigned int i = 0; i < n.n_gpus * n.n_gpus; i++)
		assert(n.nvlinks[i] >= -1 && n.nvlinks[i] <= PP_NVML_LINKS);
	pp_arena_done(&n.arena);
	pp_source_free(n.src);
	return 0;
}
