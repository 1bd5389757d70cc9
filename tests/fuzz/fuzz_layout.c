/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planned layout by any hand, compared with a node of which nothing is known: every expectation
 * is then unknown or, where the tree was seen to lack it, different; none is met.
 */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>

#include "node/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_arena node = PP_ARENA(65536), a = PP_ARENA((size_t)32 << 20);
	struct pp_node n = {.arena = node, .pci = {.online_nodes = -1}};
	struct pp_layout_rows rows = {0};
	struct pp_error err = {0};
	struct pp_layout *l = NULL;
	int r = pp_layout_parse("seed", (const char *)data, size, &l, &err);

	if (r) {
		assert(!l && err.code == r && err.text[0]);
		return 0;
	}
	n.facts.arena = &n.arena;
	n.self = pp_object_add(&n.facts, PP_NODE, "node");
	r = pp_layout_compare(l, &n, &a, &rows);
	assert(!r || r == -ENOMEM);
	for (unsigned int i = 0; i < rows.n; i++) {
		assert(rows.row[i].what && rows.row[i].planned && rows.row[i].found);
		assert(rows.row[i].verdict == PP_UNKNOWN || rows.row[i].verdict == PP_DEGRADED);
	}
	pp_layout_free(l);
	pp_arena_done(&n.arena);
	pp_arena_done(&a);
	return 0;
}
