/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>

#include "judge/comparison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pp_trial *arm;
	struct pp_comparison c;
	struct pp_trial t;
	struct pp_error err = {0};
	int r = pp_trial_read("seed", (const char *)data, size, &t, &err);

	assert(!r || (r < 0 && err.code == r && err.text[0]));
	if (r)
		return 0;
	arm = &t;
	if (!pp_comparison_make(&arm, 1, &arm, 1, &c)) {
		assert(c.sentence && c.next);
		for (size_t i = 0; i < c.n_rows; i++)
			assert(c.row[i].change != PP_CHANGE_BETTER &&
			       c.row[i].change != PP_CHANGE_WORSE);
		pp_comparison_done(&c);
	}
	pp_trial_done(&t);
	return 0;
}
