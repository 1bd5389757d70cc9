/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_reader: a thread that reads sockets while callers that poll carry bulk, so that what
 * comes in (the kernel's copy, the checksum) costs its time and not that of who sends. All else
 * stays with turns, under the engine's lock: state machines, placing, counting.
 *
 *   sockets ─► reader: read, ICRC ─► ring of arrivals ─► a turn: cut, queue pairs, placing
 *
 * Sockets have one reader at a time: turns, or this thread. It begins when callers' turns have read
 * bulk, and ends by itself, when there is no more, or when it is asked to; then a turn empties the
 * ring before it reads, so that order stays. When the ring is full the kernel's buffers fill, as
 * they would without it. It may be ready to run and get no processor for long, where there are few
 * and others are busy: when a queue pair waits for an answer in vain, a turn looks into its sockets
 * (soft_reader_help()). Made when bulk is seen for the first time; asleep, it costs nothing.
 */
#ifndef SOFT_ENGINE_READER_H
#define SOFT_ENGINE_READER_H

#include "base/clock.h"
#include "soft/link/link.h"

struct soft_engine;
struct soft_engine_input;
struct soft_reader;
struct soft_wire;

/* What an engine keeps to tell bulk. */
struct soft_bulk {
	struct soft_reader *reader; /* NULL until the first bulk */
	size_t read;		    /* from sockets in the last turn */
	pp_ns since;
	size_t bytes; /* of trains that callers' turns read since */
	pp_ns not_before;
	bool refused; /* there is no memory or no thread for it */
};

/* All under the engine's lock unless they say otherwise; the reader itself never takes it. */

/* A caller's turn has ended: has the time come for the reader? */
void soft_reader_note(struct soft_engine *e);
/* Must turns leave the wire's sockets alone: are they the reader's, or is not all taken yet that it
 * read? */
bool soft_reader_has_sockets(const struct soft_engine *e, const struct soft_wire *wire);
/* Has it read what no turn has taken? */
bool soft_reader_has(const struct soft_engine *e);
/* Gives @input what it has read, up to about @budget bytes; returns datagrams. */
unsigned int soft_reader_take(struct soft_engine *e, size_t budget,
			      struct soft_engine_input *input);
/* Reads the wire's sockets in its place, if they are the reader's. */
unsigned int soft_reader_help(struct soft_engine *e, struct soft_wire *wire, size_t budget,
			      struct soft_engine_input *input);
/* Makes sockets the turns' again; what came for @wire, whose link is about to go, is forgotten. */
void soft_reader_forget(struct soft_engine *e, const struct soft_wire *wire);

/* Not under the lock, and without callers: ends the thread. */
void soft_reader_stop(struct soft_engine *e);
/* In a child of fork(), which has no such thread. */
void soft_reader_inherited(struct soft_engine *e);
/* After either of these. */
void soft_reader_free(struct soft_engine *e);

#endif
