/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ibv_modify_qp() may do: transitions with the attributes that they need and allow
 * (InfiniBand Architecture Specification, volume 1, 11.2.5.2, table "QP state transition
 * properties"). Pure.
 */
#ifndef SOFT_ABI_QP_RULES_H
#define SOFT_ABI_QP_RULES_H

#include <stdbool.h>

#include "soft/config/config.h"
#include "soft/verbs.h"

/* IBV_QP_STATE and IBV_QP_CUR_STATE apart, is @mask right for @from -> @to? */
bool soft_qp_transition_allowed(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
				int mask);
/* Are the values of the attributes in @mask possible on this device? Address vectors apart. */
bool soft_qp_values_allowed(const struct soft_config_device *device, const struct ibv_qp_attr *attr,
			    int mask);

#endif
