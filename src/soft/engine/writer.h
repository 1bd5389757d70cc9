/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_writer: a thread that packs and sends trains of one wire (soft/link/outbox.h) while a
 * caller has bulk to be sent, so that neither copy is a turn's time; where there are processors
 * enough, two of them, each for what it has room for. Made at the first bulk of a caller's;
 * where and when, as the reader (reader.h). Who waits for what it has not sent, or for an answer in
 * vain, sends that himself, for it may get no processor for long. Between bulk whoever builds a
 * train sends it.
 */
#ifndef SOFT_ENGINE_WRITER_H
#define SOFT_ENGINE_WRITER_H

#include <pthread.h>

#include "base/clock.h"
#include "soft/link/outbox.h"

struct soft_engine;
struct soft_wire;
struct soft_writer {
	struct soft_outbox *outbox;
	pthread_t thread;
};

/* What a wire keeps to tell bulk. */
struct soft_outgoing_bulk {
	struct soft_writer writers[SOFT_OUTBOXES_MAX];
	unsigned int num_writers; /* 0 until the first bulk */
	pp_ns since;
	uint64_t bytes; /* in long trains until then */
	bool refused;	/* there is no memory or no thread for one */
};

/* All under the engine's lock unless they say otherwise. */

/* Trains of the wire may have been sent: begins or leaves off. */
void soft_writer_note(struct soft_wire *wire, pp_ns now);
/* Sends what waits, in the threads' place. */
void soft_writer_help(struct soft_wire *wire);
/* Waits until all is sent, for as long as @patience. */
void soft_writer_drain(struct soft_wire *wire, pp_ns patience);
/* Sends what is left and ends; before the link goes. Of a child of fork(), which has no such
 * thread, only frees. */
void soft_writer_end(struct soft_wire *wire, bool inherited);

#endif
