/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of a file, applied to a small node. Whatever the file says: an error has a text, and a rule
 * that was accepted gives one of three answers.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "judge/finding.h"

static void apply(const struct pp_rules *rules)
{
	struct pp_buf PP_AUTO_BUF out = PP_BUF((size_t)16 << 20);
	struct pp_arena arena = PP_ARENA((size_t)1 << 20);
	struct pp_facts facts = {.arena = &arena};
	struct pp_json j = PP_JSON(&out, false);
	struct pp_object *node = pp_object_add(&facts, PP_NODE, "node"), *gpu, *hca, *pair;
	struct pp_findings found;

	gpu = pp_object_add(&facts, PP_GPU, "0000:01:00.0");
	hca = pp_object_add(&facts, PP_HCA, "0000:02:00.0");
	pair = pp_object_add(&facts, PP_PAIR, "0000:01:00.0/0000:02:00.0");
	assert(pair);
	pair->parent = gpu;
	pair->peer = hca;
	pp_fact_str(&facts, node, PP_F_NVIDIA_VERSION, "580.65.06", NULL);
	pp_fact_str(&facts, gpu, PP_F_GPU_NAME, "NVIDIA H200", NULL);
	pp_fact_int(&facts, gpu, PP_F_GPU_BAR1_TOTAL, 256 << 20, NULL);
	pp_fact_unknown(&facts, gpu, PP_F_GPU_UUID, NULL, "not asked");
	pp_fact_bool(&facts, hca, PP_F_HCA_UVERBS_ACCESS, true, NULL);
	if (!pp_findings_judge(&facts, rules, /* policy= */ NULL, &found)) {
		for (size_t i = 0; i < found.n; i++)
			assert(found.list[i].state != PP_FALSE);
		pp_json_object(&j, NULL);
		pp_findings_write(&j, "findings", &facts, &found);
		pp_json_end_object(&j);
		pp_findings_done(&found);
	}
	pp_arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_rules *rules = NULL;
	struct pp_error err = {0};
	int r;

	if (pp_rules_new(&rules))
		return 0;
	r = pp_rules_parse(rules, 0, "seed", (const char *)data, size, &err);
	assert(!r || (r < 0 && err.code == r && err.text[0]));
	if (!r)
		apply(rules);
	pp_rules_free(rules);
	return 0;
}
