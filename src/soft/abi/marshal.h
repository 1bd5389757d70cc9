/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between the kernel's address structures and the library's, for librdmacm. Layouts: the
 * kernel's from its own headers, the library's as of rdma-core.
 */
#ifndef SOFT_ABI_MARSHAL_H
#define SOFT_ABI_MARSHAL_H

#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#include "soft/verbs.h"

struct ibv_sa_path_rec {
	union ibv_gid dgid, sgid;
	uint16_t dlid, slid; /* big-endian */
	int raw_traffic;
	uint32_t flow_label; /* big-endian */
	uint8_t hop_limit, traffic_class;
	int reversible;
	uint8_t numb_path;
	uint16_t pkey; /* big-endian */
	uint8_t sl, mtu_selector, mtu, rate_selector, rate;
	uint8_t packet_life_time_selector, packet_life_time, preference;
};

#pragma GCC visibility push(default)
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, struct ib_uverbs_ah_attr *from);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, struct ib_uverbs_qp_attr *from);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to, struct ib_user_path_rec *from);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to, struct ibv_sa_path_rec *from);
#pragma GCC visibility pop

#endif
