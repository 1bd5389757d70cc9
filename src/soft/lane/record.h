/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies in a lane's ring: one packet a record, BTH and extended headers as on the wire, without
 * ICRC; behind them its payload, or pieces of the sender's memory that the payload is to be fetched
 * from, or the place of it in the memory of a GPU. A record may stand for several packets in a row
 * of one message: then its payload is longer than the path MTU.
 *
 *   | struct soft_record | payload | pad |      | struct soft_record | pieces | pad |
 *
 * Pure. Whoever wrote a record is not believed: everything but the payload's bytes is copied before
 * it is looked at, since it may change at any time.
 */
#ifndef SOFT_LANE_RECORD_H
#define SOFT_LANE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "soft/lane/ring.h"
#include "soft/wire/gid.h"
#include "soft/wire/packet.h"

enum {
	SOFT_RECORD_PAYLOAD_MAX = 1024 << 10,
	SOFT_RECORD_PIECES_MAX = 33, /* of a work request, and one for what it does not fill */
	SOFT_RECORD_PACKETS_MAX = SOFT_RECORD_PAYLOAD_MAX / 256,
};

struct soft_shelf;

enum soft_record_kind { SOFT_RECORD_SKIP, SOFT_RECORD_PACKET };

struct soft_record {
	uint32_t bytes; /* with all that follows: a multiple of SOFT_RING_UNIT */
	uint8_t kind;	/* of a skip nothing else counts */
	uint8_t traffic_class;
	uint8_t header_bytes;
	uint8_t num_pieces; /* 0: the payload follows */
	uint32_t payload_bytes;
	uint32_t packets; /* that it stands for */
	/* Of pieces: while the word at this address of the sender has this value, they are what was
	 * sent. */
	uint64_t token_at, token;
	struct soft_gid src, dst;
	uint8_t header[SOFT_HEADER_MAX];
	uint8_t reserved[4];
};

struct soft_record_piece {
	uint64_t addr;
	uint32_t len;
	uint32_t generation; /* of bytes on the sender's shelf (copy/shelf.h); 0: they are not */
	/* Not 0: of bytes in an allocation of that number (copy/export.h): addr is the place there,
	 * and that unit has the generation. Such a piece is the only one. */
	uint32_t export, unit;
};

/* A record as it was read. */
struct soft_record_read {
	struct soft_record record;
	struct soft_packet packet; /* payload: in the ring, or NULL when it lies in pieces */
	struct soft_record_piece pieces[SOFT_RECORD_PIECES_MAX];
};

/* Room that a record with @payload bytes, or with @num_pieces pieces, takes. */
size_t soft_record_bytes(uint32_t payload, unsigned int num_pieces);

struct soft_record_route {
	struct soft_gid src, dst;
	uint8_t traffic_class;
};

/* Writes @p with its payload, which is copied from @pieces. @at has the room. */
void soft_record_write(uint8_t *at, const struct soft_record_route *route,
		       const struct soft_packet *p, const struct iovec *pieces,
		       unsigned int num_pieces);
/* The same, the payload to be fetched from @pieces while the word at @token_at is @token; or, those
 * on @shelf (NULL: none), taken from there. */
void soft_record_refer(uint8_t *at, const struct soft_record_route *route,
		       const struct soft_packet *p, const struct iovec *pieces,
		       unsigned int num_pieces, const struct soft_shelf *shelf,
		       const void *token_at, uint64_t token);
/* The same, the payload to be copied by the reader's GPU from where p->direct says. */
void soft_record_lend(uint8_t *at, const struct soft_record_route *route,
		      const struct soft_packet *p);
void soft_record_skip(uint8_t *at, size_t bytes);

/* Reads the record at @at, of which @there bytes can be read. Returns its length, or -EPROTO. */
int64_t soft_record_read(const uint8_t *at, size_t there, struct soft_record_read *ret);

#endif
