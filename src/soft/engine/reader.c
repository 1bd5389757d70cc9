/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that only reads. What it shares with turns:
 *   - the ring: it alone moves `head`, who has the engine's lock alone moves `tail`;
 *   - `reading`: written under `lock`, by a turn to begin and by the thread to end. A turn that
 * sees that it has ended sees all that was put into the ring;
 *   - the links' `hot` and `turns`, which change hands with `reading`, and with `claimed` while it
 * reads.
 */
#include "soft/engine/reader.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "soft/engine/parts.h"
#include "soft/link/arrival.h"

#include "base/banned.h"

enum {
	RING = 16,		   /* arrivals: 1 MiB, so that they stay near the processors */
	BEGINS_AT = 512 * 1024,	   /* bytes of trains within BEGINS_IN */
	GOES_ON_WITH = 256 * 1024, /* within RESTS_AFTER */
	LOOKS_ON = 8,		   /* looks between two at the clock */
};

static const pp_ns BEGINS_IN = 2 * PP_MILLISECOND, RESTS_AFTER = 4 * PP_MILLISECOND,
		   PAUSE = 5 * PP_MILLISECOND;
static const pp_ns SPINS = 30000; /* longer than the sender of a train needs for the next */

struct entry {
	struct soft_wire *wire; /* NULL: its link has gone */
	struct soft_arrival arrival;
};

struct soft_reader {
	struct soft_engine *engine; /* for its wake-up and `asleep`, nothing else */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int wake_fd;	      /* eventfd: asked, or room in a ring that was full */
	_Atomic bool reading; /* sockets are its own */
	_Atomic bool asked;   /* to stop reading */
	bool stop;	      /* and to end */
	size_t goes_on_with;  /* bytes of trains within RESTS_AFTER */
	struct soft_wire *wires[SOFT_WIRES_MAX];
	unsigned int num_wires, slot;
	struct soft_icrc_flow flow;
	_Alignas(64) _Atomic unsigned int head;
	_Alignas(64) _Atomic unsigned int tail;
	_Atomic bool full;		   /* it waits for room */
	_Alignas(64) _Atomic bool claimed; /* somebody reads at this moment */
	_Alignas(64) struct entry ring[RING];
};

static void wake(struct soft_reader *r)
{
	uint64_t one = 1;

	/* A full counter is a wake-up already. */
	if (write(r->wake_fd, &one, sizeof(one)) < 0)
		return;
}

/* Until @wait has passed, it is woken, or (@sockets) something comes. */
static void sleep_on(struct soft_reader *r, bool sockets, pp_ns wait)
{
	struct pollfd fds[1 + SOFT_WIRES_MAX * SOFT_LINK_FDS_MAX];
	const struct timespec t = {.tv_nsec = wait > 0 ? wait : 0};
	int link_fds[SOFT_LINK_FDS_MAX];
	unsigned int n = 1;
	uint64_t drained;

	fds[0] = (struct pollfd){.fd = r->wake_fd, .events = POLLIN};
	for (unsigned int i = 0; sockets && i < r->num_wires; i++) {
		unsigned int m = soft_link_fds(r->wires[i]->link, link_fds);

		for (unsigned int j = 0; j < m; j++)
			fds[n++] = (struct pollfd){.fd = link_fds[j], .events = POLLIN};
	}
	if (ppoll(fds, n, &t, NULL) > 0 && fds[0].revents &&
	    read(r->wake_fd, &drained, sizeof(drained)) < 0)
		return;
}

/* The entry to be filled next; NULL: all wait for a turn. */
static struct entry *room(struct soft_reader *r)
{
	unsigned int head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (head - atomic_load_explicit(&r->tail, memory_order_acquire) >= RING)
		return NULL;
	return &r->ring[head % RING];
}

static void wait_for_room(struct soft_reader *r)
{
	atomic_store(&r->full, true);
	/* A turn that made room before it could see that is not going to wake us. */
	if (!room(r) && !atomic_load(&r->asked))
		sleep_on(r, /* sockets= */ false, PP_MILLISECOND);
	atomic_store(&r->full, false);
}

static bool claim(struct soft_reader *r)
{
	return !atomic_exchange_explicit(&r->claimed, true, memory_order_acquire);
}

static void release(struct soft_reader *r)
{
	atomic_store_explicit(&r->claimed, false, memory_order_release);
}

static size_t read_next(struct soft_reader *r, struct entry *to)
{
	for (unsigned int i = 0; i < r->num_wires; i++) {
		if (!soft_link_read(r->wires[i]->link, &to->arrival))
			continue;
		to->wire = r->wires[i];
		soft_arrival_check(&to->arrival, r->slot, &r->flow);
		atomic_fetch_add(&r->head, 1);
		/* It saw an empty ring before it slept, or sees this. */
		if (atomic_load(&r->engine->asleep) && atomic_exchange(&r->engine->asleep, false))
			soft_engine_thread_wake(r->engine);
		return to->arrival.len;
	}
	return 0;
}

/* Reads one train from any wire; its bytes, 0: there is none, or a turn is at it. */
static size_t read_one(struct soft_reader *r, struct entry *to)
{
	size_t len;

	if (!claim(r))
		return 0;
	len = read_next(r, to);
	release(r);
	return len;
}

static void read_on(struct soft_reader *r)
{
	pp_ns since = pp_clock_monotonic(), last = since, now;
	unsigned int looks = 0;
	size_t bulk = 0;

	while (!atomic_load_explicit(&r->asked, memory_order_relaxed)) {
		struct entry *to = room(r);
		size_t len = to ? read_one(r, to) : 0;

		if (!to) {
			wait_for_room(r);
		} else if (len) {
			bulk += len >= SOFT_STREAM_BYTES ? len : 0;
			looks = 0;
		} else if (looks++ % LOOKS_ON == 0) {
			now = pp_clock_monotonic();
			if (looks == 1)
				last = now;
			if (now - since >= RESTS_AFTER) {
				if (bulk < r->goes_on_with)
					return;
				since = now;
				bulk = 0;
			}
			if (now - last >= SPINS)
				sleep_on(r, /* sockets= */ true, since + RESTS_AFTER - now);
		}
	}
}

static void *run(void *arg)
{
	struct soft_reader *r = arg;

	pthread_mutex_lock(&r->lock);
	for (;;) {
		while (!atomic_load(&r->reading) && !r->stop)
			pthread_cond_wait(&r->changed, &r->lock);
		if (r->stop)
			break;
		pthread_mutex_unlock(&r->lock);
		read_on(r);
		pthread_mutex_lock(&r->lock);
		atomic_store(&r->reading, false);
		atomic_store(&r->asked, false);
		pthread_cond_broadcast(&r->changed);
		/* The engine's sleeps on other descriptors than these sockets. */
		soft_engine_thread_wake(r->engine);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static int make(struct soft_engine *e)
{
	struct soft_reader *r = aligned_alloc(64, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	memset(r, 0, offsetof(struct soft_reader, ring));
	for (unsigned int i = 0; i < RING; i++)
		r->ring[i].wire = NULL;
	r->engine = e;
	r->slot = soft_slot_number(e->slot);
	r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->wake_fd < 0) {
		rc = -errno;
		free(r);
		return rc;
	}
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->changed, NULL);
	rc = soft_engine_thread_make(&r->thread, "peerpath-read", &e->affinity, run, r);
	if (rc < 0) {
		close(r->wake_fd);
		free(r);
		return rc;
	}
	e->bulk.reader = r;
	return 0;
}

static bool wanted(const struct soft_engine *e, const struct soft_wire *w)
{
	enum soft_wire_threads choice = w->config.wire_threads;

	return w->link && (choice == SOFT_WIRE_THREADS_YES ||
			   (choice == SOFT_WIRE_THREADS_AUTO && e->processors));
}

/* Bytes of trains that are bulk: @bytes, any of a wire that has been told to, none of any. */
static size_t bulk_of(const struct soft_engine *e, size_t bytes)
{
	size_t least = SIZE_MAX;

	for (const struct soft_wire *w = e->wires; w; w = w->next)
		if (w->link && w->config.wire_threads == SOFT_WIRE_THREADS_YES)
			return 1;
		else if (wanted(e, w))
			least = bytes;
	return least;
}

static void begin(struct soft_engine *e)
{
	struct soft_reader *r;

	if (!e->bulk.reader && make(e) < 0) {
		e->bulk.refused = true;
		return;
	}
	r = e->bulk.reader;
	pthread_mutex_lock(&r->lock);
	r->goes_on_with = bulk_of(e, GOES_ON_WITH);
	r->num_wires = 0;
	for (struct soft_wire *w = e->wires; w && r->num_wires < SOFT_WIRES_MAX; w = w->next)
		if (wanted(e, w))
			r->wires[r->num_wires++] = w;
	atomic_store(&r->reading, true);
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

void soft_reader_note(struct soft_engine *e)
{
	struct soft_bulk *b = &e->bulk;
	pp_ns now = e->turned;

	if (b->read < SOFT_STREAM_BYTES || b->refused ||
	    (b->reader && atomic_load(&b->reader->reading)))
		return;
	if (now - b->since > BEGINS_IN) {
		b->since = now;
		b->bytes = 0;
	}
	b->bytes += b->read;
	if (b->bytes < bulk_of(e, BEGINS_AT) || now < b->not_before)
		return;
	b->not_before = now + PAUSE;
	begin(e);
}

bool soft_reader_has(const struct soft_engine *e)
{
	const struct soft_reader *r = e->bulk.reader;

	return r && atomic_load_explicit(&r->head, memory_order_acquire) !=
			    atomic_load_explicit(&r->tail, memory_order_relaxed);
}

bool soft_reader_has_sockets(const struct soft_engine *e, const struct soft_wire *wire)
{
	const struct soft_reader *r = e->bulk.reader;

	/* In this order: once `reading` has ended the ring holds all that was read. */
	if (!r || !(atomic_load_explicit(&r->reading, memory_order_acquire) || soft_reader_has(e)))
		return false;
	for (unsigned int i = 0; i < r->num_wires; i++)
		if (r->wires[i] == wire)
			return true;
	return false;
}

unsigned int soft_reader_take(struct soft_engine *e, size_t budget, struct soft_engine_input *in)
{
	struct soft_reader *r = e->bulk.reader;
	unsigned int n = 0;
	size_t got = 0;

	while (got < budget && soft_reader_has(e)) {
		unsigned int tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
		const struct entry *from = &r->ring[tail % RING];

		got += from->arrival.len;
		in->wire = from->wire;
		if (from->wire)
			n += soft_link_take(from->wire->link, &from->arrival, soft_engine_input,
					    in);
		atomic_store(&r->tail, ++tail);
		/* Room for a few, else each would cost a wake-up. */
		if (atomic_load(&r->full) &&
		    atomic_load_explicit(&r->head, memory_order_relaxed) - tail <= RING / 2 &&
		    atomic_exchange(&r->full, false))
			wake(r);
	}
	in->wire = NULL;
	return n;
}

unsigned int soft_reader_help(struct soft_engine *e, struct soft_wire *wire, size_t budget,
			      struct soft_engine_input *in)
{
	struct soft_reader *r = e->bulk.reader;
	unsigned int n = 0;

	if (!soft_reader_has_sockets(e, wire) || !claim(r))
		return 0;
	in->wire = wire;
	/* What it has read comes first. */
	if (!soft_reader_has(e))
		n = soft_link_receive(wire->link, budget, soft_engine_input, in);
	release(r);
	in->wire = NULL;
	return n;
}

static void rest(struct soft_engine *e)
{
	struct soft_reader *r = e->bulk.reader;

	if (!r || e->inherited || !atomic_load(&r->reading))
		return;
	pthread_mutex_lock(&r->lock);
	if (atomic_load(&r->reading)) {
		atomic_store(&r->asked, true);
		wake(r);
	}
	while (atomic_load(&r->reading))
		pthread_cond_wait(&r->changed, &r->lock);
	pthread_mutex_unlock(&r->lock);
}

void soft_reader_forget(struct soft_engine *e, const struct soft_wire *wire)
{
	struct soft_reader *r = e->bulk.reader;

	if (!r)
		return;
	rest(e);
	for (unsigned int i = 0; i < RING; i++)
		if (r->ring[i].wire == wire)
			r->ring[i].wire = NULL;
}

void soft_reader_stop(struct soft_engine *e)
{
	struct soft_reader *r = e->bulk.reader;

	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	atomic_store(&r->asked, true);
	wake(r);
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
}

void soft_reader_inherited(struct soft_engine *e)
{
	if (!e->bulk.reader)
		return;
	close(e->bulk.reader->wake_fd);
	e->bulk.reader->wake_fd = -1;
	atomic_store(&e->bulk.reader->reading, false);
}

void soft_reader_free(struct soft_engine *e)
{
	if (!e->bulk.reader)
		return;
	if (e->bulk.reader->wake_fd >= 0)
		close(e->bulk.reader->wake_fd);
	free(e->bulk.reader);
	e->bulk.reader = NULL;
}
