/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_arrival: what one read of a socket brought, a datagram or a GRO train, before any
 * queue pair has seen it. Who reads fills it (soft_link_read()); who has the engine's lock takes it
 * (soft_link_take()). In between its packets' checksums may be looked at by a third, who needs
 * neither the lock nor the link.
 */
#ifndef SOFT_LINK_ARRIVAL_H
#define SOFT_LINK_ARRIVAL_H

#include "soft/link/link.h"

enum {
	SOFT_ARRIVAL_BYTES = 65536,	/* more than any UDP payload */
	SOFT_ARRIVAL_CHECKED_MAX = 128, /* the kernel's limit for a train; what lies behind it
					 * is checked by who takes it */
};

struct soft_arrival {
	unsigned int receiver; /* of its link */
	size_t len, segment;   /* all packets but the last have @segment bytes */
	bool truncated;
	struct soft_gid src, dst;
	uint16_t sport;
	uint8_t traffic_class, hop_limit;
	unsigned int num_checked; /* packets from the first on */
	struct soft_icrc_verdict checked[SOFT_ARRIVAL_CHECKED_MAX];
	uint8_t bytes[SOFT_ARRIVAL_BYTES];
};

/*
 * Reads one datagram or train, without blocking, from whichever socket has one. false: nothing is
 * there. One thread at a time, and none in soft_link_receive(); needs no lock of the engine's.
 */
bool soft_link_read(struct soft_link *link, struct soft_arrival *ret);
/* Looks at the checksums of a train for the process of @slot. @flow: the last one's, kept by the
 * caller, zero-filled at first. */
void soft_arrival_check(struct soft_arrival *a, unsigned int slot, struct soft_icrc_flow *flow);
/* Counts it, cuts it, and calls @handler for each datagram that is for us; returns how many. */
unsigned int soft_link_take(struct soft_link *link, const struct soft_arrival *a,
			    soft_datagram_handler *handler, void *arg);
/* What soft_link_receive() does besides: for the turns in which somebody else reads. */
void soft_link_advance(struct soft_link *link);

#endif
