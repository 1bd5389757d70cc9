/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a thread has still to read when its owner may take it away. First with an outbox that
 * stands still until the test says: whatever ends a work request waits for it. Then with threads,
 * work requests that are sent again and again though they arrive, and memory that is out of reach
 * from each completion on: who reads it then ends the test.
 */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soft/qp/requester.h"
#include "soft_end.h"
#include "soft_net.h"

enum {
	HALF = BUFFER / 2,
	SLOT = 256 * 1024,
	SLOTS = HALF / SLOT,
	LITTLE = 48 * 1024,
	MESSAGES = 2000,
	STILL_MS = 20
};

struct still {
	struct end a, b;
	struct soft_outbox *outbox;
	uint64_t mark; /* of the message under way */
	pthread_t sender;
	_Atomic bool ends;
};

/* A device, whose copies are done when the test says. */
struct device {
	struct soft_copier copier; /* first */
	struct soft_copy *copy;
	struct soft_staging_waiter waiter;
	const struct still *still;
	unsigned int given_back, in_time;
};

/* The wire of both ends sends by an outbox that nobody empties. */
static void open_still(struct still *s)
{
	memset(s, 0, sizeof(*s));
	end_open_with(&s->a, "127.0.0.1", SOFT_RC, SOFT_WIRE_THREADS_NO);
	end_open_with(&s->b, "127.0.0.1", SOFT_RC, SOFT_WIRE_THREADS_NO);
	end_connect(&s->a, s->b.qp.num, PATIENT);
	end_connect(&s->b, s->a.qp.num, PATIENT);
	assert_int_equal(soft_outbox_new(&s->outbox), 0);
	fill(s->a.buffer, HALF, 3);
	soft_engine_lock(s->a.engine);
	soft_link_set_outboxes(s->a.wire->link, &s->outbox, 1);
	/* It is not to be taken away for want of bulk. */
	s->a.wire->outgoing.since = pp_clock_monotonic() + 1000 * PP_SECOND;
	soft_engine_unlock(s->a.engine);
}

/* And a message lies in it. */
static void stand_still(struct still *s)
{
	open_still(s);
	post(&s->a, SOFT_WR_WRITE, s->b.region.iova + HALF, s->b.region.key, 0, LITTLE);
	soft_engine_lock(s->a.engine);
	s->mark = s->a.qp.unread;
	assert_int_not_equal(s->mark, 0);
	assert_false(soft_outbox_packed(s->outbox, soft_mark(s->mark)));
}

static void *send_on(void *arg)
{
	struct still *s = arg;

	poll(NULL, 0, STILL_MS);
	while (!atomic_load(&s->ends))
		if (!soft_outbox_send(s->outbox))
			poll(NULL, 0, 1);
	while (soft_outbox_send(s->outbox))
		;
	return NULL;
}

/* Somebody sends from a moment on: what is called in between must not return before. */
static void soon(struct still *s)
{
	assert_int_equal(pthread_create(&s->sender, NULL, send_on, s), 0);
}

/* What was called has returned: its memory may go. */
static void let_go(struct still *s)
{
	assert_true(soft_outbox_packed(s->outbox, soft_mark(s->mark)));
	assert_int_equal(mprotect(s->a.buffer, BUFFER, PROT_NONE), 0);
	soft_engine_unlock(s->a.engine);
}

static void end_still(struct still *s)
{
	atomic_store(&s->ends, true);
	pthread_join(s->sender, NULL);
	soft_engine_lock(s->a.engine);
	soft_link_set_outboxes(s->a.wire->link, NULL, 0);
	soft_engine_unlock(s->a.engine);
	end_close(&s->a);
	end_close(&s->b);
	soft_outbox_free(s->outbox);
}

static void answer(struct still *s, uint8_t syndrome)
{
	struct soft_packet p = {.opcode = SOFT_RC | SOFT_ACKNOWLEDGE,
				.pkey = 0xffff,
				.dest_qp = s->a.qp.num,
				.psn = soft_psn_add(s->a.qp.req.next_psn, SOFT_PSN_MASK),
				.syndrome = syndrome};

	soft_qp_receive(&s->a.qp, &p, &s->a.qp.path, 0, pp_clock_monotonic());
}

static void assert_completed(struct still *s, unsigned int status)
{
	struct soft_cqe cqe;

	assert_int_equal(soft_cq_pop(&s->a.cq, &cqe, 1), 1);
	assert_int_equal(cqe.status, status);
}

/* A peer acknowledges what it cannot have. */
static void early_acknowledge(void **state)
{
	struct still s;

	(void)state;
	stand_still(&s);
	soon(&s);
	answer(&s, SOFT_AETH_ACK);
	assert_completed(&s, SOFT_WC_SUCCESS);
	let_go(&s);
	end_still(&s);
}

static void refused(void **state)
{
	struct still s;

	(void)state;
	stand_still(&s);
	soon(&s);
	answer(&s, SOFT_AETH_NAK_ACCESS);
	assert_completed(&s, SOFT_WC_REM_ACCESS_ERR);
	let_go(&s);
	end_still(&s);
}

static void flushed(void **state)
{
	struct still s;

	(void)state;
	stand_still(&s);
	soon(&s);
	soft_qp_to_error(&s.a.qp);
	assert_completed(&s, SOFT_WC_WR_FLUSH_ERR);
	let_go(&s);
	end_still(&s);
}

static void reset(void **state)
{
	struct still s;

	(void)state;
	stand_still(&s);
	soon(&s);
	soft_qp_reset(&s.a.qp);
	let_go(&s);
	end_still(&s);
}

static void deregistered(void **state)
{
	struct still s;

	(void)state;
	stand_still(&s);
	soon(&s);
	soft_regions_remove(soft_engine_regions(s.a.engine), &s.a.region);
	soft_engine_take_back(s.a.engine, s.a.buffer, BUFFER);
	let_go(&s);
	end_still(&s);
}

/* Its first copy has arrived, the second still waits to be sent, and needs the memory no more. */
static void sent_again(void **state)
{
	struct still s;

	(void)state;
	stand_still(&s);
	while (soft_outbox_send(s.outbox))
		;
	soft_requester_go_back(&s.a.qp);
	soft_engine_ready(s.a.engine, &s.a.qp);
	(void)soft_engine_send_ready(s.a.engine, pp_clock_monotonic());
	assert_int_equal(s.a.qp.unread, s.mark);
	assert_false(soft_outbox_sent(s.outbox));
	answer(&s, SOFT_AETH_ACK);
	assert_completed(&s, SOFT_WC_SUCCESS);
	let_go(&s);
	soon(&s);
	end_still(&s);
}

static void begin_copy(struct soft_copier *copier, struct soft_copy *copy)
{
	((struct device *)copier)->copy = copy;
}

static void was_given_back(struct soft_staging_waiter *waiter)
{
	struct device *d = (struct device *)((char *)waiter - offsetof(struct device, waiter));

	d->given_back++;
	d->in_time += soft_outbox_packed(d->still->outbox, soft_mark(d->still->mark));
}

/* A message of a device's memory, copied to staging and sent from there. */
static void stand_still_staged(struct still *s, struct device *d, void *staging)
{
	struct soft_region *region = &s->a.region;

	open_still(s);
	*d = (struct device){
		.copier = {.start = begin_copy}, .waiter = {.wake = was_given_back}, .still = s};
	soft_engine_lock(s->a.engine);
	assert_true(soft_staging_add(&s->a.engine->mover.out, staging, NULL));
	soft_regions_remove(soft_engine_regions(s->a.engine), region);
	region->ops = &soft_region_far;
	region->copier = &d->copier;
	region->base = NULL;
	assert_int_equal(soft_engine_add_region(s->a.engine, region), 0);
	soft_engine_unlock(s->a.engine);
	post(&s->a, SOFT_WR_WRITE, s->b.region.iova + HALF, s->b.region.key, 0, LITTLE);
	soft_engine_lock(s->a.engine);
	assert_non_null(d->copy);
	memset(d->copy->host, 0x77, d->copy->len);
	soft_copy_done(d->copy, 0);
	(void)soft_engine_send_ready(s->a.engine, pp_clock_monotonic());
	s->mark = s->a.qp.unread;
	assert_int_not_equal(s->mark, 0);
	assert_false(soft_outbox_packed(s->outbox, soft_mark(s->mark)));
	soft_staging_wait(&s->a.engine->mover.out, &d->waiter);
}

/* What was staged is not given back before it was read, however the message ends. */
static void staged(void **state)
{
	static uint8_t staging[SOFT_STAGING_SEGMENT];

	(void)state;
	for (int way = 0; way < 3; way++) {
		struct device d;
		struct still s;

		stand_still_staged(&s, &d, staging);
		soon(&s);
		if (way == 0)
			answer(&s, SOFT_AETH_ACK);
		else if (way == 1)
			soft_qp_to_error(&s.a.qp);
		else
			soft_qp_reset(&s.a.qp);
		assert_int_equal(d.given_back, 1);
		assert_int_equal(d.in_time, 1);
		soft_engine_unlock(s.a.engine);
		end_still(&s);
	}
}

/* A child has nobody to wait for. */
static void forked(void **state)
{
	struct still s;
	pid_t child;
	int status;

	(void)state;
	stand_still(&s);
	soft_engine_unlock(s.a.engine);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		soft_engine_lock(s.a.engine);
		soft_qp_reset(&s.a.qp);
		soft_engine_unlock(s.a.engine);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	soon(&s);
	soft_engine_lock(s.a.engine);
	soft_qp_reset(&s.a.qp);
	let_go(&s);
	end_still(&s);
}

static void *slot_of(const struct end *e, unsigned int slot)
{
	return e->buffer + (size_t)slot * SLOT;
}

static void post_slot(struct end *a, struct end *b, unsigned int slot, uint32_t seed)
{
	assert_int_equal(mprotect(slot_of(a, slot), SLOT, PROT_READ | PROT_WRITE), 0);
	fill(slot_of(a, slot), SLOT, seed);
	post(a, SOFT_WR_WRITE, b->region.iova + HALF + (size_t)slot * SLOT, b->region.key,
	     slot * SLOT, SLOT);
}

/* Every so often all that is under way goes once more: acknowledges of the first copies come while
 * the second wait to be read. */
static void out_of_reach(void **state)
{
	static uint8_t expected[SLOT];
	unsigned int posted = 0, done = 0, turns = 0;
	uint64_t again, threaded;
	struct end a, b;

	(void)state;
	end_open_with(&a, "127.0.0.1", SOFT_RC, SOFT_WIRE_THREADS_YES);
	end_open_with(&b, "127.0.0.1", SOFT_RC, SOFT_WIRE_THREADS_YES);
	end_connect(&a, b.qp.num, PATIENT);
	end_connect(&b, a.qp.num, PATIENT);
	assert_int_equal(mprotect(a.buffer, HALF, PROT_NONE), 0);
	while (done < MESSAGES) {
		struct soft_cqe cqe;

		while (posted < MESSAGES && posted - done < SLOTS) {
			post_slot(&a, &b, posted % SLOTS, posted);
			posted++;
		}
		soft_engine_poll(a.engine);
		if (++turns % 16 == 0) {
			soft_engine_lock(a.engine);
			soft_requester_go_back(&a.qp);
			soft_engine_kick(a.engine, &a.qp);
			soft_engine_unlock(a.engine);
		}
		while (soft_cq_pop(&a.cq, &cqe, 1)) {
			assert_int_equal(cqe.status, 0);
			assert_int_equal(mprotect(slot_of(&a, done % SLOTS), SLOT, PROT_NONE), 0);
			done++;
		}
	}
	for (unsigned int slot = 0; slot < SLOTS; slot++) {
		fill(expected, SLOT, MESSAGES - SLOTS + slot);
		assert_memory_equal(b.buffer + HALF + (size_t)slot * SLOT, expected, SLOT);
	}
	soft_engine_lock(a.engine);
	again = soft_wire_counters(a.wire)->retransmitted_packets;
	threaded = soft_wire_stats(a.wire)->threaded_sends;
	soft_engine_unlock(a.engine);
	assert_true(again > 0);
	assert_true(threaded > 0);
	end_close(&a);
	end_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(early_acknowledge),
		cmocka_unit_test(refused),
		cmocka_unit_test(flushed),
		cmocka_unit_test(reset),
		cmocka_unit_test(deregistered),
		cmocka_unit_test(sent_again),
		cmocka_unit_test(staged),
		cmocka_unit_test(forked),
		cmocka_unit_test(out_of_reach),
	};

	(void)net_own();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
