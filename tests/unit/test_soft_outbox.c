/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An outbox without a thread: the test sends when it says. Over the loopback of a network namespace
 * of its own: what arrives, in which order, what is counted when, and when payload is read.
 */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "soft/link/outbox.h"
#include "soft/link/parts.h"
#include "soft_net.h"

enum {
	MTU = 4096,
	TRAIN = 15,
	PLACES = 16,
	PACKETS_MAX = 1024,
	WAIT_MS = 5000,
	KEPT = 1 << 20,
	HEADERS = 12, /* of a MIDDLE */
};

struct fixture {
	struct soft_link *from, *to;
	struct soft_outbox *outbox, *second;
	struct soft_path path;
	/* What has arrived, one after the other, if it is to be kept. */
	uint8_t *bytes;
	size_t len;
	uint32_t next, seen[PACKETS_MAX]; /* packet numbers */
	unsigned int num_seen, wrong;
};

static uint8_t payload[MTU];

static struct soft_link *open_link(unsigned int slot)
{
	const struct soft_link_config config = {
		.gids = {net_ipv4(127, 0, 0, 1)}, .num_gids = 1, .slot = slot};
	struct soft_link *link = NULL;
	struct pp_error err = {0};

	if (soft_link_open(&config, &link, &err) < 0)
		fail_msg("%s", err.text);
	return link;
}

static int start(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct soft_gid lo = net_ipv4(127, 0, 0, 1);

	if (!f)
		return -1;
	f->from = open_link(0);
	f->to = open_link(1);
	assert_int_equal(soft_link_path(f->from, &lo, &lo, 1, &f->path), 0);
	assert_int_equal(soft_outbox_new(&f->outbox), 0);
	assert_int_equal(soft_outbox_new(&f->second), 0);
	soft_link_set_outboxes(f->from, &f->outbox, 1);
	*state = f;
	return 0;
}

static int stop(void **state)
{
	struct fixture *f = *state;

	while (soft_outbox_send(f->outbox) || soft_outbox_send(f->second))
		;
	soft_link_set_outboxes(f->from, NULL, 0);
	soft_outbox_free(f->outbox);
	soft_outbox_free(f->second);
	free(f->bytes);
	soft_link_close(f->from);
	soft_link_close(f->to);
	free(f);
	return 0;
}

static void add(struct fixture *f, unsigned int packets, uint32_t bytes)
{
	struct iovec piece = {payload, bytes};

	for (unsigned int i = 0; i < packets; i++) {
		struct soft_packet p = {.opcode = SOFT_RC | SOFT_WRITE_MIDDLE,
					.pkey = 0xffff,
					.dest_qp = 1 << SOFT_SLOT_SHIFT,
					.psn = f->next++,
					.payload_bytes = bytes};

		soft_link_send(f->from, &f->path, &p, &piece, 1);
	}
	soft_link_flush(f->from);
}

static void see(void *arg, const struct soft_datagram *d)
{
	struct fixture *f = arg;
	struct soft_icrc_flow flow;
	struct soft_packet p;

	soft_icrc_flow_init(&flow, &d->src, &d->dst, d->sport);
	if (soft_packet_decode(d->bytes, d->len, &p) < 0 ||
	    !soft_icrc_check(&flow, d->place, d->bytes, d->len) || f->num_seen == PACKETS_MAX)
		f->wrong++;
	else
		f->seen[f->num_seen++] = p.psn;
	if (f->bytes && f->len + d->len <= KEPT) {
		memcpy(f->bytes + f->len, d->bytes, d->len);
		f->len += d->len;
	}
}

/* All that was sent so far arrives in its order. */
static void assert_arrived(struct fixture *f, unsigned int packets)
{
	struct pollfd fd = {.events = POLLIN};
	int fds[SOFT_LINK_FDS_MAX];

	assert_int_equal(soft_link_fds(f->to, fds), 1);
	fd.fd = fds[0];
	while (f->num_seen < packets && poll(&fd, 1, WAIT_MS) == 1)
		(void)soft_link_receive(f->to, SIZE_MAX, see, f);
	assert_int_equal(f->wrong, 0);
	assert_int_equal(f->num_seen, packets);
	for (unsigned int i = 0; i < packets; i++)
		assert_int_equal(f->seen[i], i);
}

static void sent_by_whom_it_is_given_to(void **state)
{
	struct fixture *f = *state;

	add(f, 2 * TRAIN, MTU);
	assert_int_equal(soft_link_given(f->from), 2 * TRAIN);
	assert_int_equal(soft_link_stats(f->from)->sent_packets, 0);
	assert_false(soft_outbox_sent(f->outbox));
	assert_int_equal(soft_outbox_room(f->outbox), PLACES - 2);
	assert_true(soft_outbox_send(f->outbox));
	assert_true(soft_outbox_send(f->outbox));
	assert_false(soft_outbox_send(f->outbox));
	assert_true(soft_outbox_sent(f->outbox));
	assert_int_equal(soft_link_stats(f->from)->sent_packets, 0);
	soft_link_flush(f->from);
	assert_int_equal(soft_link_stats(f->from)->sent_packets, 2 * TRAIN);
	assert_int_equal(soft_link_stats(f->from)->sent_trains, 2);
	assert_int_equal(soft_link_stats(f->from)->threaded_sends, 2);
	assert_int_equal(soft_outbox_room(f->outbox), PLACES);
	assert_arrived(f, 2 * TRAIN);
}

static void few_bytes_wait_only_for_what_is_before(void **state)
{
	struct fixture *f = *state;

	add(f, 1, 64);
	assert_int_equal(soft_link_stats(f->from)->sent_packets, 1);
	assert_arrived(f, 1);
	add(f, TRAIN, MTU);
	add(f, 1, 64);
	assert_int_equal(soft_link_stats(f->from)->sent_packets, 1);
	while (soft_outbox_send(f->outbox))
		;
	assert_arrived(f, TRAIN + 2);
	soft_link_flush(f->from);
	assert_int_equal(soft_link_stats(f->from)->sent_packets, TRAIN + 2);
	add(f, 1, 64);
	assert_int_equal(soft_link_stats(f->from)->sent_packets, TRAIN + 3);
	assert_arrived(f, TRAIN + 3);
}

/* What the kernel refuses is lost, and counted as that, when it is known. */
static void refused(void **state)
{
	struct fixture *f = *state;
	struct soft_sender *s = &f->from->senders[0][f->path.sender];
	int fd = s->fd;

	add(f, TRAIN, MTU);
	s->fd = -1;
	assert_true(soft_outbox_send(f->outbox));
	s->fd = fd;
	assert_int_equal(soft_link_stats(f->from)->send_errors, 0);
	soft_link_flush(f->from);
	assert_int_equal(soft_link_stats(f->from)->send_errors, TRAIN);
	assert_int_equal(soft_link_stats(f->from)->last_send_errno, EBADF);
	assert_int_equal(soft_link_stats(f->from)->sent_packets, 0);
	assert_int_equal(soft_link_stats(f->from)->threaded_sends, 0);
}

static void *send_later(void *arg)
{
	struct fixture *f = arg;

	poll(NULL, 0, 20);
	while (soft_outbox_send(f->outbox))
		;
	return NULL;
}

/* More than fits: who builds waits, so that the order stays. */
static void full(void **state)
{
	struct fixture *f = *state;
	pthread_t later;

	for (unsigned int i = 0; i < PLACES; i++)
		add(f, TRAIN, MTU);
	assert_int_equal(soft_link_room(f->from, NULL), 0);
	assert_null(soft_outbox_next(f->outbox));
	assert_int_equal(pthread_create(&later, NULL, send_later, f), 0);
	add(f, 1, MTU);
	assert_true(soft_outbox_sent(f->outbox));
	pthread_join(later, NULL);
	soft_link_flush(f->from);
	assert_int_equal(soft_link_stats(f->from)->sent_packets, PLACES * TRAIN + 1);
	/* Where root or the limits allow it; else the receiver, who did not read, has lost some. */
	if (soft_link_receive_buffer(f->to) >= 2 * PLACES * TRAIN * MTU)
		assert_arrived(f, PLACES * TRAIN + 1);
}

/* One packet whose payload is read later, if that can be; its mark. */
static uint64_t add_later(struct fixture *f, const struct soft_path *path, const void *bytes,
			  uint32_t len)
{
	struct iovec piece = {(void *)(uintptr_t)bytes, len};
	/* Of a message's last packet any length is right. */
	struct soft_packet p = {.opcode = SOFT_RC |
					  (len == MTU ? SOFT_WRITE_MIDDLE : SOFT_WRITE_LAST),
				.pkey = 0xffff,
				.dest_qp = 1 << SOFT_SLOT_SHIFT,
				.psn = f->next++,
				.payload_bytes = len,
				.stays = true,
				.later = true};

	return soft_link_send(f->from, path, &p, &piece, 1);
}

static uint64_t add_train_later(struct fixture *f, const struct soft_path *path, const void *bytes)
{
	uint64_t mark = 0;

	for (unsigned int i = 0; i < TRAIN; i++)
		mark = add_later(f, path, bytes, MTU);
	assert_int_not_equal(mark, 0);
	soft_link_flush(f->from);
	return mark;
}

/* What leaves is what lay there when it was packed: before that it is not read, and not after. */
static void packed_by_whom_it_is_given_to(void **state)
{
	struct fixture *f = *state;
	uint8_t *mine = calloc(1, MTU);
	uint64_t mark;

	assert_non_null(mine);
	f->bytes = calloc(1, KEPT);
	assert_non_null(f->bytes);
	mark = add_train_later(f, &f->path, mine);
	assert_false(soft_outbox_packed(f->outbox, soft_mark(mark)));
	memset(mine, 0x5a, MTU);
	assert_true(soft_outbox_send(f->outbox));
	assert_true(soft_outbox_packed(f->outbox, soft_mark(mark)));
	soft_link_await_read(f->from, mark);
	memset(mine, 0xff, MTU);
	free(mine);
	assert_arrived(f, TRAIN);
	for (unsigned int i = 0; i < TRAIN; i++)
		for (unsigned int at = 0; at < MTU; at++)
			assert_int_equal(f->bytes[i * (HEADERS + MTU + 4) + HEADERS + at], 0x5a);
}

/* All lengths of pads, long trains and short, payloads that are read later beside those that are
 * not: the same bytes as of a link without an outbox. */
static void the_same_bytes(void **state)
{
	static const uint32_t lasts[] = {MTU, 1, 511, 512, 513, 514, 515, 1024, MTU - 1};
	struct fixture *f = *state;
	uint8_t *first;
	size_t len;

	for (size_t i = 0; i < MTU; i++)
		payload[i] = (uint8_t)(i * 7 + i / 251);
	f->bytes = calloc(1, KEPT);
	first = malloc(KEPT);
	assert_true(f->bytes && first);
	for (int way = 0; way < 2; way++) {
		f->len = f->next = f->num_seen = 0;
		soft_link_set_outboxes(f->from, &f->outbox, way == 0);
		for (size_t i = 0; i < sizeof(lasts) / sizeof(*lasts); i++) {
			for (size_t j = 0; j < i; j++)
				assert_true(add_later(f, &f->path, payload + j, MTU - 4 * 4) ||
					    way == 1);
			add(f, 0, 0);
			for (size_t j = 0; j < i; j++)
				assert_true(add_later(f, &f->path, payload, MTU) || way == 1);
			(void)add_later(f, &f->path, payload, lasts[i]);
			add(f, i % 3 == 0, MTU);
			soft_link_flush(f->from);
			while (soft_outbox_send(f->outbox))
				;
		}
		soft_link_flush(f->from);
		assert_arrived(f, f->next);
		if (way == 0) {
			memcpy(first, f->bytes, f->len);
			len = f->len;
		}
	}
	assert_int_equal(f->len, len);
	assert_memory_equal(f->bytes, first, len);
	free(first);
}

/* Who lets go before the train is whole, or when it went by nobody, waits for nothing. */
static void packed_where_it_is_built(void **state)
{
	struct fixture *f = *state;
	uint8_t *mine = malloc(MTU);
	uint64_t mark, next;

	assert_non_null(mine);
	f->bytes = calloc(1, KEPT);
	assert_non_null(f->bytes);
	memset(mine, 1, MTU);
	mark = add_later(f, &f->path, mine, MTU);
	assert_int_not_equal(mark, 0);
	soft_link_await_read(f->from, mark);
	memset(mine, 2, MTU);
	next = add_later(f, &f->path, mine, MTU);
	soft_link_await_all_read(f->from);
	memset(mine, 3, MTU);
	/* Few bytes: they leave at once. */
	soft_link_flush(f->from);
	assert_int_equal(soft_link_stats(f->from)->sent_packets, 2);
	assert_true(soft_outbox_packed(f->outbox, soft_mark(next)));
	free(mine);
	assert_arrived(f, 2);
	assert_int_equal(f->bytes[HEADERS], 1);
	assert_int_equal(f->bytes[HEADERS + MTU + 4 + HEADERS], 2);
	/* Nor are they taken for those that follow. */
	mark = add_train_later(f, &f->path, payload);
	assert_true(mark > next);
	assert_false(soft_outbox_packed(f->outbox, soft_mark(mark)));
	soft_link_await_read(f->from, next);
	assert_true(soft_outbox_send(f->outbox));
	assert_arrived(f, 2 + TRAIN);
}

/* What does not stay, what has several pieces, few bytes, and what an ill wire looks at. */
static void read_at_once(void **state)
{
	static const struct soft_fault_plan none;
	struct fixture *f = *state;
	struct soft_packet p = {.opcode = SOFT_RC | SOFT_WRITE_MIDDLE,
				.pkey = 0xffff,
				.dest_qp = 1 << SOFT_SLOT_SHIFT,
				.payload_bytes = MTU,
				.stays = true};
	struct iovec pieces[] = {{payload, MTU / 2}, {payload, MTU / 2}};
	struct iovec whole = {payload, MTU};
	struct soft_fault fault;

	assert_int_equal(soft_link_send(f->from, &f->path, &p, &whole, 1), 0);
	p.later = true;
	assert_int_equal(soft_link_send(f->from, &f->path, &p, pieces, 2), 0);
	assert_int_equal(add_later(f, &f->path, payload, 64), 0);
	soft_link_flush(f->from);
	soft_fault_init(&fault, &none);
	soft_fault_set_port(&fault, true);
	assert_int_equal(soft_link_set_fault(f->from, &fault), 0);
	assert_int_equal(add_later(f, &f->path, payload, MTU), 0);
	soft_fault_set_port(&fault, false);
	assert_int_equal(soft_link_set_fault(f->from, &fault), 0);
}

static void *pack_later(void *arg)
{
	struct fixture *f = arg;

	poll(NULL, 0, 20);
	while (soft_outbox_send(f->outbox) || soft_outbox_send(f->second))
		;
	return NULL;
}

/* A mark is of one packet, not of those behind it; of all there is another call. */
static void waited_for(void **state)
{
	struct fixture *f = *state;
	pthread_t later;
	uint64_t marks[3];

	for (int i = 0; i < 3; i++)
		marks[i] = add_train_later(f, &f->path, payload);
	assert_true(soft_outbox_send(f->outbox));
	soft_link_await_read(f->from, marks[0]);
	assert_true(soft_outbox_packed(f->outbox, soft_mark(marks[0])));
	assert_false(soft_outbox_packed(f->outbox, soft_mark(marks[1])));
	assert_int_equal(pthread_create(&later, NULL, pack_later, f), 0);
	soft_link_await_read(f->from, marks[1]);
	assert_true(soft_outbox_packed(f->outbox, soft_mark(marks[1])));
	soft_link_await_all_read(f->from);
	assert_true(soft_outbox_packed(f->outbox, soft_mark(marks[2])));
	pthread_join(later, NULL);
	assert_arrived(f, 3 * TRAIN);
}

/* The roomier of two outboxes gets a sender's trains, and what it sends behind them; one that is
 * full stops nobody else. Who has nothing there may go to the other. */
static void two(void **state)
{
	struct fixture *f = *state;
	struct soft_outbox *both[] = {f->outbox, f->second};
	struct soft_gid lo = net_ipv4(127, 0, 0, 1);
	struct soft_path paths[3] = {0};
	uint64_t marks[2];
	unsigned int have = 0;

	for (uint32_t qpn = 1; have < 3; qpn++) {
		assert_int_equal(soft_link_path(f->from, &lo, &lo, qpn, &paths[have]), 0);
		have += !(have > 0 && paths[have].sender == paths[0].sender) &&
			!(have > 1 && paths[have].sender == paths[1].sender);
	}
	soft_link_set_outboxes(f->from, both, 2);
	marks[0] = add_train_later(f, &paths[0], payload);
	marks[1] = add_train_later(f, &paths[1], payload);
	/* Few bytes go behind what their own sender has, and past the other's. */
	(void)add_later(f, &paths[1], payload, MTU - 4);
	soft_link_flush(f->from);
	assert_int_equal(soft_outbox_room(f->outbox), PLACES - 1);
	assert_int_equal(soft_outbox_room(f->second), PLACES - 2);
	assert_true(soft_outbox_send(f->outbox));
	assert_true(soft_outbox_packed(f->outbox, soft_mark(marks[0])));
	assert_false(soft_outbox_packed(f->second, soft_mark(marks[1])));
	soft_link_await_read(f->from, marks[0]);
	while (soft_outbox_send(f->second))
		;
	soft_link_await_read(f->from, marks[1]);
	assert_arrived(f, 2 * TRAIN + 1);
	for (unsigned int i = 0; i < PLACES; i++)
		(void)add_train_later(f, &paths[1], payload);
	soft_link_flush(f->from);
	assert_int_equal(soft_link_room(f->from, &paths[1]), 0);
	assert_int_equal(soft_link_room(f->from, &paths[0]), PLACES);
	assert_int_equal(soft_link_room(f->from, NULL), 0);
	soft_link_await_read(f->from, marks[0]);
	while (soft_outbox_send(f->second))
		;
	soft_link_await_all_read(f->from);

	(void)add_train_later(f, &paths[0], payload);
	for (unsigned int i = 0; i < 3; i++)
		(void)add_train_later(f, &paths[2], payload);
	(void)add_train_later(f, &paths[0], payload);
	soft_link_flush(f->from);
	assert_int_equal(soft_outbox_room(f->outbox), PLACES - 2);
	assert_int_equal(soft_outbox_room(f->second), PLACES - 3);
	(void)add_train_later(f, &paths[1], payload);
	soft_link_flush(f->from);
	assert_int_equal(soft_outbox_room(f->outbox), PLACES - 3);
	while (soft_outbox_send(f->outbox) || soft_outbox_send(f->second))
		;
	soft_link_await_all_read(f->from);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sent_by_whom_it_is_given_to, start, stop),
		cmocka_unit_test_setup_teardown(few_bytes_wait_only_for_what_is_before, start,
						stop),
		cmocka_unit_test_setup_teardown(refused, start, stop),
		cmocka_unit_test_setup_teardown(full, start, stop),
		cmocka_unit_test_setup_teardown(packed_by_whom_it_is_given_to, start, stop),
		cmocka_unit_test_setup_teardown(the_same_bytes, start, stop),
		cmocka_unit_test_setup_teardown(packed_where_it_is_built, start, stop),
		cmocka_unit_test_setup_teardown(read_at_once, start, stop),
		cmocka_unit_test_setup_teardown(waited_for, start, stop),
		cmocka_unit_test_setup_teardown(two, start, stop),
	};

	if (net_own() < 0) {
		(void)fprintf(stderr, "no network namespace may be made here\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
