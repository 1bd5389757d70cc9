/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/engine/counter.h"

#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

/* Which struct a value lies in. */
enum source { NEVER, QUEUE_PAIRS, LINK, DROPS, FAULT };

struct row {
	struct soft_counter counter;
	enum source source;
	unsigned int unit; /* bytes a count stands for; 1 for counts */
	size_t offset;
};

#define HW(name, from, type, field)                                             \
	{                                                                       \
		{name, SOFT_HW_COUNTERS}, from, 1, offsetof(struct type, field) \
	}
#define PORT(name, from, unit, type, field)                                          \
	{                                                                            \
		{name, SOFT_PORT_COUNTERS}, from, unit, offsetof(struct type, field) \
	}
/* Of a link that has no symbols, lanes or virtual lanes. */
#define ZERO(name)                                      \
	{                                               \
		{name, SOFT_PORT_COUNTERS}, NEVER, 1, 0 \
	}

enum { WORD = 4 }; /* port_*_data count words (IBA 16.1.3.5) */

static const struct row rows[] = {
	HW("duplicate_request", QUEUE_PAIRS, soft_counters, duplicate_request),
	HW("implied_nak_seq_err", QUEUE_PAIRS, soft_counters, implied_nak_seq_err),
	HW("local_ack_timeout_err", QUEUE_PAIRS, soft_counters, local_ack_timeout_err),
	HW("np_cnp_sent", QUEUE_PAIRS, soft_counters, np_cnp_sent),
	HW("np_ecn_marked_roce_packets", QUEUE_PAIRS, soft_counters, np_ecn_marked_roce_packets),
	HW("out_of_buffer", QUEUE_PAIRS, soft_counters, out_of_buffer),
	HW("out_of_sequence", QUEUE_PAIRS, soft_counters, out_of_sequence),
	HW("packet_seq_err", QUEUE_PAIRS, soft_counters, packet_seq_err),
	HW("peerpath_received_data_bytes", QUEUE_PAIRS, soft_counters, received_data_bytes),
	HW("peerpath_sent_data_bytes", QUEUE_PAIRS, soft_counters, sent_data_bytes),
	HW("req_cqe_error", QUEUE_PAIRS, soft_counters, req_cqe_error),
	HW("req_remote_access_errors", QUEUE_PAIRS, soft_counters, req_remote_access_errors),
	HW("resp_remote_access_errors", QUEUE_PAIRS, soft_counters, resp_remote_access_errors),
	HW("rnr_nak_retry_err", QUEUE_PAIRS, soft_counters, rnr_nak_retry_err),
	HW("roce_adp_retrans", QUEUE_PAIRS, soft_counters, early_retransmits),
	HW("rp_cnp_handled", QUEUE_PAIRS, soft_counters, rp_cnp_handled),
	HW("rx_atomic_requests", QUEUE_PAIRS, soft_counters, rx_atomic_requests),
	HW("rx_icrc_encapsulated", DROPS, soft_drops, icrc),
	HW("rx_read_requests", QUEUE_PAIRS, soft_counters, rx_read_requests),
	HW("rx_write_requests", QUEUE_PAIRS, soft_counters, rx_write_requests),
	PORT("link_downed", FAULT, 1, soft_fault, port_downs),
	PORT("port_rcv_data", LINK, WORD, soft_link_stats, received_bytes),
	PORT("port_rcv_errors", DROPS, 1, soft_drops, malformed),
	PORT("port_rcv_packets", LINK, 1, soft_link_stats, received_packets),
	PORT("port_xmit_data", LINK, WORD, soft_link_stats, sent_bytes),
	PORT("port_xmit_discards", LINK, 1, soft_link_stats, send_errors),
	PORT("port_xmit_packets", LINK, 1, soft_link_stats, sent_packets),
	PORT("unicast_rcv_packets", LINK, 1, soft_link_stats, received_packets),
	PORT("unicast_xmit_packets", LINK, 1, soft_link_stats, sent_packets),
	ZERO("VL15_dropped"),
	ZERO("excessive_buffer_overrun_errors"),
	ZERO("link_error_recovery"),
	ZERO("local_link_integrity_errors"),
	ZERO("multicast_rcv_packets"),
	ZERO("multicast_xmit_packets"),
	ZERO("port_rcv_constraint_errors"),
	ZERO("port_rcv_remote_physical_errors"),
	ZERO("port_rcv_switch_relay_errors"),
	ZERO("port_xmit_constraint_errors"),
	ZERO("port_xmit_wait"),
	ZERO("symbol_error"),
};

_Static_assert(PP_ARRAY_LEN(rows) <= SOFT_COUNTERS_MAX, "values of all have room");

const char *const soft_counter_dirs[] = {"hw_counters", "counters"};

size_t soft_counter_count(void)
{
	return PP_ARRAY_LEN(rows);
}

const struct soft_counter *soft_counter_at(size_t index)
{
	return &rows[index].counter;
}

void soft_counter_read(const struct soft_wire *wire, uint64_t ret[SOFT_COUNTERS_MAX])
{
	const void *const from[] = {NULL, soft_wire_counters(wire), soft_wire_stats(wire),
				    soft_wire_drops(wire), soft_wire_fault(wire)};

	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];

		ret[i] = 0;
		if (r->source == NEVER)
			continue;
		memcpy(&ret[i], (const char *)from[r->source] + r->offset, sizeof(ret[i]));
		ret[i] /= r->unit;
	}
}
