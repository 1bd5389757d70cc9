/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>

#include "judge/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_policy *policy = NULL;
	struct pp_error err = {0};
	int r = pp_policy_parse("seed", (const char *)data, size, &policy, &err);

	assert(!r || (r < 0 && err.code == r && err.text[0]));
	assert(!r == (policy != NULL));
	pp_policy_free(policy);
	return 0;
}
