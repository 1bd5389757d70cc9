/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An outbox without a thread: the test sends when it says. Over the loopback of a network namespace
 * of its own: what arrives, in which order, and what is counted when.
 */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "soft/link/outbox.h"
#include "soft/link/parts.h"
#include "soft_net.h"

enum { MTU = 4096, TRAIN = 15, PLACES = 16, PACKETS_MAX = 1024, WAIT_MS = 5000 };

struct fixture {
	struct soft_link *from, *to;
	struct soft_outbox *outbox;
	struct soft_path path;
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
	soft_link_set_outbox(f->from, f->outbox);
	*state = f;
	return 0;
}

static int stop(void **state)
{
	struct fixture *f = *state;

	while (soft_outbox_send(f->outbox))
		;
	soft_link_set_outbox(f->from, NULL);
	soft_outbox_free(f->outbox);
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
	assert_int_equal(soft_link_room(f->from), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sent_by_whom_it_is_given_to, start, stop),
		cmocka_unit_test_setup_teardown(few_bytes_wait_only_for_what_is_before, start,
						stop),
		cmocka_unit_test_setup_teardown(refused, start, stop),
		cmocka_unit_test_setup_teardown(full, start, stop),
	};

	if (net_own() < 0) {
		(void)fprintf(stderr, "no network namespace may be made here\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
