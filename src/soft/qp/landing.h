/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_landing: what has arrived for a queue pair and has no effect yet, because bytes for a
 * region that is far (copy/mover.h) take their time: a queue of effects in the order in which they
 * must show. As long as it is empty and nothing far is met, nobody needs it.
 *
 *   store ──► [bytes gather in staging │ copy under way │ host bytes kept back │ end of a message]
 *                                                          the first is carried out when it can be
 *
 * A message that goes into a far region is one copy, begun when all of it is there, or several of
 * at least SOFT_COPY_PIECE. What follows, to host memory too, stands behind it: a flag that a
 * later WRITE sets is never seen before the bytes of an earlier one. Both halves of a queue pair
 * have one: the responder for requests, the requester for answers to its READs.
 *
 * Bytes that a sender of this host lends (copy/shelf.h, copy/import.h) need no staging here: they
 * are copied from where he has them, and no packet that brought them may be acknowledged before.
 */
#ifndef SOFT_QP_LANDING_H
#define SOFT_QP_LANDING_H

#include "soft/copy/mover.h"
#include "soft/copy/source.h"
#include "soft/qp/cq.h"

struct soft_qp;
struct soft_effect;

enum { SOFT_LANDING_KEPT = 16 << 20 }; /* host bytes kept back at most, of one queue pair */

/* The end of a message. */
struct soft_landed {
	uint32_t psn, msn; /* of its last packet; messages before it. Of the responder */
	bool completes;	   /* with: */
	struct soft_cqe cqe;
};

struct soft_landing_ops {
	/* Everything before it has had its effect. */
	void (*landed)(struct soft_qp *qp, const struct soft_landed *end);
	/* Bytes of that message, or (NULL) of one that has not ended yet, could not be moved;
	 * nothing behind will have an effect. */
	void (*broken)(struct soft_qp *qp, const struct soft_landed *end);
	/* Lent bytes have had their effect: their sender may hear of it. */
	void (*returned)(struct soft_qp *qp);
	/* Lent bytes were taken back while they were copied: he has given up what he was sending.
	 * Nothing behind will have an effect, and nobody is to blame. */
	void (*stale)(struct soft_qp *qp);
};

struct soft_landing {
	struct soft_qp *qp;
	const struct soft_landing_ops *ops;
	struct soft_effect *first, *last;
	struct soft_effect *first_end; /* of messages; NULL: none waits */
	uint64_t added, passed;	       /* effects, running counts */
	size_t kept;
	unsigned int lent; /* effects whose bytes are */
	bool failed;
	bool starved; /* something was refused with SOFT_BYTES_LATER since */
	struct soft_staging_waiter waiter;
	/* In the mover's list while the last effect gathers bytes. */
	bool gathers;
	struct soft_landing *open_next;
};

void soft_landing_init(struct soft_landing *landing, struct soft_qp *qp,
		       const struct soft_landing_ops *ops);
/* Forgets all of it; copies that are under way end alone. @flush: each end that waits is
 * given to it first, in order; NULL: they are lost. */
void soft_landing_clear(struct soft_landing *landing,
			void (*flush)(struct soft_qp *qp, const struct soft_landed *end));

static inline bool soft_landing_busy(const struct soft_landing *landing)
{
	return __builtin_expect(landing->first != NULL, 0);
}

/* Has everything had its effect that was there when landing->added was @count? */
static inline bool soft_landing_passed(const struct soft_landing *landing, uint64_t count)
{
	return landing->passed >= count;
}

/* Has a message ended without its effect? The end; else NULL. */
const struct soft_landed *soft_landing_end_of_first(const struct soft_landing *landing);

/* That message is over: nothing of it waits any more. */
void soft_landing_drop(struct soft_landing *landing);

/* Of the first packet whose bytes are lent, if there is one, and messages before it. */
bool soft_landing_first_lent(const struct soft_landing *landing, uint32_t *ret_psn,
			     uint32_t *ret_msn);

/* Was something refused for want of room, and there is room again? Says so once. */
bool soft_landing_hungry(struct soft_landing *landing);

/* See soft_landing_store(). */
int soft_landing_store_far(struct soft_landing *landing, struct soft_bytes from,
			   struct soft_region *region, uint64_t va, uint32_t len, uint64_t expect);

/*
 * @len bytes to @va of a checked region, at once or in their turn. @expect: bytes of the message
 * that may follow there without a gap, these included. 0, SOFT_BYTES_LOST, SOFT_BYTES_LATER (some
 * may have been taken; the same again, later, is right), or -errno.
 */
static inline int soft_landing_store(struct soft_landing *landing, struct soft_bytes from,
				     struct soft_region *region, uint64_t va, uint32_t len,
				     uint64_t expect)
{
	if (soft_region_is_far(region) || soft_landing_busy(landing) ||
	    (from.source && from.source->far))
		return soft_landing_store_far(landing, from, region, va, len, expect);
	return soft_bytes_store(from, region, va, len);
}

/* No more bytes follow those that gather: their copy begins. */
void soft_landing_cut(struct soft_landing *landing);
/* The same for lent ones only: their sender waits. */
void soft_landing_return(struct soft_landing *landing);
/* A message ended, while soft_landing_busy(). -ENOMEM. */
int soft_landing_end(struct soft_landing *landing, const struct soft_landed *end);

#endif
