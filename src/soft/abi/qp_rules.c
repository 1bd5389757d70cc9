/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/abi/qp_rules.h"

#include "base/compiler.h"
#include "base/banned.h"

enum { RC, UC, UD, TYPES };

#define INIT_NEEDS (IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define RC_RTR_NEEDS                                                     \
	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define UC_RTR_NEEDS (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RC_RTS_NEEDS                                                            \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
	 IBV_QP_MAX_QP_RD_ATOMIC)
#define RC_LIVE (IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER)
#define RC_SQD                                                                    \
	(RC_LIVE | IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |  \
	 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | \
	 IBV_QP_PKEY_INDEX)

/* Alternate paths and migration are not in the table: this device has one port and no other way. */
static const struct {
	enum ibv_qp_state from, to;
	struct {
		int needs, allows;
	} of[TYPES];
} transitions[] = {
	{IBV_QPS_RESET,
	 IBV_QPS_INIT,
	 {[RC] = {INIT_NEEDS | IBV_QP_ACCESS_FLAGS, 0},
	  [UC] = {INIT_NEEDS | IBV_QP_ACCESS_FLAGS, 0},
	  [UD] = {INIT_NEEDS | IBV_QP_QKEY, 0}}},
	{IBV_QPS_INIT,
	 IBV_QPS_INIT,
	 {[RC] = {0, INIT_NEEDS | IBV_QP_ACCESS_FLAGS},
	  [UC] = {0, INIT_NEEDS | IBV_QP_ACCESS_FLAGS},
	  [UD] = {0, INIT_NEEDS | IBV_QP_QKEY}}},
	{IBV_QPS_INIT,
	 IBV_QPS_RTR,
	 {[RC] = {RC_RTR_NEEDS, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	  [UC] = {UC_RTR_NEEDS, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	  [UD] = {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}}},
	{IBV_QPS_RTR,
	 IBV_QPS_RTS,
	 {[RC] = {RC_RTS_NEEDS, RC_LIVE},
	  [UC] = {IBV_QP_SQ_PSN, IBV_QP_ACCESS_FLAGS},
	  [UD] = {IBV_QP_SQ_PSN, IBV_QP_QKEY}}},
	{IBV_QPS_RTS,
	 IBV_QPS_RTS,
	 {[RC] = {0, RC_LIVE}, [UC] = {0, IBV_QP_ACCESS_FLAGS}, [UD] = {0, IBV_QP_QKEY}}},
	{IBV_QPS_RTS,
	 IBV_QPS_SQD,
	 {[RC] = {0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	  [UC] = {0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	  [UD] = {0, IBV_QP_EN_SQD_ASYNC_NOTIFY}}},
	{IBV_QPS_SQD,
	 IBV_QPS_RTS,
	 {[RC] = {0, RC_LIVE}, [UC] = {0, IBV_QP_ACCESS_FLAGS}, [UD] = {0, IBV_QP_QKEY}}},
	{IBV_QPS_SQD,
	 IBV_QPS_SQD,
	 {[RC] = {0, RC_SQD},
	  [UC] = {0, IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	  [UD] = {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}}},
	/* A reliable connection never stops half way. */
	{IBV_QPS_SQE,
	 IBV_QPS_RTS,
	 {[RC] = {-1, 0}, [UC] = {0, IBV_QP_ACCESS_FLAGS}, [UD] = {0, IBV_QP_QKEY}}},
};

bool soft_qp_transition_allowed(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
				int mask)
{
	int kind = type == IBV_QPT_UD ? UD : type == IBV_QPT_UC ? UC : RC;

	mask &= ~(IBV_QP_STATE | IBV_QP_CUR_STATE);
	if (to == IBV_QPS_RESET)
		return !mask;
	if (to == IBV_QPS_ERR)
		return !mask && from != IBV_QPS_RESET;
	for (size_t i = 0; i < PP_ARRAY_LEN(transitions); i++) {
		int needs = transitions[i].of[kind].needs, allows = transitions[i].of[kind].allows;

		if (transitions[i].from == from && transitions[i].to == to)
			return (mask & needs) == needs && !(mask & ~(needs | allows));
	}
	return false;
}

bool soft_qp_values_allowed(const struct soft_config_device *d, const struct ibv_qp_attr *a,
			    int mask)
{
	const struct {
		int bit;
		uint64_t value, max;
	} bounded[] = {
		{IBV_QP_PKEY_INDEX, a->pkey_index, 0},
		{IBV_QP_TIMEOUT, a->timeout, 31},
		{IBV_QP_RETRY_CNT, a->retry_cnt, 7},
		{IBV_QP_RNR_RETRY, a->rnr_retry, 7},
		{IBV_QP_MIN_RNR_TIMER, a->min_rnr_timer, 31},
		{IBV_QP_MAX_QP_RD_ATOMIC, a->max_rd_atomic, d->limits.max_rd_atomic},
		{IBV_QP_MAX_DEST_RD_ATOMIC, a->max_dest_rd_atomic, d->limits.max_rd_atomic},
		{IBV_QP_DEST_QPN, a->dest_qp_num, 0xffffff},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(bounded); i++)
		if (mask & bounded[i].bit && bounded[i].value > bounded[i].max)
			return false;
	if (mask & IBV_QP_PORT && a->port_num != 1)
		return false;
	/* Larger packets than the netdev carries would vanish without a word. */
	if (mask & IBV_QP_PATH_MTU && (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096 ||
				       128u << a->path_mtu > d->mtu))
		return false;
	return true;
}
