/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unreliable datagrams: one packet a message, done when it was handed to the wire. What comes and
 * does not fit, has the wrong queue key, or finds no receive request, is dropped and counted
 * (class D of volume 1, 9.9.3; Linux rdma_rxe does the same without a shared queue).
 *
 * A receive request gets 40 bytes first: a GRH, or of IPv4 twenty bytes of zero and the IP header
 * (annex A17.4.5.1). A socket does not show all of it: Identification, flow label and checksum are
 * made here so that the header is a valid one.
 */
#include "soft/qp/parts.h"
#include "soft/wire/psn.h"

#include <string.h>

#include "base/banned.h"

enum {
	GRH_BYTES = 40,
	IPV4_BYTES = 20,
	UDP_BYTES = 8,
	PROTOCOL_UDP = 17,
};

/* Queue keys with this bit are privileged: the QP's own is sent instead (10.2.5). */
#define QKEY_CONTROLLED UINT32_C(0x80000000)

static unsigned int send_one(struct soft_qp *qp, struct soft_send_wr *wr, size_t *budget)
{
	bool imm = wr->opcode == SOFT_WR_SEND_IMM;
	uint32_t qkey = wr->ud.qkey & QKEY_CONTROLLED ? qp->attr.qkey : wr->ud.qkey;
	struct soft_packet p = {
		.opcode = SOFT_UD | (imm ? SOFT_SEND_ONLY_IMM : SOFT_SEND_ONLY),
		.solicited = wr->flags & SOFT_WR_SOLICITED,
		.migrated = true,
		.pkey = qp->attr.pkey,
		.dest_qp = wr->ud.remote_qpn,
		.psn = qp->req.next_psn,
		.imm_be = imm ? wr->imm_be : 0,
		.qkey = qkey,
		.src_qp = qp->num,
		.payload_bytes = wr->length,
	};
	size_t cost = wr->length + SOFT_HEADER_MAX;
	struct soft_pieces pieces;
	unsigned int status;

	*budget -= cost < *budget ? cost : *budget;
	if (wr->error)
		return wr->error;
	if (!imm && wr->opcode != SOFT_WR_SEND)
		return SOFT_WC_LOC_QP_OP_ERR;
	/* Longer ones the wire would not carry, and nobody would hear of it. */
	if (wr->length > qp->attr.mtu || wr->length > SOFT_MTU_MAX)
		return SOFT_WC_LOC_LEN_ERR;
	if (soft_qp_may_be_far(qp) && soft_outgoing_ready(&qp->req.outgoing, wr, 0) < wr->length)
		return SOFT_LOCAL_LATER;
	status = soft_local_gather(qp, wr, 0, wr->length, &pieces);
	if (status)
		return status;
	qp->ops->send(qp, &wr->ud.path, &p, pieces.at, pieces.num);
	qp->req.next_psn = soft_psn_add(qp->req.next_psn, 1);
	qp->counters->sent_data_bytes += wr->length;
	return SOFT_WC_SUCCESS;
}

bool soft_datagram_pump(struct soft_qp *qp, size_t *budget)
{
	struct soft_send_queue *q = &qp->req.sq;

	if (qp->state == SOFT_QP_SQE)
		soft_requester_flush(qp);
	if (soft_qp_may_be_far(qp))
		soft_outgoing_ahead(&qp->req.outgoing);
	while (qp->state == SOFT_QP_RTS && q->retired != q->posted) {
		struct soft_send_wr *wr = soft_send_queue_at(q, q->retired);
		unsigned int status;

		if (*budget == 0)
			return true;
		status = send_one(qp, wr, budget);
		if (status == SOFT_LOCAL_LATER)
			return false;
		if (soft_qp_may_be_far(qp))
			soft_outgoing_release(&qp->req.outgoing, wr, UINT32_MAX);
		q->started = q->retired + 1;
		soft_complete_send(qp, wr, status);
		q->retired++;
		if (status) {
			qp->state = SOFT_QP_SQE;
			soft_requester_flush(qp);
		}
	}
	return false;
}

static void put16(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

/* RFC 1071. */
static uint32_t ones_complement_sum(const uint8_t *bytes, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void put_ipv4(uint8_t *h, const struct soft_path *from, uint8_t tc, uint32_t udp_payload)
{
	h[0] = 0x45;
	h[1] = tc;
	put16(h + 2, IPV4_BYTES + UDP_BYTES + udp_payload);
	put16(h + 6, 0x4000); /* not to be fragmented */
	h[8] = from->hop_limit;
	h[9] = PROTOCOL_UDP;
	memcpy(h + 12, from->flow.src.raw + 12, 4);
	memcpy(h + 16, from->flow.dst.raw + 12, 4);
	put16(h + 10, ~ones_complement_sum(h, IPV4_BYTES));
}

static void put_ipv6(uint8_t *h, const struct soft_path *from, uint8_t tc, uint32_t udp_payload)
{
	h[0] = (uint8_t)(0x60 | tc >> 4);
	h[1] = (uint8_t)(tc << 4 | (from->flow_label >> 16 & 0xf));
	put16(h + 2, from->flow_label);
	put16(h + 4, UDP_BYTES + udp_payload);
	h[6] = PROTOCOL_UDP;
	h[7] = from->hop_limit;
	memcpy(h + 8, from->flow.src.raw, 16);
	memcpy(h + 24, from->flow.dst.raw, 16);
}

static void make_grh(uint8_t grh[GRH_BYTES], const struct soft_packet *p,
		     const struct soft_path *from, uint8_t tc)
{
	uint32_t udp_payload = soft_opcode_find(p->opcode)->header_bytes + p->payload_bytes +
			       soft_packet_pad(p->payload_bytes) + SOFT_ICRC_BYTES;

	memset(grh, 0, GRH_BYTES);
	if (soft_gid_is_ipv4(&from->flow.src))
		put_ipv4(grh + GRH_BYTES - IPV4_BYTES, from, tc, udp_payload);
	else
		put_ipv6(grh, from, tc, udp_payload);
}

/* Is there a receive request for it? */
static bool welcome(struct soft_qp *qp, const struct soft_packet *p)
{
	const struct soft_recv_wr *head;

	if (p->qkey != qp->attr.qkey) {
		qp->counters->qkey_violations++;
		return false;
	}
	head = soft_recv_queue_head(qp->resp.rq);
	if (!head) {
		qp->counters->out_of_buffer++;
		return false;
	}
	if (head->length < GRH_BYTES || head->length - GRH_BYTES < p->payload_bytes) {
		qp->counters->datagrams_too_long++;
		return false;
	}
	return true;
}

void soft_datagram_request(struct soft_qp *qp, const struct soft_packet *p,
			   const struct soft_path *from, uint8_t tc)
{
	struct soft_recv_wr *wr = qp->resp.wr;
	struct soft_cqe rest = {
		.opcode = SOFT_WC_RECV,
		.byte_len = GRH_BYTES + p->payload_bytes,
		.src_qp = p->src_qp,
		.flags = SOFT_WC_GRH,
		.sl = soft_gid_is_ipv4(&from->flow.dst) ? SOFT_PACKET_IPV4 : SOFT_PACKET_IPV6,
		.solicited = p->solicited,
	};
	uint8_t grh[GRH_BYTES];
	unsigned int status;

	if (p->opcode == (SOFT_UD | SOFT_SEND_ONLY_IMM)) {
		rest.flags |= SOFT_WC_WITH_IMM;
		rest.imm_be = p->imm_be;
	} else if (p->opcode != (SOFT_UD | SOFT_SEND_ONLY)) {
		return;
	}
	if (!welcome(qp, p) || !soft_recv_queue_take(qp->resp.rq, wr))
		return;
	make_grh(grh, p, from, tc);
	status = soft_local_scatter(qp, wr, 0, (struct soft_bytes){.at = grh}, GRH_BYTES);
	if (!status)
		status = soft_local_scatter(qp, wr, GRH_BYTES, soft_packet_bytes(p),
					    p->payload_bytes);
	if (status) {
		soft_complete_recv(qp, wr, status, NULL);
		soft_qp_to_error(qp);
		return;
	}
	qp->counters->rx_sends++;
	qp->counters->received_data_bytes += p->payload_bytes;
	if (soft_landing_busy(&qp->resp.landing)) {
		struct soft_landed end = {.completes = true, .cqe = rest};

		end.cqe.wr_id = wr->id;
		if (soft_landing_end(&qp->resp.landing, &end) == 0)
			return;
	}
	soft_complete_recv(qp, wr, SOFT_WC_SUCCESS, &rest);
}
