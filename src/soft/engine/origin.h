/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_origin: how senders number their IPv4 packets, learnt flow by flow.
 *
 * The identification cannot be seen, and is solved from the ICRC; but then 17 of its 32 bits check
 * nothing. A sender like ours counts from 0 within a train, a kernel's counts on, for all that it
 * sends to this host. Once a flow has shown which, an identification of another kind is taken for
 * what it is: a damaged packet. That leaves 26 bits that check, or 18 and less with time: a packet
 * that is whole must not be lost for what cannot be known.
 */
#ifndef SOFT_ENGINE_ORIGIN_H
#define SOFT_ENGINE_ORIGIN_H

#include "base/clock.h"
#include "soft/wire/icrc.h"

enum { SOFT_ORIGINS = 256 };

/* A kernel's counter is small once in 65536 packets: only a return to small numbers, again and
 * again, tells trains from it. */
enum soft_order { SOFT_UNSURE, SOFT_TRAINS, SOFT_COUNTER };

struct soft_origin {
	uint32_t tag; /* of the flow; 0: nothing is known */
	uint16_t last;
	bool df;
	uint8_t returns; /* while unsure */
	enum soft_order order;
	pp_ns seen;
};

/*
 * Does a packet of @flow with this identification fit what came before? A flow that is new, or long
 * silent, is taken as it comes; one that did not fit is new again.
 */
bool soft_origin_fits(struct soft_origin table[SOFT_ORIGINS], const struct soft_icrc_flow *flow,
		      const struct soft_icrc_id *id, pp_ns now);

#endif
