/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_outgoing: messages of a send queue whose bytes lie in a region that is far
 * (copy/mover.h), fetched into staging ahead of their turn: parcels, in the order of the queue.
 * From a parcel a message is sent, and sent again, as from host memory; it is let go when
 * acknowledged. Where the peer's GPU can copy from this one's memory a parcel holds no bytes, but
 * the promise to leave them: it is staged only when the link changes before it was acknowledged.
 */
#ifndef SOFT_QP_OUTGOING_H
#define SOFT_QP_OUTGOING_H

#include "soft/copy/mover.h"
#include "soft/qp/wr.h"

struct soft_qp;

enum {
	SOFT_OUTGOING_MAX = 8 << 20,
	SOFT_OUTGOING_LEAST = 4 << 20, /* bytes of one queue pair */
	SOFT_OUTGOING_LENT = 256,      /* parcels of one that are lent */
};

struct soft_outgoing {
	struct soft_qp *qp;
	struct soft_parcel *first, *last, *found; /* found: the one asked for last */
	uint32_t next_wr;			  /* running count: what is looked at next */
	uint32_t next_offset;			  /* and from where */
	size_t bytes;				  /* of staging */
	unsigned int lent;			  /* parcels without */
	struct soft_staging_waiter waiter;
};

void soft_outgoing_init(struct soft_outgoing *outgoing, struct soft_qp *qp);
/* Fetches what is posted and may be read now, as far as there is room. */
void soft_outgoing_ahead(struct soft_outgoing *outgoing);
/* Bytes of @wr from @offset on that are at hand; UINT32_MAX: all that are to be had, or none ever
 * will. */
uint32_t soft_outgoing_ready(struct soft_outgoing *outgoing, struct soft_send_wr *wr,
			     uint32_t offset);
/* Where byte @offset of @wr is; *ret_len: and so many behind it. NULL: not yet; -errno in *ret_len:
 * never. */
uint8_t *soft_outgoing_at(struct soft_outgoing *outgoing, const struct soft_send_wr *wr,
			  uint32_t offset, int64_t *ret_len);
/* Is byte @offset of @wr lent to the peer's GPU from where it is? Then where. */
bool soft_outgoing_direct(struct soft_outgoing *outgoing, const struct soft_send_wr *wr,
			  uint32_t offset, struct soft_direct *ret);
/* A packet from @offset of @wr on has been sent that may be read later. */
void soft_outgoing_sent(struct soft_outgoing *outgoing, const struct soft_send_wr *wr,
			uint32_t offset);
/* @region goes: what is lent of it is lent no more, and will not be sent. */
void soft_outgoing_revoke(struct soft_outgoing *outgoing, const struct soft_region *region);
/* What lies before @offset of @wr, the oldest, is not sent again. */
void soft_outgoing_release(struct soft_outgoing *outgoing, const struct soft_send_wr *wr,
			   uint32_t offset);
/* Nothing of it is. What was sent by reference must be taken back first. */
void soft_outgoing_clear(struct soft_outgoing *outgoing);

#endif
