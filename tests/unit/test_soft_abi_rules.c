/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transitions of queue pairs against the kernel's table (drivers/infiniband/core/verbs.c,
 * qp_state_table, of Linux), read there and written down here by attribute; path migration left
 * out, which this device does not have. Every attribute is tried, wanted or not.
 */
#include "unit.h"

#include "soft/abi/qp_rules.h"

#define A(x) IBV_QP_##x

static const struct {
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int required, optional;
} kernel[] = {
	{IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS), 0},
	{IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS), 0},
	{IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, A(PKEY_INDEX) | A(PORT) | A(QKEY), 0},
	{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS)},
	{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_INIT, 0, A(PKEY_INDEX) | A(PORT) | A(QKEY)},
	{IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_INIT, 0, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS)},
	{IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN),
	 A(ACCESS_FLAGS) | A(PKEY_INDEX)},
	{IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, A(SQ_PSN), A(ACCESS_FLAGS)},
	{IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_RTS, 0, A(ACCESS_FLAGS)},
	{IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_SQD, 0, A(EN_SQD_ASYNC_NOTIFY)},
	{IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_RTS, 0, A(ACCESS_FLAGS)},
	{IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_SQD, 0, A(AV) | A(ACCESS_FLAGS) | A(PKEY_INDEX)},
	{IBV_QPT_UC, IBV_QPS_SQE, IBV_QPS_RTS, 0, A(ACCESS_FLAGS)},
	{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
	 A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN) | A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER),
	 A(ACCESS_FLAGS) | A(PKEY_INDEX)},
	{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, A(PKEY_INDEX) | A(QKEY)},
	{IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
	 A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(SQ_PSN) | A(MAX_QP_RD_ATOMIC),
	 A(ACCESS_FLAGS) | A(MIN_RNR_TIMER)},
	{IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, A(SQ_PSN), A(QKEY)},
	{IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0, A(ACCESS_FLAGS) | A(MIN_RNR_TIMER)},
	{IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, A(QKEY)},
	{IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, 0, A(EN_SQD_ASYNC_NOTIFY)},
	{IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_SQD, 0, A(EN_SQD_ASYNC_NOTIFY)},
	{IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_RTS, 0, A(ACCESS_FLAGS) | A(MIN_RNR_TIMER)},
	{IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_RTS, 0, A(QKEY)},
	{IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 A(PORT) | A(AV) | A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_QP_RD_ATOMIC) |
		 A(MAX_DEST_RD_ATOMIC) | A(ACCESS_FLAGS) | A(PKEY_INDEX) | A(MIN_RNR_TIMER)},
	{IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_SQD, 0, A(PKEY_INDEX) | A(QKEY)},
	{IBV_QPT_UD, IBV_QPS_SQE, IBV_QPS_RTS, 0, A(QKEY)},
};

enum { ENTRIES = sizeof(kernel) / sizeof(kernel[0]) };

static int find(enum ibv_qp_type type, int from, int to)
{
	for (int i = 0; i < ENTRIES; i++)
		if (kernel[i].type == type && (int)kernel[i].from == from &&
		    (int)kernel[i].to == to)
			return i;
	return -1;
}

static void try_attributes(int at)
{
	enum ibv_qp_type type = kernel[at].type;
	enum ibv_qp_state from = kernel[at].from, to = kernel[at].to;
	int required = kernel[at].required, optional = kernel[at].optional;

	assert_true(soft_qp_transition_allowed(type, from, to, required | IBV_QP_STATE));
	assert_true(soft_qp_transition_allowed(type, from, to, required | optional | IBV_QP_STATE));
	for (int bit = 0; bit < 26; bit++) {
		int attribute = 1 << bit;

		if (attribute == IBV_QP_STATE || attribute == IBV_QP_CUR_STATE)
			continue;
		if (required & attribute)
			assert_false(soft_qp_transition_allowed(
				type, from, to, (required & ~attribute) | IBV_QP_STATE));
		else
			assert_int_equal(
				soft_qp_transition_allowed(type, from, to,
							   required | attribute | IBV_QP_STATE),
				!!(optional & attribute));
	}
}

static void test_transitions(void **state)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

	(void)state;
	for (int t = 0; t < 3; t++)
		for (int from = IBV_QPS_RESET; from <= IBV_QPS_ERR; from++)
			for (int to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
				bool always = to == IBV_QPS_RESET ||
					      (to == IBV_QPS_ERR && from != IBV_QPS_RESET);
				int at = find(types[t], from, to);

				if (at >= 0)
					try_attributes(at);
				else
					assert_int_equal(soft_qp_transition_allowed(
								 types[t], (enum ibv_qp_state)from,
								 (enum ibv_qp_state)to,
								 IBV_QP_STATE),
							 always);
				if (always)
					assert_false(soft_qp_transition_allowed(
						types[t], (enum ibv_qp_state)from,
						(enum ibv_qp_state)to, IBV_QP_STATE | IBV_QP_QKEY));
			}
}

static void test_values(void **state)
{
	struct soft_config_device d = {.mtu = 1024, .limits = {.max_rd_atomic = 16}};
	struct ibv_qp_attr a = {.path_mtu = IBV_MTU_1024,
				.port_num = 1,
				.timeout = 31,
				.retry_cnt = 7,
				.rnr_retry = 7,
				.min_rnr_timer = 31,
				.max_rd_atomic = 16,
				.max_dest_rd_atomic = 16,
				.dest_qp_num = 0xffffff};
	struct ibv_qp_attr b;
	int all = A(PATH_MTU) | A(PORT) | A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) |
		  A(MIN_RNR_TIMER) | A(MAX_QP_RD_ATOMIC) | A(MAX_DEST_RD_ATOMIC) | A(DEST_QPN) |
		  A(PKEY_INDEX);

	(void)state;
	assert_true(soft_qp_values_allowed(&d, &a, all));
#define WRONG(field, value) \
	b = a;              \
	b.field = value;    \
	assert_false(soft_qp_values_allowed(&d, &b, all))
	WRONG(path_mtu, IBV_MTU_2048); /* the netdev does not carry it */
	WRONG(path_mtu, 0);
	WRONG(path_mtu, 6);
	WRONG(port_num, 0);
	WRONG(port_num, 2);
	WRONG(timeout, 32);
	WRONG(retry_cnt, 8);
	WRONG(rnr_retry, 8);
	WRONG(min_rnr_timer, 32);
	WRONG(max_rd_atomic, 17);
	WRONG(max_dest_rd_atomic, 17);
	WRONG(dest_qp_num, 0x1000000);
	WRONG(pkey_index, 1);
	/* what is not asked for is not looked at */
	assert_true(soft_qp_values_allowed(&d, &b, A(TIMEOUT)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_transitions),
		cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
