/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_fault: an ill wire by seed, between the link and its sockets. The same seed and the
 * same packets give the same faults, and the same log of them.
 */
#ifndef SOFT_LINK_FAULT_H
#define SOFT_LINK_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "soft/fault/set.h"

enum { SOFT_FAULT_LOG = 256, SOFT_FAULT_DEAD_MAX = 16 };

struct soft_fault_plan {
	uint64_t seed;
	/* Parts in a million of packets. */
	uint32_t loss_ppm, duplicate_ppm, reorder_ppm, corrupt_ppm;
};

/* What befell a packet; numbers are those of enum soft_fault_noun. */
struct soft_fault_entry {
	uint64_t packet; /* the how manieth that left, from 1 */
	uint32_t psn;
	uint8_t opcode;
	uint8_t noun;
};

struct soft_fault {
	uint64_t seed, random; /* random: state */
	bool active;	       /* any of what follows; the one thing that a sound wire looks at */
	struct soft_fault_set set; /* fates of packets, partitions, bandwidth */
	bool port_down;
	struct soft_gid dead[SOFT_FAULT_DEAD_MAX]; /* addresses of ours that were taken away */
	unsigned int num_dead;
	uint64_t port_downs; /* how often the port went down */
	uint64_t packets, lost, duplicated, reordered, corrupted, marked, delayed, cut, spoiled;
	uint64_t logged, hash; /* entries so far, and a sum of all of them (FNV-1a) */
	struct soft_fault_entry log[SOFT_FAULT_LOG]; /* a ring */
};

/* A packet that is about to leave. */
struct soft_fault_packet {
	const struct soft_gid *src, *dst;
	uint32_t psn;
	uint8_t opcode, syndrome;
	bool has_payload;
};

struct soft_fault_fate {
	bool lost; /* then it has no other fate */
	bool duplicated, corrupted, marked;
	bool spoiled;	      /* the payload, before its checksum is made */
	bool reordered;	      /* held back until @behind later packets have gone */
	uint8_t behind;	      /* 1..3 */
	uint32_t corrupt_bit; /* modulo the packet's bits; spoiled: of its payload */
	pp_ns delay;
};

void soft_fault_init(struct soft_fault *fault, const struct soft_fault_plan *plan);
/*
 * Sets a fault of a wire (nouns before SOFT_FAULT_WIRE_END that are no calls), or takes it away. A
 * new seed begins the random numbers and the log anew. -ENOSPC.
 */
int soft_fault_apply(struct soft_fault *fault, const struct soft_fault_spec *spec,
		     struct pp_error *err);
/* Takes away all; counts stay. */
void soft_fault_clear(struct soft_fault *fault);
void soft_fault_set_port(struct soft_fault *fault, bool down);
/* Packets from and to this address of ours are lost, or no longer. */
void soft_fault_set_dead(struct soft_fault *fault, const struct soft_gid *gid, bool dead);

static inline bool soft_fault_active(const struct soft_fault *fault)
{
	return fault->active;
}

/* Draws the fate of the next packet, counts it and writes it down. */
struct soft_fault_fate soft_fault_draw(struct soft_fault *fault,
				       const struct soft_fault_packet *packet);
/* Does a packet from @src to @dst, which came in, not arrive? Counted if so. */
bool soft_fault_refuses(struct soft_fault *fault, const struct soft_gid *src,
			const struct soft_gid *dst);
/* Bits a second, 0: no limit. */
uint64_t soft_fault_bandwidth(struct soft_fault *fault);
/* The wire's queue was full: lost for that. */
void soft_fault_dropped(struct soft_fault *fault, const struct soft_fault_packet *packet);

#endif
