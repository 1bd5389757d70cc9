/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device says of itself.
 */
#include "soft/abi/export.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "soft/abi/object.h"
#include "base/banned.h"

static int clamp(uint32_t n)
{
	return n > INT32_MAX ? INT32_MAX : (int)n;
}

static void fill(const struct soft_device *d, struct ibv_device_attr *a)
{
	const struct soft_limits *l = &d->config.limits;

	*a = (struct ibv_device_attr){
		.node_guid = d->guid,
		.sys_image_guid = d->guid,
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffffffffffff000u,
		.vendor_id = d->config.vendor_id,
		.vendor_part_id = d->config.vendor_part_id,
		.hw_ver = d->config.hw_ver,
		.max_qp = clamp(l->max_qp),
		.max_qp_wr = clamp(l->max_qp_wr),
		.device_cap_flags = IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR |
				    IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
				    IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
				    IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
				    IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_SRQ_RESIZE,
		.max_sge = clamp(l->max_sge),
		.max_sge_rd = clamp(l->max_sge),
		.max_cq = clamp(l->max_cq),
		.max_cqe = clamp(l->max_cqe),
		.max_mr = clamp(l->max_mr),
		.max_mw = clamp(l->max_mw),
		.max_pd = clamp(l->max_pd),
		.max_qp_rd_atom = clamp(l->max_rd_atomic),
		.max_res_rd_atom = clamp(l->max_rd_atomic * l->max_qp),
		.max_qp_init_rd_atom = clamp(l->max_rd_atomic),
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_ah = clamp(l->max_ah),
		.max_srq = clamp(l->max_srq),
		.max_srq_wr = clamp(l->max_srq_wr),
		.max_srq_sge = clamp(l->max_sge),
		.max_pkeys = 1,
		.local_ca_ack_delay = 15,
		.phys_port_cnt = 1,
	};
	(void)snprintf(a->fw_ver, sizeof(a->fw_ver), "%s", PEERPATH_VERSION);
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	if (soft_context_gone(soft_context_of(context)))
		return EIO;
	fill(soft_context_of(context)->device, attr);
	return 0;
}

int soft_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex all = {
		/* completions carry CLOCK_MONOTONIC nanoseconds */
		.completion_timestamp_mask = UINT64_MAX,
		.hca_core_clock = 1000000, /* kHz */
		.cq_mod_caps = {.max_cq_count = UINT16_MAX, .max_cq_period = UINT16_MAX},
		.phys_port_cnt_ex = 1,
	};

	if (soft_context_gone(soft_context_of(context)))
		return EIO;
	if (input && input->comp_mask)
		return EINVAL;
	if (size < offsetof(struct ibv_device_attr_ex, comp_mask))
		return EINVAL;
	fill(soft_context_of(context)->device, &all.orig_attr);
	all.device_cap_flags_ex = all.orig_attr.device_cap_flags;
	if (size > sizeof(all)) {
		memset((char *)attr + sizeof(all), 0, size - sizeof(all));
		size = sizeof(all);
	}
	memcpy(attr, &all, size);
	return 0;
}

int soft_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	(void)context;
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		if (clock_gettime(CLOCK_MONOTONIC, &values->raw_clock))
			return errno;
		values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
		return 0;
	}
	return EINVAL;
}
