/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of BTH and the extended headers, in the order in which they stand on the wire. Offsets
 * within each header are those of the specification, volume 1, chapter 9.
 *
 * Invariant: nothing is read before the length was compared with what the opcode carries, so that
 * the readers below need no bounds of their own.
 */
#include "soft/wire/packet.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static uint64_t get64(const uint8_t *p)
{
	return (uint64_t)get32(p) << 32 | get32(p + 4);
}

static void put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* The byte before the three stays: it is another field or reserved. */
static void put24(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 16);
	put16(p + 1, (uint16_t)v);
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, (uint16_t)(v >> 16));
	put16(p + 2, (uint16_t)v);
}

static void put64(uint8_t *p, uint64_t v)
{
	put32(p, (uint32_t)(v >> 32));
	put32(p + 4, (uint32_t)v);
}

enum {
	BTH_SOLICITED = 0x80,
	BTH_MIGRATED = 0x40,
	BTH_PAD_SHIFT = 4,
	BTH_VERSION = 0x0f,
	BTH_FECN = 0x80,
	BTH_BECN = 0x40,
	BTH_ACK_REQUEST = 0x80,
};

static void get_bth(const uint8_t *b, struct soft_packet *p)
{
	p->opcode = b[0];
	p->solicited = b[1] & BTH_SOLICITED;
	p->migrated = b[1] & BTH_MIGRATED;
	p->pad = b[1] >> BTH_PAD_SHIFT & 3;
	p->pkey = get16(b + 2);
	p->fecn = b[4] & BTH_FECN;
	p->becn = b[4] & BTH_BECN;
	p->dest_qp = get24(b + 5);
	p->ack_request = b[8] & BTH_ACK_REQUEST;
	p->psn = get24(b + 9);
}

static void get_extended(const uint8_t *b, unsigned int flags, struct soft_packet *p)
{
	if (flags & SOFT_HAS_DETH) {
		p->qkey = get32(b);
		p->src_qp = get24(b + 5);
		b += 8;
	}
	if (flags & SOFT_HAS_RETH) {
		p->va = get64(b);
		p->rkey = get32(b + 8);
		p->length = get32(b + 12);
		b += 16;
	}
	if (flags & SOFT_HAS_ATOMIC) {
		p->va = get64(b);
		p->rkey = get32(b + 8);
		p->swap_add = get64(b + 12);
		p->compare = get64(b + 20);
		b += 28;
	}
	if (flags & SOFT_HAS_AETH) {
		p->syndrome = b[0];
		p->msn = get24(b + 1);
		b += 4;
	}
	if (flags & SOFT_HAS_ATOMIC_ACK) {
		p->original = get64(b);
		b += 8;
	}
	if (flags & SOFT_HAS_IMM) {
		memcpy(&p->imm_be, b, 4);
		b += 4;
	}
	if (flags & SOFT_HAS_IETH)
		p->invalidate_rkey = get32(b);
}

/*
 * Padding completes a message to four bytes, so only its last packet may have any: FIRST and
 * MIDDLE carry exactly a path MTU, a multiple of four. Whether that length fits the QP's MTU is
 * the state machine's question: it has to answer with a NAK, not by silence.
 */
static bool payload_possible(const struct soft_opcode *op, size_t padded, unsigned int pad)
{
	if (padded % 4 || padded < pad || padded - pad > SOFT_MTU_MAX)
		return false;
	if (!(op->flags & SOFT_HAS_PAYLOAD))
		return padded == 0;
	return (op->flags & SOFT_IS_LAST) || pad == 0;
}

int soft_packet_decode(const uint8_t *bytes, size_t len, struct soft_packet *ret)
{
	const struct soft_opcode *op;
	struct soft_packet p = {0};
	size_t padded;

	if (len < SOFT_BTH_BYTES + SOFT_ICRC_BYTES)
		return -EPROTO;
	op = soft_opcode_find(bytes[0]);
	if (!op->name || (bytes[1] & BTH_VERSION) != 0)
		return -EPROTO;
	if (len < (size_t)op->header_bytes + SOFT_ICRC_BYTES)
		return -EPROTO;
	get_bth(bytes, &p);
	padded = len - op->header_bytes - SOFT_ICRC_BYTES;
	if (!payload_possible(op, padded, p.pad))
		return -EPROTO;
	get_extended(bytes + SOFT_BTH_BYTES, op->flags, &p);
	p.payload_bytes = (uint32_t)(padded - p.pad);
	p.payload = p.payload_bytes ? bytes + op->header_bytes : NULL;
	*ret = p;
	return 0;
}

int soft_packet_decode_headers(const uint8_t *bytes, size_t len, uint32_t payload_bytes,
			       struct soft_packet *ret)
{
	const struct soft_opcode *op;
	struct soft_packet p = {0};

	if (len < SOFT_BTH_BYTES)
		return -EPROTO;
	op = soft_opcode_find(bytes[0]);
	if (!op->name || (bytes[1] & BTH_VERSION) != 0 || len != op->header_bytes ||
	    (payload_bytes && !(op->flags & SOFT_HAS_PAYLOAD)))
		return -EPROTO;
	get_bth(bytes, &p);
	get_extended(bytes + SOFT_BTH_BYTES, op->flags, &p);
	p.payload_bytes = payload_bytes;
	*ret = p;
	return 0;
}

static void put_bth(const struct soft_packet *p, uint8_t *b)
{
	b[0] = p->opcode;
	b[1] = (uint8_t)((p->solicited ? BTH_SOLICITED : 0) | (p->migrated ? BTH_MIGRATED : 0) |
			 soft_packet_pad(p->payload_bytes) << BTH_PAD_SHIFT);
	put16(b + 2, p->pkey);
	b[4] = (uint8_t)((p->fecn ? BTH_FECN : 0) | (p->becn ? BTH_BECN : 0));
	put24(b + 5, p->dest_qp);
	b[8] = p->ack_request ? BTH_ACK_REQUEST : 0;
	put24(b + 9, p->psn);
}

static void put_extended(const struct soft_packet *p, unsigned int flags, uint8_t *b)
{
	if (flags & SOFT_HAS_DETH) {
		put32(b, p->qkey);
		put24(b + 5, p->src_qp);
		b += 8;
	}
	if (flags & SOFT_HAS_RETH) {
		put64(b, p->va);
		put32(b + 8, p->rkey);
		put32(b + 12, p->length);
		b += 16;
	}
	if (flags & SOFT_HAS_ATOMIC) {
		put64(b, p->va);
		put32(b + 8, p->rkey);
		put64(b + 12, p->swap_add);
		put64(b + 20, p->compare);
		b += 28;
	}
	if (flags & SOFT_HAS_AETH) {
		b[0] = p->syndrome;
		put24(b + 1, p->msn);
		b += 4;
	}
	if (flags & SOFT_HAS_ATOMIC_ACK) {
		put64(b, p->original);
		b += 8;
	}
	if (flags & SOFT_HAS_IMM) {
		memcpy(b, &p->imm_be, 4);
		b += 4;
	}
	if (flags & SOFT_HAS_IETH)
		put32(b, p->invalidate_rkey);
}

size_t soft_packet_encode(const struct soft_packet *p, uint8_t out[SOFT_HEADER_MAX])
{
	const struct soft_opcode *op = soft_opcode_find(p->opcode);

	memset(out, 0, op->header_bytes); /* reserved bits and bytes are sent as zero */
	if (!op->name)
		return 0;
	put_bth(p, out);
	put_extended(p, op->flags, out + SOFT_BTH_BYTES);
	return op->header_bytes;
}
