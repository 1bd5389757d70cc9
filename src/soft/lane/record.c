/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/lane/record.h"

#include <errno.h>
#include <string.h>

#include "soft/copy/shelf.h"
#include "soft/copy/source.h"

#include "base/banned.h"

_Static_assert(sizeof(struct soft_record) % 8 == 0, "what follows is aligned");

size_t soft_record_bytes(uint32_t payload, unsigned int num_pieces)
{
	size_t bytes = sizeof(struct soft_record) + payload +
		       num_pieces * sizeof(struct soft_record_piece);

	return (bytes + SOFT_RING_UNIT - 1) & ~(size_t)(SOFT_RING_UNIT - 1);
}

static struct soft_record head(const struct soft_record_route *route, const struct soft_packet *p)
{
	struct soft_record r = {
		.kind = SOFT_RECORD_PACKET,
		.traffic_class = route->traffic_class,
		.payload_bytes = p->payload_bytes,
		.packets = p->packets ? p->packets : 1,
		.src = route->src,
		.dst = route->dst,
	};

	r.header_bytes = (uint8_t)soft_packet_encode(p, r.header);
	return r;
}

void soft_record_write(uint8_t *at, const struct soft_record_route *route,
		       const struct soft_packet *p, const struct iovec *pieces,
		       unsigned int num_pieces)
{
	struct soft_record r = head(route, p);

	r.bytes = (uint32_t)soft_record_bytes(p->payload_bytes, 0);
	memcpy(at, &r, sizeof(r));
	at += sizeof(r);
	for (unsigned int i = 0; i < num_pieces; i++) {
		memcpy(at, pieces[i].iov_base, pieces[i].iov_len);
		at += pieces[i].iov_len;
	}
}

void soft_record_refer(uint8_t *at, const struct soft_record_route *route,
		       const struct soft_packet *p, const struct iovec *pieces,
		       unsigned int num_pieces, const struct soft_shelf *shelf,
		       const void *token_at, uint64_t token)
{
	struct soft_record r = head(route, p);

	r.bytes = (uint32_t)soft_record_bytes(0, num_pieces);
	r.num_pieces = (uint8_t)num_pieces;
	r.token_at = (uintptr_t)token_at;
	r.token = token;
	memcpy(at, &r, sizeof(r));
	at += sizeof(r);
	for (unsigned int i = 0; i < num_pieces; i++) {
		const void *from = pieces[i].iov_base;
		size_t len = pieces[i].iov_len;
		struct soft_record_piece piece = {
			.addr = (uintptr_t)from,
			.len = (uint32_t)len,
			.generation = shelf ? soft_shelf_generation(shelf, from, len) : 0,
		};

		memcpy(at + i * sizeof(piece), &piece, sizeof(piece));
	}
}

void soft_record_lend(uint8_t *at, const struct soft_record_route *route,
		      const struct soft_packet *p)
{
	struct soft_record r = head(route, p);
	struct soft_record_piece piece = {
		.addr = p->direct->offset,
		.len = p->payload_bytes,
		.generation = p->direct->generation,
		.export = p->direct->export,
		.unit = p->direct->unit,
	};

	r.bytes = (uint32_t)soft_record_bytes(0, 1);
	r.num_pieces = 1;
	memcpy(at, &r, sizeof(r));
	memcpy(at + sizeof(r), &piece, sizeof(piece));
}

void soft_record_skip(uint8_t *at, size_t bytes)
{
	struct soft_record r = {.bytes = (uint32_t)bytes, .kind = SOFT_RECORD_SKIP};

	memcpy(at, &r, offsetof(struct soft_record, payload_bytes));
}

/* Copies the pieces; they must be exactly the payload. */
static bool read_pieces(const uint8_t *at, struct soft_record_read *ret)
{
	uint64_t sum = 0, end;

	memcpy(ret->pieces, at, ret->record.num_pieces * sizeof(ret->pieces[0]));
	for (unsigned int i = 0; i < ret->record.num_pieces; i++) {
		const struct soft_record_piece *piece = &ret->pieces[i];

		if (piece->export && ret->record.num_pieces != 1)
			return false;
		if (piece->len == 0 || __builtin_add_overflow(sum, piece->len, &sum) ||
		    __builtin_add_overflow(piece->addr, piece->len, &end))
			return false;
	}
	return sum == ret->record.payload_bytes;
}

/* Does what the copied head says of sizes hold together? */
static bool sound(const struct soft_record *r, size_t there)
{
	size_t payload = r->num_pieces ? 0 : r->payload_bytes;

	return r->kind == SOFT_RECORD_PACKET && r->payload_bytes <= SOFT_RECORD_PAYLOAD_MAX &&
	       r->num_pieces <= SOFT_RECORD_PIECES_MAX && r->packets >= 1 &&
	       r->packets <= SOFT_RECORD_PACKETS_MAX && r->header_bytes <= sizeof(r->header) &&
	       r->bytes <= there && r->bytes == soft_record_bytes((uint32_t)payload, r->num_pieces);
}

int64_t soft_record_read(const uint8_t *at, size_t there, struct soft_record_read *ret)
{
	struct soft_record *r = &ret->record;

	if (there < SOFT_RING_UNIT)
		return -EPROTO;
	/* A skip may be all that is left. */
	memcpy(r, at, SOFT_RING_UNIT);
	if (r->kind == SOFT_RECORD_SKIP) {
		if (!r->bytes || r->bytes % SOFT_RING_UNIT || r->bytes > there)
			return -EPROTO;
		return r->bytes;
	}
	if (there < sizeof(*r))
		return -EPROTO;
	memcpy(r, at, sizeof(*r));
	if (!sound(r, there) || soft_packet_decode_headers(r->header, r->header_bytes,
							   r->payload_bytes, &ret->packet) < 0)
		return -EPROTO;
	if (r->packets > 1 && !(soft_opcode_find(ret->packet.opcode)->flags & SOFT_HAS_PAYLOAD))
		return -EPROTO;
	ret->packet.packets = r->packets;
	if (r->num_pieces && !read_pieces(at + sizeof(*r), ret))
		return -EPROTO;
	if (r->payload_bytes && !r->num_pieces)
		ret->packet.payload = at + sizeof(*r);
	return r->bytes;
}
