/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/engine/writer.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "soft/engine/parts.h"
#include "soft/link/outbox.h"

#include "base/banned.h"

enum {
	BEGINS_AT = 512 * 1024,	   /* bytes of long trains within BEGINS_IN */
	GOES_ON_WITH = 256 * 1024, /* within LEAVES_AFTER */
	LOOKS_ON = 16,		   /* looks between two at the clock */
};

static const pp_ns BEGINS_IN = 2 * PP_MILLISECOND, LEAVES_AFTER = 4 * PP_MILLISECOND;
static const pp_ns SPINS = 30000; /* longer than a turn needs for the next train */

struct soft_writer {
	struct soft_outbox *outbox;
	pthread_t thread;
};

static void *run(void *arg)
{
	struct soft_writer *w = arg;
	pp_ns idle = 0;
	unsigned int looks = 0;

	for (;;) {
		if (soft_outbox_send(w->outbox)) {
			looks = 0;
			continue;
		}
		if (soft_outbox_ends(w->outbox))
			break;
		if (looks++ % LOOKS_ON)
			continue;
		if (looks == 1)
			idle = pp_clock_monotonic();
		else if (pp_clock_monotonic() - idle >= SPINS)
			soft_outbox_wait(w->outbox);
	}
	return NULL;
}

static int make(struct soft_wire *wire)
{
	struct soft_writer *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return -ENOMEM;
	rc = soft_outbox_new(&w->outbox);
	if (rc == 0)
		rc = soft_engine_thread_make(&w->thread, "peerpath-write", &wire->engine->affinity,
					     run, w);
	if (rc < 0) {
		soft_outbox_free(w->outbox);
		free(w);
		return rc;
	}
	wire->outgoing.writer = w;
	return 0;
}

static bool wanted(const struct soft_wire *wire)
{
	enum soft_wire_threads choice = wire->config.wire_threads;

	return choice == SOFT_WIRE_THREADS_YES ||
	       (choice == SOFT_WIRE_THREADS_AUTO && wire->engine->processors);
}

static void begin(struct soft_wire *wire)
{
	struct soft_outgoing_bulk *b = &wire->outgoing;

	if (!b->writer && make(wire) < 0)
		b->refused = true;
	else
		soft_link_set_outbox(wire->link, b->writer->outbox);
}

/* Of a wire that has been told to, any long train is bulk. */
static uint64_t bulk_of(const struct soft_wire *wire, uint64_t bytes)
{
	return wire->config.wire_threads == SOFT_WIRE_THREADS_YES ? 1 : bytes;
}

void soft_writer_note(struct soft_wire *wire, pp_ns now)
{
	struct soft_outgoing_bulk *b = &wire->outgoing;
	uint64_t bytes = soft_link_bulk(wire->link) - b->bytes;
	bool on = soft_link_room(wire->link) != UINT_MAX;

	if (on) {
		if (now - b->since < LEAVES_AFTER)
			return;
		if (bytes < bulk_of(wire, GOES_ON_WITH) && soft_outbox_sent(b->writer->outbox))
			soft_link_set_outbox(wire->link, NULL);
	} else if (!bytes || b->refused) {
		return;
	} else if (now - b->since <= BEGINS_IN) {
		if (!wire->engine->called || bytes < bulk_of(wire, BEGINS_AT) || !wanted(wire))
			return;
		begin(wire);
	}
	b->since = now;
	b->bytes += bytes;
}

void soft_writer_drain(struct soft_wire *wire, pp_ns patience)
{
	struct soft_writer *w = wire->outgoing.writer;
	pp_ns until = pp_clock_monotonic() + patience;

	while (w && !soft_outbox_sent(w->outbox) && pp_clock_monotonic() < until)
		sched_yield();
}

void soft_writer_end(struct soft_wire *wire, bool inherited)
{
	struct soft_writer *w = wire->outgoing.writer;

	if (!w)
		return;
	if (!inherited) {
		soft_outbox_end(w->outbox);
		pthread_join(w->thread, NULL);
		if (wire->link)
			soft_link_set_outbox(wire->link, NULL);
	}
	soft_outbox_free(w->outbox);
	free(w);
	wire->outgoing.writer = NULL;
}
