/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters that tell of loss, by the names that the kernel's drivers give them: the port counters
 * of InfiniBand (drivers/infiniband/core/sysfs.c), and hw_counters of mlx5 (counters.c), rxe
 * (rxe_hw_counters.c), bnxt_re (hw_counters.c), irdma (hw.c) and efa (efa_verbs.c).
 */
#include <string.h>

#include "base/compiler.h"
#include "bench/result.h"
#include "base/banned.h"

static const struct counter {
	const char *name;
	enum pp_loss loss;
} counters[] = {
	/* every driver */
	{"port_rcv_errors", PP_LOSS_DISCARD},
	{"port_xmit_discards", PP_LOSS_DISCARD},
	{"symbol_error", PP_LOSS_DISCARD},
	{"link_error_recovery", PP_LOSS_DISCARD},
	{"local_link_integrity_errors", PP_LOSS_DISCARD},
	{"excessive_buffer_overrun_errors", PP_LOSS_DISCARD},
	{"link_downed", PP_LOSS_DISCARD},
	/* mlx5 */
	{"local_ack_timeout_err", PP_LOSS_RETRANSMIT},
	{"duplicate_request", PP_LOSS_RETRANSMIT},
	{"rnr_nak_retry_err", PP_LOSS_RETRANSMIT},
	{"roce_adp_retrans", PP_LOSS_RETRANSMIT},
	{"roce_adp_retrans_to", PP_LOSS_RETRANSMIT},
	{"out_of_sequence", PP_LOSS_ORDER},
	{"packet_seq_err", PP_LOSS_ORDER},
	{"implied_nak_seq_err", PP_LOSS_ORDER},
	{"out_of_buffer", PP_LOSS_DISCARD},
	{"rx_icrc_encapsulated", PP_LOSS_DISCARD},
	{"req_transport_retries_exceeded", PP_LOSS_RETRANSMIT},
	{"req_rnr_retries_exceeded", PP_LOSS_RETRANSMIT},
	{"roce_slow_restart", PP_LOSS_RETRANSMIT},
	{"rx_discards_phy", PP_LOSS_DISCARD},
	{"rx_prio_discards", PP_LOSS_DISCARD},
	/* rxe */
	{"completer_retry_err", PP_LOSS_RETRANSMIT},
	{"retry_exceeded_err", PP_LOSS_RETRANSMIT},
	{"retry_rnr_exceeded_err", PP_LOSS_RETRANSMIT},
	{"rcvd_rnr_err", PP_LOSS_RETRANSMIT},
	{"send_rnr_err", PP_LOSS_RETRANSMIT},
	{"out_of_seq_request", PP_LOSS_ORDER},
	{"rcvd_seq_err", PP_LOSS_ORDER},
	{"send_err", PP_LOSS_DISCARD},
	/* bnxt_re */
	{"to_retransmits", PP_LOSS_RETRANSMIT},
	{"max_retry_exceeded", PP_LOSS_RETRANSMIT},
	{"rnr_naks_rcvd", PP_LOSS_RETRANSMIT},
	{"dup_req", PP_LOSS_RETRANSMIT},
	{"seq_err_naks_rcvd", PP_LOSS_ORDER},
	{"missing_resp", PP_LOSS_ORDER},
	{"res_oos_drop_count", PP_LOSS_ORDER},
	{"oos_drop_count", PP_LOSS_ORDER},
	{"rx_roce_discards", PP_LOSS_DISCARD},
	{"tx_roce_discards", PP_LOSS_DISCARD},
	{"rx_roce_errors", PP_LOSS_DISCARD},
	{"tx_roce_errors", PP_LOSS_DISCARD},
	/* irdma */
	{"tcpRetransSegs", PP_LOSS_RETRANSMIT},
	{"ip4InDiscards", PP_LOSS_DISCARD},
	{"ip6InDiscards", PP_LOSS_DISCARD},
	{"ip4OutNoRoutes", PP_LOSS_DISCARD},
	{"ip6OutNoRoutes", PP_LOSS_DISCARD},
	/* efa */
	{"retrans_pkts", PP_LOSS_RETRANSMIT},
	{"retrans_timeout_events", PP_LOSS_RETRANSMIT},
	{"rx_drops", PP_LOSS_DISCARD},
};

enum pp_loss pp_counter_loss(const char *name)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(counters); i++)
		if (!strcmp(counters[i].name, name))
			return counters[i].loss;
	return PP_LOSSES;
}

const char *pp_loss_name(enum pp_loss l)
{
	static const char *const names[PP_LOSSES] = {"retransmit", "out-of-sequence", "discard"};

	return names[l];
}
