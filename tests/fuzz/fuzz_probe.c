/* SPDX-License-Identifier: Apache-2.0 */
/* A recording's answers of check --probe: one input stands for all, as their members differ. */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "mem/probe.h"
#include "node/node.h"

static const char *const answers[] = {
	"uverbs-users",		  "probe-host-0000-3b-00-0",  "probe-dmabuf-0000-3b-00-0",
	"probe-gpu-0000-18-00-0", "probe-gpu-0000-18-00-0-2", "probe-gpu-0000-18-00-0-3",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pp_probe_options options = {.busy_ok = true};
	struct pp_node n = {.arena = PP_ARENA((size_t)64 << 20)};
	struct pp_record *record = NULL;
	struct pp_probe *probe = NULL;
	struct pp_error err = {0};
	struct pp_object *hca;

	if (pp_record_new((size_t)16 << 20, &record))
		abort();
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (pp_record_put(record, PP_ENTRY_ANSWER, answers[i], data, size, 0))
			abort();
	if (pp_source_replay_record(record, &n.src, &err))
		abort();
	n.facts.arena = &n.arena;
	n.self = pp_object_add(&n.facts, PP_NODE, "node");
	hca = pp_object_add(&n.facts, PP_HCA, "0000:3b:00.0");
	pp_fact_str(&n.facts, hca, PP_F_HCA_NAME, "mlx5_0", NULL);
	pp_fact_bool(&n.facts, hca, PP_F_HCA_HAS_DEVICE, true, NULL);
	(void)pp_object_add(&n.facts, PP_GPU, "0000:18:00.0");
	if (pp_probe_run(&n, &options, &probe, &err))
		abort();
	assert(probe->n == 4);
	for (size_t i = 0; i < probe->n; i++) {
		const struct pp_probe_result *row = &probe->row[i];

		assert(row->error >= 0 && row->error < 4096 && row->took >= 0);
		/* Nothing passes that was not decided, and what reaches a terminal does not drive
		 * it. */
		assert(row->verdict != PP_PASS || row->note[0]);
		assert(!strchr(row->note, '\x1b'));
	}
	pp_probe_free(probe);
	pp_arena_done(&n.arena);
	pp_source_free(n.src);
	return 0;
}
