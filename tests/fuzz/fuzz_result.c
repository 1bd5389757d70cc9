/* SPDX-License-Identifier: Apache-2.0 */
/* A result that somebody pushes: documents of every kind. */
#include "fuzz.h"

#include "store/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_error err = {0};
	struct pp_result *r = NULL;

	if (!pp_result_read((const char *)data, size, &r, &err)) {
		for (size_t i = 0; i < r->n_figures; i++)
			if (r->figure[i].node >= r->n_nodes)
				__builtin_trap();
		pp_result_free(r);
	} else if (!err.code) {
		__builtin_trap();
	}
	return 0;
}
