/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timed loops on a device of memory that keeps a device's rules: full queues refuse, and only
 * what asks for it completes. Every request is looked at.
 */
#include "unit.h"

#include <errno.h>

#include "../fake/null.h"
#include "bench/traffic.h"

enum { SLOTS = 5, LOG = 4096 };

static struct null_message messages[LOG];
static struct pp_slot slots[SLOTS];
static struct pp_endpoint endpoint;

static void open_shape(unsigned int qps, unsigned int depth)
{
	struct pp_endpoint_options o = {
		.device = "null0", .gid_index = -1, .qps = qps, .depth = depth};
	const struct pp_address peer = {.qpn = 1, .mtu = 4096, .rd_atomic = 4, .ethernet = true};
	struct pp_error err;

	null_reset();
	null.log = messages;
	null.n_log = LOG;
	if (pp_endpoint_open(null_verbs(), &o, &endpoint, &err))
		fail_msg("%s", err.text);
	for (unsigned int q = 0; q < qps; q++)
		assert_int_equal(pp_endpoint_connect(&endpoint, q, &peer, &err), 0);
	for (unsigned int i = 0; i < SLOTS; i++)
		slots[i] = (struct pp_slot){0x1000 + i, 0x9000 + i, 10 + i, 20 + i};
}

static void close_shape(void)
{
	assert_int_equal(null.overflows, 0);
	pp_endpoint_close(&endpoint);
	assert_int_equal(null.live, 0);
}

static struct pp_traffic traffic(enum pp_operation op, uint64_t n)
{
	return (struct pp_traffic){.endpoint = &endpoint,
				   .slots = slots,
				   .n_slots = SLOTS,
				   .op = op,
				   .size = 4096,
				   .messages = n};
}

/* Each queue pair's messages in order, on their slots, asking for few completions. */
static void check_log(uint64_t n, unsigned int qps, enum ibv_wr_opcode opcode)
{
	uint64_t next[NULL_QPS] = {0};

	assert_int_equal(null.sends, n);
	for (uint64_t i = 0; i < n; i++) {
		const struct null_message *m = &messages[i];
		uint64_t number = next[m->qp]++ * qps + m->qp;

		assert_true(number < n);
		assert_int_equal(m->opcode, opcode);
		assert_int_equal(m->length, 4096);
		assert_int_equal(m->local, 0x1000 + number % SLOTS);
		assert_int_equal(m->remote, 0x9000 + number % SLOTS);
		assert_int_equal(m->lkey, 10 + number % SLOTS);
		assert_int_equal(m->rkey, 20 + number % SLOTS);
		assert_int_equal(m->flags & ~(unsigned int)IBV_SEND_SIGNALED, 0);
	}
	for (unsigned int q = 0; q < qps; q++)
		assert_int_equal(next[q], n / qps + (q < n % qps));
}

static void test_write(void **state)
{
	static const unsigned int shapes[][3] = {{1, 128, 1000}, {3, 7, 1000}, {1, 1, 50},
						 {64, 4, 1000},	 {5, 16, 3},   {2, 128, 1}};
	struct pp_traffic_done done;
	struct pp_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		uint64_t n = shapes[i][2];
		struct pp_traffic t;

		open_shape(shapes[i][0], shapes[i][1]);
		t = traffic(PP_WRITE, n);
		assert_int_equal(pp_traffic_send(&t, &done, &err), 0);
		assert_int_equal(done.messages, n);
		assert_int_equal(done.bytes, n * 4096);
		assert_true(done.took > 0 && done.cpu > 0);
		assert_int_equal(done.failure.status, 0);
		assert_null(done.latency);
		check_log(n, shapes[i][0], IBV_WR_RDMA_WRITE);
		close_shape();
	}
}

/* Few completions, few calls: 1000 messages at a depth of 128. */
static void test_few_calls(void **state)
{
	struct pp_traffic_done done;
	struct pp_traffic t;
	struct pp_error err;

	(void)state;
	open_shape(1, 128);
	t = traffic(PP_WRITE, 1600);
	assert_int_equal(pp_traffic_send(&t, &done, &err), 0);
	assert_int_equal(null.signalled, 100);
	assert_int_equal(null.posts, 100);
	close_shape();
	/* A message of 1 MiB asks for its own. */
	open_shape(1, 128);
	t = traffic(PP_WRITE, 100);
	t.size = 1 << 20;
	assert_int_equal(pp_traffic_send(&t, &done, &err), 0);
	assert_int_equal(null.signalled, 100);
	close_shape();
}

static void test_read(void **state)
{
	struct pp_traffic_done done;
	struct pp_traffic t;
	struct pp_error err;

	(void)state;
	open_shape(2, 64);
	t = traffic(PP_READ, 333);
	t.by_processor = true;
	t.size = 4096;
	assert_int_equal(pp_traffic_send(&t, &done, &err), 0);
	check_log(333, 2, IBV_WR_RDMA_READ);
	/* A peer that takes none. */
	endpoint.rd_atomic = 0;
	assert_int_equal(pp_traffic_send(&t, &done, &err), -EOPNOTSUPP);
	close_shape();
}

static void test_inline(void **state)
{
	struct pp_traffic_done done;
	struct pp_traffic t;
	struct pp_error err;

	(void)state;
	open_shape(1, 16);
	t = traffic(PP_WRITE, 1);
	t.size = 220;
	for (int by_processor = 0; by_processor < 2; by_processor++) {
		null.sends = 0;
		t.by_processor = by_processor;
		assert_int_equal(pp_traffic_send(&t, &done, &err), 0);
		assert_int_equal(messages[0].flags & IBV_SEND_INLINE,
				 by_processor ? IBV_SEND_INLINE : 0);
	}
	t.size = 221;
	null.sends = 0;
	assert_int_equal(pp_traffic_send(&t, &done, &err), 0);
	assert_int_equal(messages[0].flags & IBV_SEND_INLINE, 0);
	/* Nothing at all needs no memory: to some devices a length of 0 is 2 GiB. */
	t.size = 0;
	null.sends = 0;
	assert_int_equal(pp_traffic_send(&t, &done, &err), 0);
	assert_int_equal(messages[0].local, 0);
	close_shape();
}

static void test_by_time(void **state)
{
	struct pp_traffic_done done;
	struct pp_traffic t;
	struct pp_error err;

	(void)state;
	open_shape(3, 32);
	t = traffic(PP_WRITE, 0);
	t.duration = 20 * PP_MILLISECOND;
	assert_int_equal(pp_traffic_send(&t, &done, &err), 0);
	assert_true(done.took >= t.duration);
	assert_int_equal(done.messages, null.sends);
	/* All queue pairs stopped at the same number: the first so many messages were sent. */
	assert_int_equal(done.messages % 3, 0);
	close_shape();
}

static void test_bad_requests(void **state)
{
	struct pp_traffic_done done;
	struct pp_traffic t;
	struct pp_error err;

	(void)state;
	open_shape(1, 16);
	t = traffic(PP_WRITE, 0);
	assert_int_equal(pp_traffic_send(&t, &done, &err), -EINVAL);
	t = traffic(PP_SEND, 0);
	t.duration = PP_SECOND;
	assert_int_equal(pp_traffic_send(&t, &done, &err), -EINVAL);
	t = traffic(PP_WRITE, 1);
	t.depth = 17;
	assert_int_equal(pp_traffic_send(&t, &done, &err), -EINVAL);
	t.depth = 0;
	t.n_slots = 0;
	assert_int_equal(pp_traffic_send(&t, &done, &err), -EINVAL);
	t = traffic(PP_WRITE, 1);
	endpoint.port.max_msg_sz = 4095;
	assert_int_equal(pp_traffic_send(&t, &done, &err), -EMSGSIZE);
	t = traffic(PP_WRITE, 1);
	t.size = 8;
	assert_int_equal(pp_traffic_receive_ready(&t, &err), -EINVAL);
	assert_int_equal(pp_traffic_receive(&t, &done, &err), -EINVAL);
	assert_int_equal(pp_traffic_exchange(&t, &done, &err), -EINVAL);
	t.messages = 0;
	t.duration = 1;
	assert_int_equal(pp_traffic_ping(&t, true, &done, &err), -EINVAL);
	assert_int_equal(null.sends, 0);
	close_shape();
}

/* ── what goes wrong ── */

static void test_error_completion(void **state)
{
	struct pp_traffic_done done;
	struct pp_traffic t;
	struct pp_error err;

	(void)state;
	for (uint64_t at = 1; at < 70; at++) {
		uint64_t number;

		open_shape(2, 32);
		null.error_at = at;
		null.status = IBV_WC_REM_ACCESS_ERR;
		t = traffic(PP_WRITE, 100);
		assert_int_equal(pp_traffic_send(&t, &done, &err), -EIO);
		number = (messages[at - 1].id & 0xffffff) * 2 + messages[at - 1].qp;
		assert_int_equal(done.failure.status, 10);
		assert_int_equal(done.failure.vendor, 0x51);
		assert_int_equal(done.failure.qp, messages[at - 1].qp);
		assert_int_equal(done.failure.message, number);
		assert_true(done.messages < 100);
		assert_non_null(strstr(err.text, "REM_ACCESS_ERR (10), vendor 0x51"));
		/* And works again after a reset. */
		null.error_at = 0;
		null.sends = 0;
		assert_int_equal(pp_endpoint_reset(&endpoint, 0, &err), 0);
		assert_int_equal(pp_endpoint_reset(&endpoint, 1, &err), 0);
		assert_int_equal(pp_traffic_send(&t, &done, &err), 0);
		check_log(100, 2, IBV_WR_RDMA_WRITE);
		close_shape();
	}
}

static void test_refused_post(void **state)
{
	struct pp_traffic_done done;
	struct pp_traffic t;
	struct pp_error err;

	(void)state;
	open_shape(1, 32);
	null.refuse_at = 3;
	t = traffic(PP_WRITE, 100);
	assert_int_equal(pp_traffic_send(&t, &done, &err), -EINVAL);
	assert_non_null(strstr(err.text, "ibv_post_send"));
	assert_non_null(strstr(err.text, "EINVAL"));
	assert_int_equal(done.failure.status, 0);
	close_shape();
}

static void test_silence(void **state)
{
	struct pp_traffic_done done;
	struct pp_traffic t;
	struct pp_error err;

	(void)state;
	open_shape(1, 32);
	null.mute = true;
	t = traffic(PP_WRITE, 100);
	t.silence = 20 * PP_MILLISECOND;
	assert_int_equal(pp_traffic_send(&t, &done, &err), -ETIMEDOUT);
	assert_int_equal(done.messages, 0);
	assert_true(done.took >= t.silence);
	assert_non_null(strstr(err.text, "32 writes of 4096 bytes outstanding"));
	assert_int_equal(null.sends, 32);
	close_shape();
}

static unsigned int asked;

static bool third_time(void)
{
	return ++asked == 3;
}

static void test_stopped(void **state)
{
	struct pp_traffic_done done;
	struct pp_traffic t;
	struct pp_error err;

	(void)state;
	open_shape(1, 32);
	t = traffic(PP_WRITE, 0);
	t.duration = 3600 * PP_SECOND;
	t.stopped = third_time;
	asked = 0;
	assert_int_equal(pp_traffic_send(&t, &done, &err), -EINTR);
	assert_int_equal(asked, 3);
	assert_true(done.messages > 0);
	close_shape();
}

/* ── SEND ── */

/* The other end: takes what is sent, and gives a credit only when the sender waits for one. */
static struct {
	uint64_t sent[NULL_QPS], credits[NULL_QPS];
	uint64_t grant, first; /* receives that a credit stands for; that are there at first */
	unsigned int qps;
	uint64_t most_ahead;
} receiver;

static void receiver_takes(unsigned int qp, const struct ibv_send_wr *wr)
{
	uint64_t may = receiver.first + receiver.credits[qp] * receiver.grant;

	assert_int_equal(wr->opcode, IBV_WR_SEND);
	receiver.sent[qp]++;
	/* A receiver is ready for each. */
	assert_true(receiver.sent[qp] <= may);
}

static void receiver_grants(void)
{
	for (unsigned int q = 0; q < receiver.qps; q++) {
		if (receiver.sent[q] < (receiver.credits[q] + 1) * receiver.grant ||
		    !null_receives(q))
			continue;
		receiver.credits[q]++;
		assert_true(null_deliver(q, 0));
	}
}

static void test_send_credits(void **state)
{
	static const unsigned int depths[] = {1, 2, 3, 8, 100};
	struct pp_traffic_done done;
	struct pp_traffic t;
	struct pp_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		for (uint64_t n = 1; n < 1000; n += 111) {
			open_shape(2, depths[i]);
			memset(&receiver, 0, sizeof(receiver));
			receiver.qps = 2;
			receiver.first = 2 * (uint64_t)depths[i];
			receiver.grant = (depths[i] + 1) / 2;
			null.on_send = receiver_takes;
			null.on_empty = receiver_grants;
			t = traffic(PP_SEND, n);
			assert_int_equal(pp_traffic_send(&t, &done, &err), 0);
			check_log(n, 2, IBV_WR_SEND);
			/* No receive for a credit is left behind. */
			assert_int_equal(null_receives(0) + null_receives(1), 0);
			close_shape();
		}
	}
}

/* The other end: sends whenever a receive is promised to it, as fast as it may. */
static struct {
	uint64_t sent[NULL_QPS], all[NULL_QPS], credits[NULL_QPS];
	uint64_t grant, first;
	unsigned int qps;
	uint32_t length;
} sender;

static void sender_is_granted(unsigned int qp, const struct ibv_send_wr *wr)
{
	assert_int_equal(wr->opcode, IBV_WR_SEND);
	assert_int_equal(wr->num_sge, 0);
	sender.credits[qp]++;
}

static void sender_sends(void)
{
	for (unsigned int q = 0; q < sender.qps; q++) {
		while (sender.sent[q] < sender.all[q] &&
		       sender.sent[q] < sender.first + sender.credits[q] * sender.grant) {
			/* What was promised is there. */
			assert_true(null_deliver(q, sender.length));
			sender.sent[q]++;
		}
	}
}

static void sender_begins(unsigned int depth, uint64_t n)
{
	memset(&sender, 0, sizeof(sender));
	sender.qps = 2;
	sender.first = 2 * (uint64_t)depth;
	sender.grant = (depth + 1) / 2;
	sender.length = 4096;
	sender.all[0] = (n + 1) / 2;
	sender.all[1] = n / 2;
	null.on_send = sender_is_granted;
	null.on_empty = sender_sends;
}

static void test_receive(void **state)
{
	static const unsigned int depths[] = {1, 2, 3, 8, 100};
	struct pp_traffic_done done;
	struct pp_traffic t;
	struct pp_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		for (uint64_t n = 1; n < 1000; n += 111) {
			open_shape(2, depths[i]);
			sender_begins(depths[i], n);
			t = traffic(PP_SEND, n);
			assert_int_equal(pp_traffic_receive_ready(&t, &err), 0);
			assert_int_equal(pp_traffic_receive(&t, &done, &err), 0);
			assert_int_equal(done.messages, n);
			assert_int_equal(null.receives, n);
			assert_int_equal(null_receives(0) + null_receives(1), 0);
			close_shape();
		}
	}
}

static void test_receive_of_another_size(void **state)
{
	struct pp_traffic_done done;
	struct pp_traffic t;
	struct pp_error err;

	(void)state;
	open_shape(2, 8);
	sender_begins(8, 20);
	sender.length = 4095;
	t = traffic(PP_SEND, 20);
	assert_int_equal(pp_traffic_receive_ready(&t, &err), 0);
	assert_int_equal(pp_traffic_receive(&t, &done, &err), -EPROTO);
	assert_non_null(strstr(err.text, "4095 bytes, not 4096"));
	close_shape();
}

/* ── ping-pong ── */

static void echo(unsigned int qp, const struct ibv_send_wr *wr)
{
	assert_true(null_deliver(qp, wr->num_sge ? wr->sg_list->length : 0));
}

static void test_ping(void **state)
{
	static const struct {
		enum pp_operation op;
		enum ibv_wr_opcode opcode;
	} ops[] = {{PP_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM},
		   {PP_SEND, IBV_WR_SEND},
		   {PP_READ, IBV_WR_RDMA_READ}};
	struct pp_traffic_done done;
	struct pp_traffic t;
	struct pp_error err;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		for (unsigned int depth = 1; depth < 40; depth += 6) {
			open_shape(3, depth);
			null.on_send = ops[i].op == PP_READ ? NULL : echo;
			t = traffic(ops[i].op, 500);
			assert_int_equal(pp_traffic_ping_ready(&t, &err), 0);
			assert_int_equal(pp_traffic_ping(&t, true, &done, &err), 0);
			assert_int_equal(done.messages, 500);
			assert_int_equal(done.n_latency, 500);
			check_log(500, 3, ops[i].opcode);
			assert_int_equal(null_receives(0) + null_receives(1) + null_receives(2), 0);
			pp_traffic_done_free(&done);
			close_shape();
		}
	}
	/* The other end of a READ has nothing to do. */
	open_shape(1, 8);
	t = traffic(PP_READ, 500);
	assert_int_equal(pp_traffic_ping(&t, false, &done, &err), 0);
	assert_int_equal(null.sends, 0);
	close_shape();
}

static void test_ping_fails(void **state)
{
	struct pp_traffic_done done;
	struct pp_traffic t;
	struct pp_error err;

	(void)state;
	open_shape(1, 8);
	t = traffic(PP_WRITE, 500);
	t.silence = 10 * PP_MILLISECOND;
	assert_int_equal(pp_traffic_ping_ready(&t, &err), 0);
	assert_int_equal(pp_traffic_ping(&t, true, &done, &err), -ETIMEDOUT);
	pp_traffic_done_free(&done);
	close_shape();
	open_shape(1, 8);
	t = traffic(PP_READ, 500);
	null.error_at = 77;
	null.status = IBV_WC_RETRY_EXC_ERR;
	assert_int_equal(pp_traffic_ping(&t, true, &done, &err), -EIO);
	assert_int_equal(done.failure.message, 76);
	assert_int_equal(done.n_latency, 76);
	pp_traffic_done_free(&done);
	close_shape();
}

static void test_names(void **state)
{
	enum pp_operation op;

	(void)state;
	for (int i = 0; i < PP_OPERATIONS; i++) {
		assert_int_equal(pp_operation_parse(pp_operation_name((enum pp_operation)i), &op),
				 0);
		assert_int_equal(op, i);
	}
	assert_int_equal(pp_operation_parse("atomic", &op), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_few_calls),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_by_time),
		cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_error_completion),
		cmocka_unit_test(test_refused_post),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_send_credits),
		cmocka_unit_test(test_receive),
		cmocka_unit_test(test_receive_of_another_size),
		cmocka_unit_test(test_ping),
		cmocka_unit_test(test_ping_fails),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests_name("traffic", tests, NULL, NULL);
}
