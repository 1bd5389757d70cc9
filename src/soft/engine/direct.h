/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of GPUs between processes of one host, without staging: allocations are shown to the peers
 * whose GPU is to copy from them, by the lane that leads there.
 *
 *   sender                                          receiver
 *   register: the allocation's descriptor
 *   first message from it ─── shows it, by the lane's connection ──► maps it, in its GPU's own
 *   (this one is staged)                                             context
 *                          ◄── holds it ──────────
 *   record: where, how much, loan ────── ring ──────► checks key, range, loan; one copy; event;
 *                                                     loan still good: completion, acknowledge
 *   acknowledged: the loan ends
 *   deregister the last region in it ── takes it back ──► lets go, when no copy reads there
 *
 * Only the process at the other end of a connected queue pair is shown anything, and only what a
 * message to it lies in; what it may write is checked there by its own keys, as ever.
 */
#ifndef SOFT_ENGINE_DIRECT_H
#define SOFT_ENGINE_DIRECT_H

#include "soft/copy/region.h"
#include "soft/lane/lane.h"

struct soft_engine;
struct soft_qp;

/* Not under the engine's lock. */
/* [at, at+len) of a GPU, mapped (@vmm) or allocated, is to be @region: finds or makes its export,
 * or says why there is none. */
void soft_direct_register(struct soft_engine *engine, struct soft_region *region, uint64_t at,
			  uint64_t len, bool vmm);
/* @region is removed, and no copy of it is under way: returns when no peer has the allocation any
 * more, if it was the last in it; or when none answers. */
void soft_direct_leave(struct soft_engine *engine, struct soft_region *region);

/* Under the engine's lock from here on. */
/* @region is removed: answers of it are lent no more. */
void soft_direct_end_answers(struct soft_engine *engine, struct soft_region *region);
/* Messages from @region are lent no more, though a peer has not acknowledged them. */
void soft_direct_revoke(struct soft_engine *engine, const struct soft_region *region);
/* soft_qp_ops.shows of every queue pair. */
bool soft_direct_shows(struct soft_qp *qp, const struct soft_region *region);
/* What a writer says, and a reader. Takes the descriptor. */
void soft_direct_told(struct soft_engine *engine, struct soft_lane_in *lane,
		      const struct soft_showing *showing);
void soft_direct_answered(struct soft_engine *engine, struct soft_lane *lane,
			  const struct soft_door_answer *answer);
/* The lane is about to go: its reader has nothing any more. */
void soft_direct_lane_ended(struct soft_engine *engine, const struct soft_lane *lane);

#endif
