/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues of work requests: order, limits, counts that wrap, and the memory of an idle queue pair.
 */
#include "unit.h"

#include <errno.h>

#include "soft/qp/qp.h"

#include "base/banned.h"

static void maxima(void **state)
{
	struct soft_send_queue sq;
	struct soft_recv_queue rq;

	(void)state;
	assert_int_equal(soft_send_queue_init(&sq, SOFT_WR_DEPTH_MAX + 1, 1, 0, false), -EINVAL);
	assert_int_equal(soft_send_queue_init(&sq, UINT32_MAX, 1, 0, false), -EINVAL);
	assert_int_equal(soft_send_queue_init(&sq, 1, SOFT_WR_SGES_MAX + 1, 0, false), -EINVAL);
	assert_int_equal(soft_send_queue_init(&sq, 1, 1, SOFT_WR_INLINE_MAX + 1, false), -EINVAL);
	assert_int_equal(soft_recv_queue_init(&rq, SOFT_WR_DEPTH_MAX + 1, 1), -EINVAL);
	assert_int_equal(soft_recv_queue_init(&rq, 1, UINT32_MAX), -EINVAL);
	/* Nothing asked for: always full, never a crash. */
	assert_int_equal(soft_send_queue_init(&sq, 0, 0, 0, false), 0);
	assert_null(soft_send_queue_next(&sq));
	soft_send_queue_done(&sq);
	assert_int_equal(soft_recv_queue_init(&rq, 0, 0), 0);
	assert_int_equal(soft_recv_queue_post(&rq, 1, NULL, 0), -ENOMEM);
	assert_null(soft_recv_queue_head(&rq));
	soft_recv_queue_done(&rq);
}

/* ibv_modify_srq(): what is posted stays, in order, or nothing changes. */
static void resized(void **state)
{
	struct soft_sge sge = {7, 8, 9};
	struct soft_recv_queue q;
	uint32_t granted;

	(void)state;
	assert_int_equal(soft_recv_queue_init(&q, 4, 1), 0);
	q.posted = q.taken = UINT32_MAX - 1;
	for (uint64_t i = 0; i < q.depth; i++)
		assert_int_equal(soft_recv_queue_post(&q, i, &sge, 1), 0);
	assert_int_equal(soft_recv_queue_post(&q, 99, &sge, 1), -ENOMEM);
	assert_int_equal(soft_recv_queue_resize(&q, 2), -EINVAL);
	assert_int_equal(soft_recv_queue_resize(&q, SOFT_WR_DEPTH_MAX + 1), -EINVAL);
	granted = q.depth;
	assert_int_equal(soft_recv_queue_resize(&q, 100), 0);
	assert_true(q.depth >= 100);
	for (uint64_t i = granted; i < 100; i++)
		assert_int_equal(soft_recv_queue_post(&q, i, &sge, 1), 0);
	for (uint64_t i = 0; i < 100; i++) {
		const struct soft_recv_wr *wr = soft_recv_queue_head(&q);

		assert_non_null(wr);
		assert_int_equal(wr->id, i);
		assert_int_equal(wr->length, 8);
		q.taken++;
	}
	assert_int_equal(soft_recv_queue_resize(&q, 1), 0);
	soft_recv_queue_done(&q);
}

static void send_queue(void **state)
{
	struct soft_send_queue q;

	(void)state;
	assert_int_equal(soft_send_queue_init(&q, 5, 2, 60, true), 0);
	assert_true(q.depth >= 5 && (q.depth & (q.depth - 1)) == 0);
	assert_true(q.max_sge >= 2 && q.max_inline >= 60 && q.signal_all);
	q.posted = q.started = q.retired = UINT32_MAX - 3;
	for (unsigned int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < q.depth; i++) {
			struct soft_send_wr *wr = soft_send_queue_next(&q);

			assert_non_null(wr);
			wr->id = round * 100 + i;
			memset(soft_send_wr_inline(wr), (int)i, q.max_inline);
			q.posted++;
		}
		assert_null(soft_send_queue_next(&q));
		for (uint32_t i = 0; i < q.depth; i++) {
			struct soft_send_wr *wr = soft_send_queue_at(&q, q.retired);

			assert_int_equal(wr->id, round * 100 + i);
			assert_int_equal(soft_send_wr_inline(wr)[q.max_inline - 1], i);
			q.retired++;
		}
	}
	soft_send_queue_done(&q);
	soft_send_queue_done(&q);
}

static unsigned int below;

static void on_below(struct soft_recv_queue *q)
{
	(void)q;
	below++;
}

static void recv_queue(void **state)
{
	const struct soft_sge sges[3] = {{1, 10, 1}, {2, 20, 2}, {3, UINT32_MAX, 3}};
	struct soft_recv_queue q;
	struct soft_recv_wr *wr;

	(void)state;
	assert_int_equal(soft_recv_queue_init(&q, 4, 3), 0);
	wr = malloc(soft_recv_queue_wr_bytes(&q));
	assert_non_null(wr);
	q.posted = q.taken = UINT32_MAX;
	assert_int_equal(soft_recv_queue_post(&q, 1, sges, 4), -EINVAL);
	assert_false(soft_recv_queue_take(&q, wr));
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(soft_recv_queue_post(&q, i, sges, (uint32_t)i), 0);
	assert_int_equal(soft_recv_queue_post(&q, 9, sges, 1), -ENOMEM);
	for (uint64_t i = 0; i < 4; i++) {
		/* 10, 10 + 20, and a sum that does not fit */
		const uint32_t lengths[4] = {0, 10, 30, UINT32_MAX};

		assert_int_equal(soft_recv_queue_head(&q)->id, i);
		assert_true(soft_recv_queue_take(&q, wr));
		assert_int_equal(wr->id, i);
		assert_int_equal(wr->num_sge, i);
		assert_int_equal(wr->length, lengths[i]);
		if (i > 0)
			assert_memory_equal(soft_recv_wr_sges(wr), sges, i * sizeof(sges[0]));
	}
	assert_null(soft_recv_queue_head(&q));

	/* Shared queues: one event when fewer than the limit are left. */
	q.below_limit = on_below;
	q.limit = 2;
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(soft_recv_queue_post(&q, i, NULL, 0), 0);
	assert_true(soft_recv_queue_take(&q, wr) && soft_recv_queue_take(&q, wr));
	assert_int_equal(below, 0);
	assert_true(soft_recv_queue_take(&q, wr) && soft_recv_queue_take(&q, wr));
	assert_int_equal(below, 1);
	free(wr);
	soft_recv_queue_done(&q);
}

/* What clients ask for: NCCL 2.28 net_ib, perftest 4.5 ib_write_bw and ib_send_bw, UCX 1.13 rc. */
static void memory_of_a_queue_pair(void **state)
{
	static const struct {
		const char *who;
		uint32_t send, recv, sges, inlined;
	} clients[] = {
		{"nccl", 512, 256, 1, 0},
		{"perftest write", 128, 1, 1, 0},
		{"perftest send", 128, 512, 1, 0},
		{"ibv_rc_pingpong", 1, 500, 1, 0},
		{"ucx", 256, 1, 5, 64},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
		struct soft_send_queue sq;
		struct soft_recv_queue rq;
		size_t bytes;

		assert_int_equal(soft_send_queue_init(&sq, clients[i].send, clients[i].sges,
						      clients[i].inlined, false),
				 0);
		assert_int_equal(soft_recv_queue_init(&rq, clients[i].recv, clients[i].sges), 0);
		bytes = (size_t)sq.depth * sq.stride + (size_t)rq.depth * rq.stride +
			sizeof(struct soft_qp);
		if (bytes > 64 * 1024)
			fail_msg("%s: %zu bytes", clients[i].who, bytes);
		soft_send_queue_done(&sq);
		soft_recv_queue_done(&rq);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maxima),
		cmocka_unit_test(send_queue),
		cmocka_unit_test(resized),
		cmocka_unit_test(recv_queue),
		cmocka_unit_test(memory_of_a_queue_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
