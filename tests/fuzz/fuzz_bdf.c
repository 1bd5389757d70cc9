/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>

#include "base/bdf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = pp_fuzz_text(data, size), again[PP_BDF_TEXT];
	struct pp_bdf a, b;

	/* What is accepted survives formatting, in the kernel's form too. */
	if (!pp_bdf_parse(text, &a)) {
		assert(!pp_bdf_parse_kernel(pp_bdf_format(&a, again), &b));
		assert(pp_bdf_equal(&a, &b));
	}
	if (!pp_bdf_parse_kernel(text, &a))
		assert(!pp_bdf_parse(text, &b) && pp_bdf_equal(&a, &b));
	free(text);
	return 0;
}
