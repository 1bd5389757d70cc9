/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a completion says, in the numbers of verbs: enum ibv_wc_status, ibv_wc_opcode,
 * ibv_wc_flags.
 */
#ifndef SOFT_QP_STATUS_H
#define SOFT_QP_STATUS_H

enum soft_wc_status {
	SOFT_WC_SUCCESS = 0,
	SOFT_WC_LOC_LEN_ERR = 1,
	SOFT_WC_LOC_QP_OP_ERR = 2,
	SOFT_WC_LOC_PROT_ERR = 4,
	SOFT_WC_WR_FLUSH_ERR = 5,
	SOFT_WC_MW_BIND_ERR = 6,
	SOFT_WC_BAD_RESP_ERR = 7,
	SOFT_WC_LOC_ACCESS_ERR = 8,
	SOFT_WC_REM_INV_REQ_ERR = 9,
	SOFT_WC_REM_ACCESS_ERR = 10,
	SOFT_WC_REM_OP_ERR = 11,
	SOFT_WC_RETRY_EXC_ERR = 12,
	SOFT_WC_RNR_RETRY_EXC_ERR = 13,
	SOFT_WC_FATAL_ERR = 19,
	SOFT_WC_GENERAL_ERR = 21,
};

enum soft_wc_opcode {
	SOFT_WC_SEND = 0,
	SOFT_WC_WRITE = 1,
	SOFT_WC_READ = 2,
	SOFT_WC_COMPARE_SWAP = 3,
	SOFT_WC_FETCH_ADD = 4,
	SOFT_WC_BIND_WINDOW = 5,
	SOFT_WC_LOCAL_INVALIDATE = 6,
	SOFT_WC_RECV = 128,
	SOFT_WC_RECV_WRITE_IMM = 129,
};

enum {
	SOFT_WC_GRH = 1 << 0,
	SOFT_WC_WITH_IMM = 1 << 1,
	SOFT_WC_WITH_INV = 1 << 3,
};

/*
 * What kind of packet brought a datagram, in the place of the service level that Ethernet has not
 * (annex A17.4.5.1 wants it said; these are mlx5's numbers, which UCX goes by).
 */
enum soft_packet_type { SOFT_PACKET_IPV6 = 0x9, SOFT_PACKET_IPV4 = 0xa };

#endif
