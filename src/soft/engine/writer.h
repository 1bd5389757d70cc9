/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_writer: a thread that sends the trains of one wire (soft/link/outbox.h) while a
 * caller has bulk to be sent, so that the kernel's copy is not a turn's time. Made at the first
 * bulk of a caller's; where and when, as the reader (reader.h). Between bulk whoever builds a train
 * sends it.
 */
#ifndef SOFT_ENGINE_WRITER_H
#define SOFT_ENGINE_WRITER_H

#include "base/clock.h"
#include "soft/link/link.h"

struct soft_engine;
struct soft_wire;
struct soft_writer;

/* What a wire keeps to tell bulk. */
struct soft_outgoing_bulk {
	struct soft_writer *writer; /* NULL until the first */
	pp_ns since;
	uint64_t bytes; /* in long trains until then */
	bool refused;	/* there is no memory or no thread for it */
};

/* All under the engine's lock unless they say otherwise. */

/* Trains of the wire may have been sent: begins or leaves off. */
void soft_writer_note(struct soft_wire *wire, pp_ns now);
/* Waits until all is sent, for as long as @patience. */
void soft_writer_drain(struct soft_wire *wire, pp_ns patience);
/* Sends what is left and ends; before the link goes. Of a child of fork(), which has no such
 * thread, only frees. */
void soft_writer_end(struct soft_wire *wire, bool inherited);

#endif
