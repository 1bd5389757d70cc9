/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our declarations of the verbs ABI against the installed rdma-core's, field by field; what came
 * after that version against figures measured with rdma-core 65.
 */
#include "unit.h"

#include "soft/verbs_object.h"

#include "soft_abi_fields.h"

/* clang-format off */
SOFT_ABI_TABLE(soft_abi_ours)
#include "soft_abi_fields.def"
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
	assert_true(n > 150);
}

static void test_newest(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct verbs_context), 696);
	assert_int_equal(sizeof(struct ibv_qp_ex), 360);
	assert_int_equal(sizeof(struct ibv_port_attr), 56);
	assert_int_equal(SOFT_COMPAT_PORT_ATTR, 48);
	/* reg_mr_ex lies three slots behind the front of 65's table */
	assert_int_equal(offsetof(struct verbs_context, reg_mr_ex), 24);
	assert_int_equal(offsetof(struct verbs_context, query_port), 48);
	assert_int_equal(sizeof(struct ibv_mr_init_attr), 72);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_newest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
