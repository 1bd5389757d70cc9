/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/engine/writer.h"

#include <limits.h>

#include "base/compiler.h"
#include "soft/engine/parts.h"

#include "base/banned.h"

enum {
	BEGINS_AT = 512 * 1024,	   /* bytes of long trains within BEGINS_IN */
	GOES_ON_WITH = 256 * 1024, /* within LEAVES_AFTER */
	LOOKS_ON = 16,		   /* looks between two at the clock */
	MANY_PROCESSORS = 8,	   /* that a second one is no burden to */
};

static const pp_ns BEGINS_IN = 2 * PP_MILLISECOND, LEAVES_AFTER = 4 * PP_MILLISECOND;
static const pp_ns SPINS = 30000; /* longer than a turn needs for the next train */

static void *run(void *arg)
{
	struct soft_outbox *outbox = arg;
	pp_ns idle = 0;
	unsigned int looks = 0;

	for (;;) {
		if (soft_outbox_send(outbox)) {
			looks = 0;
			continue;
		}
		if (soft_outbox_ends(outbox))
			break; /* what was given before that is there now */
		PP_SPIN();
		if (looks++ % LOOKS_ON)
			continue;
		if (looks == 1)
			idle = pp_clock_monotonic();
		else if (pp_clock_monotonic() - idle >= SPINS)
			soft_outbox_wait(outbox);
	}
	while (soft_outbox_send(outbox))
		;
	return NULL;
}

static int make_one(struct soft_engine *e, struct soft_writer *ret)
{
	struct soft_outbox *outbox;
	int rc = soft_outbox_new(&outbox);

	if (rc < 0)
		return rc;
	rc = soft_engine_thread_make(&ret->thread, "peerpath-write", &e->affinity, run, outbox);
	if (rc < 0)
		soft_outbox_free(outbox);
	else
		ret->outbox = outbox;
	return rc;
}

/* One at least, or false. */
static bool make(struct soft_wire *wire)
{
	struct soft_outgoing_bulk *b = &wire->outgoing;
	unsigned int wanted = SOFT_OUTBOXES_MAX;

	if (wire->config.wire_threads != SOFT_WIRE_THREADS_YES &&
	    CPU_COUNT(&wire->engine->affinity) < MANY_PROCESSORS)
		wanted = 1;
	while (b->num_writers < wanted && make_one(wire->engine, &b->writers[b->num_writers]) == 0)
		b->num_writers++;
	return b->num_writers;
}

static bool all_sent(const struct soft_outgoing_bulk *b)
{
	for (unsigned int i = 0; i < b->num_writers; i++)
		if (!soft_outbox_sent(b->writers[i].outbox))
			return false;
	return true;
}

/* One train, unless the threads are at it. */
static bool send_one(const struct soft_outgoing_bulk *b)
{
	for (unsigned int i = 0; i < b->num_writers; i++)
		if (soft_outbox_send(b->writers[i].outbox))
			return true;
	return false;
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

	struct soft_outbox *outboxes[SOFT_OUTBOXES_MAX];

	if (!b->num_writers && !make(wire)) {
		b->refused = true;
		return;
	}
	for (unsigned int i = 0; i < b->num_writers; i++)
		outboxes[i] = b->writers[i].outbox;
	soft_link_set_outboxes(wire->link, outboxes, b->num_writers);
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
	bool on = soft_link_room(wire->link, NULL) != UINT_MAX;

	if (on) {
		if (now - b->since < LEAVES_AFTER)
			return;
		if (bytes < bulk_of(wire, GOES_ON_WITH) && all_sent(b))
			soft_link_set_outboxes(wire->link, NULL, 0);
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

void soft_writer_help(struct soft_wire *wire)
{
	while (send_one(&wire->outgoing))
		;
}

void soft_writer_drain(struct soft_wire *wire, pp_ns patience)
{
	pp_ns until = pp_clock_monotonic() + patience;

	while (!all_sent(&wire->outgoing) && pp_clock_monotonic() < until)
		if (!send_one(&wire->outgoing))
			sched_yield();
}

void soft_writer_end(struct soft_wire *wire, bool inherited)
{
	struct soft_outgoing_bulk *b = &wire->outgoing;

	for (unsigned int i = 0; i < b->num_writers && !inherited; i++) {
		soft_outbox_end(b->writers[i].outbox);
		pthread_join(b->writers[i].thread, NULL);
	}
	if (wire->link && !inherited)
		soft_link_set_outboxes(wire->link, NULL, 0);
	for (unsigned int i = 0; i < b->num_writers; i++)
		soft_outbox_free(b->writers[i].outbox);
	b->num_writers = 0;
}
