/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is moved by copies, whose end is in the test's hand: what must wait for them, what
 * must not, and what becomes of those that fail. And the staging they go through.
 */
#include "unit.h"

#include "soft_sim.h"

#include "soft/wire/psn.h"

enum { LEN = 8 << 20, WRITES = SOFT_ACCESS_LOCAL_WRITE | SOFT_ACCESS_REMOTE_WRITE };

struct scene {
	struct soft_sim sim;
	struct soft_sim_node nodes[2];
	struct soft_sim_end ends[2];
	uint8_t *source, *target;
	uint64_t flag, one;
	uint32_t key_source, key_target, key_flag, key_one;
};

static struct scene *open_scene(uint8_t timeout, uint8_t retry_cnt)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct soft_sim_attr attr = soft_sim_attr();

	assert_non_null(s);
	attr.timeout = timeout;
	attr.retry_cnt = retry_cnt;
	attr.mtu = 4096;
	attr.signal_all = true;
	soft_sim_init(&s->sim, 1);
	s->sim.plan = (struct soft_sim_plan){.delay = 2000, .copy_delay = 30000};
	for (unsigned int i = 0; i < 2; i++) {
		soft_sim_node_init(&s->nodes[i], 16 << 20);
		soft_sim_end_init(&s->sim, &s->ends[i], &s->nodes[i], &attr);
	}
	s->source = malloc(LEN);
	s->target = calloc(1, LEN);
	assert_true(s->source && s->target);
	for (size_t i = 0; i < LEN; i++)
		s->source[i] = (uint8_t)(i * 2654435761u >> 11);
	s->one = 1;
	s->key_source = soft_sim_register(&s->nodes[0], s->source, LEN,
					  WRITES | SOFT_ACCESS_REMOTE_READ, soft_sim_pd);
	s->key_one = soft_sim_register(&s->nodes[0], &s->one, 8, 0, soft_sim_pd);
	s->key_target = soft_sim_register(
		&s->nodes[1], s->target, LEN,
		WRITES | SOFT_ACCESS_REMOTE_READ | SOFT_ACCESS_REMOTE_ATOMIC, soft_sim_pd);
	s->key_flag = soft_sim_register(&s->nodes[1], &s->flag, 8, WRITES, soft_sim_pd);
	return s;
}

static void connect(struct scene *s, bool far_source, bool far_target)
{
	if (far_source)
		soft_sim_make_far(&s->sim, &s->nodes[0], s->key_source, 0);
	if (far_target)
		soft_sim_make_far(&s->sim, &s->nodes[1], s->key_target, 0);
	soft_sim_connect(&s->ends[0], &s->ends[1]);
}

static void close_scene(struct scene *s)
{
	for (unsigned int i = 0; i < 2; i++)
		soft_sim_end_done(&s->ends[i]);
	for (unsigned int i = 0; i < 2; i++)
		soft_sim_node_done(&s->nodes[i]);
	soft_sim_done(&s->sim);
	free(s->source);
	free(s->target);
	free(s);
}

static void write_to(struct scene *s, uint64_t id, size_t from, uint32_t len, uint64_t to)
{
	struct soft_send_wr wr = {
		.id = id,
		.opcode = SOFT_WR_WRITE,
		.num_sge = 1,
		.rc = {.remote_addr = (uintptr_t)s->target + to, .rkey = s->key_target}};
	struct soft_sge sge = {(uintptr_t)s->source + from, len, s->key_source};

	assert_true(soft_sim_post(&s->ends[0], &wr, &sge));
}

static void write_flag(struct scene *s, uint64_t id)
{
	struct soft_send_wr wr = {.id = id,
				  .opcode = SOFT_WR_WRITE,
				  .num_sge = 1,
				  .rc = {.remote_addr = (uintptr_t)&s->flag, .rkey = s->key_flag}};
	struct soft_sge sge = {(uintptr_t)&s->one, 8, s->key_one};

	assert_true(soft_sim_post(&s->ends[0], &wr, &sge));
}

static void run_for(struct scene *s, pp_ns time)
{
	pp_ns until = s->sim.now + time;

	while (s->sim.now < until && soft_sim_step(&s->sim))
		;
}

static uint32_t status(struct scene *s, unsigned int end)
{
	struct soft_cqe cqe;

	assert_true(soft_sim_poll(&s->ends[end].send_cq, &cqe));
	return cqe.status;
}

static bool completed(struct scene *s)
{
	return !soft_cq_empty(&s->ends[0].send_cq);
}

/* Neither completion nor a later flag in host memory comes before the bytes; packets do. */
static void behind_the_copy(void **state)
{
	struct scene *s = open_scene(14, 7);

	(void)state;
	connect(s, /* far_source= */ false, /* far_target= */ true);
	s->nodes[1].copier.held = true;
	write_to(s, 1, 0, 300000, 5);
	write_flag(s, 2);
	run_for(s, 50 * PP_MILLISECOND);
	assert_false(completed(s));
	assert_int_equal(s->flag, 0);
	assert_int_equal(s->target[5], 0);
	assert_int_equal(s->ends[1].qp.resp.msn, 2);
	s->nodes[1].copier.held = false;
	run_for(s, PP_MILLISECOND);
	assert_memory_equal(s->target + 5, s->source, 300000);
	assert_int_equal(s->flag, 1);
	assert_int_equal(status(s, 0), SOFT_WC_SUCCESS);
	assert_int_equal(status(s, 0), SOFT_WC_SUCCESS);
	close_scene(s);
}

/* Ten seconds of a device that does not come to it: 7 retries of 67 ms are long over, and the peer
 * lives. What is sent meanwhile to find that out is little. */
static void patience(void **state)
{
	struct scene *s = open_scene(14, 7);
	uint64_t sent;

	(void)state;
	connect(s, false, true);
	s->nodes[1].copier.held = true;
	for (unsigned int i = 0; i < 8; i++)
		write_to(s, i, 0, 65536, (uint64_t)i * 65536);
	run_for(s, 10 * PP_SECOND);
	assert_int_equal(s->ends[0].qp.state, SOFT_QP_RTS);
	assert_false(completed(s));
	sent = s->nodes[0].counters.retransmitted_packets;
	assert_in_range(sent, 1, 400);
	s->nodes[1].copier.held = false;
	run_for(s, PP_SECOND);
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(status(s, 0), SOFT_WC_SUCCESS);
	for (unsigned int i = 0; i < 8; i++)
		assert_memory_equal(s->target + (size_t)i * 65536, s->source, 65536);
	close_scene(s);
}

/* A peer that is gone is given up all the same. */
static void no_endless_patience(void **state)
{
	struct scene *s = open_scene(14, 7);

	(void)state;
	connect(s, false, true);
	s->nodes[1].copier.held = true;
	write_to(s, 1, 0, 65536, 0);
	run_for(s, PP_SECOND);
	s->ends[1].killed = true;
	run_for(s, 3 * PP_SECOND);
	assert_int_equal(status(s, 0), SOFT_WC_RETRY_EXC_ERR);
	close_scene(s);
}

static void pieces(void **state)
{
	static const struct {
		uint32_t len;
		unsigned int copies; /* at each end */
	} rows[] = {
		{1, 1},
		{64, 1},
		{65536, 1},
		{1 << 20, 1},
		{(2 << 20) - 1, 1},
		{2 << 20, 2},
		{(2 << 20) + 1, 2},
		{4 << 20, 4},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct scene *s = open_scene(14, 7);

		connect(s, true, true);
		write_to(s, 1, 0, rows[i].len, 0);
		run_for(s, PP_SECOND);
		assert_int_equal(status(s, 0), SOFT_WC_SUCCESS);
		assert_memory_equal(s->target, s->source, rows[i].len);
		assert_int_equal(s->nodes[0].copier.done, rows[i].copies);
		assert_int_equal(s->nodes[1].copier.done, rows[i].copies);
		close_scene(s);
	}
}

/* Of the device of the sender, of the receiver: volume 1, 11.6.2, and 9.9.3 of the NAK. */
static void failures(void **state)
{
	struct scene *s = open_scene(14, 7);

	(void)state;
	connect(s, true, false);
	s->sim.plan.copy_failure_ppm = 1000000;
	write_to(s, 1, 0, 65536, 0);
	run_for(s, PP_SECOND);
	assert_int_equal(status(s, 0), SOFT_WC_LOC_QP_OP_ERR);
	assert_int_equal(s->target[0], 0);
	close_scene(s);
	s = open_scene(14, 7);
	connect(s, false, true);
	s->sim.plan.copy_failure_ppm = 1000000;
	write_to(s, 1, 0, 65536, 0);
	write_flag(s, 2);
	run_for(s, PP_SECOND);
	assert_int_equal(status(s, 0), SOFT_WC_REM_OP_ERR);
	assert_int_equal(status(s, 0), SOFT_WC_WR_FLUSH_ERR);
	assert_int_equal(s->flag, 0);
	assert_int_equal(s->ends[1].events[SOFT_QP_EVENT_FATAL], 1);
	close_scene(s);
}

/* As a device that has none: IBV_ATOMIC_NONE's error at the requester. */
static void no_atomics(void **state)
{
	struct scene *s = open_scene(14, 7);
	struct soft_send_wr wr = {.opcode = SOFT_WR_FETCH_ADD, .num_sge = 1};
	struct soft_sge sge = {(uintptr_t)s->source, 8, s->key_source};

	(void)state;
	connect(s, false, true);
	wr.rc.remote_addr = (uintptr_t)s->target / 8 * 8 + 8;
	wr.rc.rkey = s->key_target;
	assert_true(soft_sim_post(&s->ends[0], &wr, &sge));
	run_for(s, PP_SECOND);
	assert_int_equal(status(s, 0), SOFT_WC_REM_INV_REQ_ERR);
	close_scene(s);
}

/* A queue pair goes with copies under way: they end alone, and give their staging back. */
static void gone(void **state)
{
	struct scene *s = open_scene(14, 7);

	(void)state;
	connect(s, true, true);
	s->nodes[1].copier.held = true;
	for (unsigned int i = 0; i < 8; i++)
		write_to(s, i, 0, 65536, (uint64_t)i * 65536);
	run_for(s, 100 * PP_MILLISECOND);
	assert_true(s->nodes[1].mover.in.in_use > 0);
	soft_qp_reset(&s->ends[1].qp);
	soft_qp_to_error(&s->ends[0].qp);
	assert_int_equal(s->nodes[0].mover.out.in_use, 0);
	s->nodes[1].copier.held = false;
	run_for(s, PP_MILLISECOND);
	assert_int_equal(s->nodes[1].mover.in.in_use, 0);
	close_scene(s);
}

static void woken(struct soft_staging_waiter *waiter)
{
	waiter->next = waiter;
}

static void staging(void **state)
{
	static uint8_t memory[2][SOFT_STAGING_SEGMENT];
	static struct soft_staging s;
	struct soft_staging_waiter waiter = {.wake = woken};
	uint8_t *at[8], *small;

	(void)state;
	assert_null(soft_staging_get(&s, 1));
	assert_true(soft_staging_add(&s, memory[0], NULL) && soft_staging_add(&s, memory[1], NULL));
	small = soft_staging_get(&s, 1);
	assert_ptr_equal(small, memory[0]);
	/* Three of 2 MiB beside it, four in the next; they do not overlap. */
	for (unsigned int i = 0; i < 7; i++) {
		at[i] = soft_staging_get(&s, 2 << 20);
		assert_non_null(at[i]);
		for (unsigned int k = 0; k < i; k++)
			assert_true(at[i] >= at[k] + (2 << 20) || at[k] >= at[i] + (2 << 20));
		assert_true(at[i] > small);
	}
	assert_null(soft_staging_get(&s, 2 << 20));
	assert_non_null(soft_staging_get(&s, (2 << 20) - SOFT_STAGING_UNIT));
	assert_null(soft_staging_get(&s, 1));
	soft_staging_wait(&s, &waiter);
	soft_staging_trim(&s, at[3], 2 << 20, (2 << 20) - 1);
	assert_true(waiter.waits);
	soft_staging_trim(&s, at[3], 2 << 20, 1 << 20);
	assert_false(waiter.waits);
	assert_ptr_equal(waiter.next, &waiter);
	assert_ptr_equal(soft_staging_get(&s, 1 << 20), at[3] + (1 << 20));
	assert_int_equal(s.in_use, 2 * SOFT_STAGING_SEGMENT);
	soft_staging_put(&s, small, 1);
	assert_ptr_equal(soft_staging_get(&s, SOFT_STAGING_UNIT), small);
}

/* What left of a message whose memory the peer maps when its first piece has been staged. */
static unsigned int asked;
static bool let_go;
static uint64_t sent_direct, sent_staged;

static bool shows(struct soft_qp *qp, const struct soft_region *region)
{
	(void)qp;
	(void)region;
	return asked++ > 0 && !let_go;
}

static void sent(struct soft_qp *qp, const struct soft_path *path, const struct soft_packet *p,
		 const struct iovec *pieces, unsigned int num_pieces)
{
	(void)qp;
	(void)path;
	(void)pieces;
	assert_int_equal(num_pieces, p->direct ? 0 : 1);
	*(p->direct ? &sent_direct : &sent_staged) += p->payload_bytes;
}

/* What is lent is not staged because a piece before it is: neither the first time nor when it is
 * sent again, until the peer lets it go. */
static void held_in_the_middle(void **state)
{
	struct scene *s = open_scene(10, 7);
	struct soft_qp *qp = &s->ends[0].qp;
	struct soft_outgoing *o = &qp->req.outgoing;
	struct soft_qp_ops ops = *qp->ops;
	struct soft_export export = {.number = 1};

	(void)state;
	connect(s, /* far_source= */ true, /* far_target= */ false);
	soft_sim_show_shelf(&s->nodes[0], &s->nodes[1]);
	s->nodes[0].mover.shelf = &s->nodes[0].shelf;
	soft_regions_find(s->nodes[0].regions, s->key_source)->export = &export;
	ops.shows = shows;
	ops.send = sent;
	qp->ops = &ops;
	qp->jumbo = SOFT_COPY_PIECE;
	qp->window->limit = qp->window->limit_max; /* as to a process of this host */
	write_to(s, 1, 0, 4 * SOFT_COPY_PIECE, 0);
	run_for(s, PP_MILLISECOND);
	assert_int_equal(sent_staged, SOFT_COPY_PIECE);
	assert_int_equal(sent_direct, 3 * SOFT_COPY_PIECE);
	run_for(s, 9 * PP_MILLISECOND);
	assert_true(qp->counters->local_ack_timeout_err > 0);
	assert_int_equal(o->lent, 3);
	assert_int_equal(o->bytes, SOFT_COPY_PIECE);
	let_go = true;
	run_for(s, 9 * PP_MILLISECOND);
	assert_int_equal(o->lent, 0);
	assert_int_equal(o->bytes, 4 * SOFT_COPY_PIECE);
	close_scene(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(behind_the_copy),
		cmocka_unit_test(patience),
		cmocka_unit_test(no_endless_patience),
		cmocka_unit_test(pieces),
		cmocka_unit_test(failures),
		cmocka_unit_test(no_atomics),
		cmocka_unit_test(gone),
		cmocka_unit_test(staging),
		cmocka_unit_test(held_in_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
