/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>

#include "profile/rollout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_rollout *r = NULL;
	struct pp_rollout_status s;
	struct pp_error err = {0};
	int e = pp_rollout_parse("seed", (const char *)data, size, &r, &err);

	assert(!e || (e < 0 && err.code == e && err.text[0]));
	assert(!e == (r != NULL));
	if (e)
		return 0;
	/* None was read: nothing may come out as done. */
	for (unsigned int i = 0; i < r->n; i++)
		r->bundle[i].error = "was not read";
	assert(!pp_rollout_judge(r, &s));
	for (unsigned int i = 0; i < PP_STEP_ROLLBACK; i++)
		assert(s.step[i].state != PP_STEP_DONE);
	pp_rollout_status_done(&s);
	pp_rollout_free(r);
	return 0;
}
