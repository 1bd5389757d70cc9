/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_packet: one RoCE v2 packet above UDP, as fields in host order.
 *
 *   | BTH 12 | DETH RETH AtomicETH AETH AtomicAckETH ImmDt IETH as the opcode says | payload | pad
 * 0..3 | ICRC 4 |
 *
 * Pure: decoding reads bytes and checks shapes (lengths, pad, version), never state. Every byte
 * comes from a hostile network.
 */
#ifndef SOFT_WIRE_PACKET_H
#define SOFT_WIRE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soft/wire/opcode.h"

struct soft_source;

enum {
	SOFT_UDP_PORT = 4791,
	SOFT_BTH_BYTES = 12,
	SOFT_ICRC_BYTES = 4,
	SOFT_HEADER_MAX = 12 + 8 + 28 + 4, /* longest headers of an opcode, rounded up */
	SOFT_MTU_MAX = 4096,
};

/* AETH syndrome: kind in the top three bits, value in the low five. */
enum {
	SOFT_AETH_ACK = 0x1f, /* no credit limit */
	SOFT_AETH_RNR = 0x20, /* | timer */
	SOFT_AETH_NAK_SEQUENCE = 0x60,
	SOFT_AETH_NAK_INVALID = 0x61,
	SOFT_AETH_NAK_ACCESS = 0x62,
	SOFT_AETH_NAK_OPERATION = 0x63,
	SOFT_AETH_KIND = 0x60, /* mask */
};

struct soft_direct;
struct soft_source;

struct soft_packet {
	uint8_t opcode;
	uint8_t pad; /* bytes after the payload, not part of it */
	bool solicited, ack_request, fecn, becn;
	bool migrated; /* sent as 1: the state that verbs' queue pairs are in */
	uint16_t pkey;
	uint32_t dest_qp, psn;

	uint64_t va; /* RETH, AtomicETH */
	uint32_t rkey, length;
	uint64_t swap_add, compare; /* AtomicETH */
	uint64_t original;	    /* AtomicAckETH */
	uint8_t syndrome;	    /* AETH */
	uint32_t msn;
	uint32_t imm_be; /* ImmDt as the four bytes of the wire: opaque, never swapped */
	uint32_t invalidate_rkey;
	uint32_t qkey, src_qp; /* DETH */

	const uint8_t *payload; /* borrowed from the datagram; NULL when sent by pieces */
	uint32_t payload_bytes; /* without pad */

	/* Not of the wire: between processes of one host. */
	uint32_t packets; /* it stands for so many in a row of one message; 0 and 1: for itself */
	struct soft_source *source; /* that the payload is fetched from; then there is no payload */
	bool stays; /* to be sent: the pieces stay as they are until they are acknowledged */
	bool later; /* and the link may read them later: it is asked before they change */
	/* To be sent: the payload is no piece, but this (copy/source.h). NULL: it is. */
	const struct soft_direct *direct;
};

/* Packets that @p stands for. */
static inline uint32_t soft_packet_count(const struct soft_packet *p)
{
	return p->packets ? p->packets : 1;
}

/*
 * @bytes is a UDP payload. -EPROTO: too short, unknown opcode, transport version not 0, or a
 * length that the opcode cannot have. The ICRC is not looked at here.
 */
int soft_packet_decode(const uint8_t *bytes, size_t len, struct soft_packet *ret);

/*
 * The same for headers alone, whose payload of @payload_bytes lies elsewhere and may be longer than
 * a packet's.
 */
int soft_packet_decode_headers(const uint8_t *bytes, size_t len, uint32_t payload_bytes,
			       struct soft_packet *ret);

/*
 * Writes BTH and extended headers, with the pad count that p->payload_bytes asks for (p->pad is
 * ignored); returns their length, <= SOFT_HEADER_MAX. The opcode must be known.
 */
size_t soft_packet_encode(const struct soft_packet *p, uint8_t out[SOFT_HEADER_MAX]);

/* Pad bytes that follow a payload of @len bytes. */
static inline unsigned int soft_packet_pad(uint32_t len)
{
	return -len & 3;
}

#endif
