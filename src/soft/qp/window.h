/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_window: how many bytes may be under way to one remote address, shared by all QPs that
 * send there: UDP has no flow control, and a receiver's socket buffer is all there is. Grows by
 * what is acknowledged, halves on loss (at most once a round trip).
 */
#ifndef SOFT_QP_WINDOW_H
#define SOFT_QP_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct soft_window {
	uint64_t in_flight; /* bytes sent and not acknowledged, of all QPs */
	uint64_t limit, limit_max, limit_min;
	uint64_t
		fast_until; /* below: grows by what is acknowledged; above: one step a round trip */
	pp_ns last_cut;
	pp_ns srtt, rttvar; /* of the address, smoothed; 0: not measured */
	pp_ns rto_min;	    /* SOFT_RTO_MIN, or more where hardly anything is ever lost */
	pp_ns paid_until;   /* what nobody acknowledges: when the last of it is taken to be read */
};

/* @limit_max below the smallest window that makes sense is raised to it. */
void soft_window_init(struct soft_window *w, uint64_t limit_max);
/* May @bytes more be sent? One packet may always, when nothing is under way. */
bool soft_window_open(const struct soft_window *w, uint64_t bytes);
/* Bytes that fit into it. */
static inline uint64_t soft_window_room(const struct soft_window *w)
{
	return w->in_flight < w->limit ? w->limit - w->in_flight : 0;
}
void soft_window_sent(struct soft_window *w, uint64_t bytes);
void soft_window_acked(struct soft_window *w, uint64_t bytes, pp_ns rtt); /* rtt 0: unknown */
/* Bytes no longer counted as under way (lost, to be sent again; QP gone). */
void soft_window_dropped(struct soft_window *w, uint64_t bytes);
void soft_window_lost(struct soft_window *w, pp_ns now); /* cuts */
/*
 * What nobody acknowledges (UC) is paced instead: half of limit_max at once, and limit_max a
 * millisecond. Returns 0: send now; else when. A fixed rule, which a receiver that does not get the
 * processor for milliseconds outlives no better than a slow one.
 */
pp_ns soft_window_pace(const struct soft_window *w, pp_ns now);
void soft_window_paced(struct soft_window *w, uint64_t bytes, pp_ns now);
/* Time after which silence means loss: adaptive, within the bounds of the file. */
/* Between SOFT_RTO_MIN and SOFT_RTO_MAX; SOFT_RTO_FIRST before any measurement. */
#define SOFT_RTO_MIN   (4 * PP_MILLISECOND)
#define SOFT_RTO_FIRST (20 * PP_MILLISECOND)
#define SOFT_RTO_MAX   (200 * PP_MILLISECOND)
pp_ns soft_window_rto(const struct soft_window *w);

#endif
