/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our declarations of librdmacm's ABI against the installed rdma-core's, field by field.
 */
#include "unit.h"

#include "soft/cm/rdma_cma.h"

#include "soft_abi_fields.h"

/* clang-format off */
SOFT_ABI_TABLE(soft_abi_ours)
#include "soft_cm_fields.def"
	{NULL, 0},
};
/* clang-format on */

static void test_same(void **state)
{
	unsigned int n = 0;

	(void)state;
	for (; soft_abi_ours[n].what && soft_abi_installed[n].what; n++) {
		assert_string_equal(soft_abi_ours[n].what, soft_abi_installed[n].what);
		if (soft_abi_ours[n].number != soft_abi_installed[n].number)
			fail_msg("%s: %ld, installed %ld", soft_abi_ours[n].what,
				 soft_abi_ours[n].number, soft_abi_installed[n].number);
	}
	assert_null(soft_abi_ours[n].what);
	assert_null(soft_abi_installed[n].what);
	assert_true(n > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_same)};

	if (!soft_abi_installed[0].what) {
		(void)puts("<rdma/rdma_cma.h> is not installed (librdmacm-dev)");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
