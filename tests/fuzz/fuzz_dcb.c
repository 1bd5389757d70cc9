/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "node/dcb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_dcb dcb = {.n_trust = 77};
	/* A copy of its own: a sanitizer sees the first byte read beyond it. */
	uint8_t *bytes = malloc(size ? size : 1);

	assert(bytes);
	memcpy(bytes, data, size);
	if (pp_dcb_parse(bytes, size, &dcb)) {
		assert(dcb.n_trust == 77);
	} else {
		assert(dcb.n_trust <= PP_DCB_SELECTORS);
		assert(dcb.has_trust || !dcb.n_trust);
		assert(dcb.dscp_apps <= size);
	}
	free(bytes);
	return 0;
}
