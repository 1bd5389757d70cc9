/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>

#include "node/nccl_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_error err = {0};
	struct pp_nccl_path *path;
	struct pp_nccl_xml x;
	int r = pp_nccl_xml_parse("seed", (const char *)data, size, &x, &err);

	if (r) {
		assert(err.code == r && err.text[0]);
		return 0;
	}
	path = calloc(x.graph.n_nics + 1, sizeof(*path));
	if (!path)
		abort();
	for (unsigned int i = 0; i < x.graph.n_gpus; i++) {
		pp_nccl_paths(&x.graph, i, path);
		for (unsigned int k = 0; k < x.graph.n_nics; k++)
			assert(pp_nccl_type_name(path[k].flat) && path[k].flat <= path[k].raw);
	}
	for (unsigned int i = 0; i < PP_NCCL_ODDS; i++)
		assert(!x.odd[i] == !x.odd_first[i]);
	free(path);
	pp_nccl_xml_done(&x);
	return 0;
}
