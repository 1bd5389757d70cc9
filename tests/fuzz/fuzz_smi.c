/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "node/smi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_error err = {0};
	char text[PP_SMI_CELL_TEXT];
	struct pp_smi s;
	int r = pp_smi_parse("seed", (const char *)data, size, &s, &err);

	if (r) {
		assert(err.code == r && err.text[0]);
		return 0;
	}
	assert(s.n && s.n <= PP_SMI_MAX_COLUMNS && s.n_gpus <= s.n);
	for (unsigned int i = 0; i < s.n; i++) {
		assert(s.dev[i].line && s.dev[i].name[0]);
		for (unsigned int j = 0; j < s.n; j++)
			assert(strcmp(pp_smi_cell_text(pp_smi_at(&s, i, j), text), "unknown") != 0);
		(void)pp_smi_nearest(&s, i);
	}
	pp_smi_done(&s);
	return 0;
}
