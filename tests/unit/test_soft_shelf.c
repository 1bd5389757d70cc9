/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging that other processes take bytes from: what the kernel lets nobody do with its memory,
 * what a reader refuses, and bytes between two nodes that are copied once at the reader: when they
 * are acknowledged, and what becomes of those that are taken back meanwhile.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft_sim.h"

enum { LEN = 8 << 20, PIECE = SOFT_COPY_PIECE, MEMORY = SOFT_SHELF_BYTES + SOFT_SHELF_TAIL };

static void sealed(void **state)
{
	struct soft_shelf shelf;
	void *at;

	(void)state;
	assert_int_equal(soft_shelf_make(&shelf), 0);
	assert_int_equal(ftruncate(shelf.fd, 4096), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(shelf.fd, 2L * MEMORY), -1);
	assert_int_equal(fcntl(shelf.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	/* Linux before 5.1 cannot keep writers out. */
	if (fcntl(shelf.fd, F_GET_SEALS) & 0x10) {
		at = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, shelf.fd, 0);
		assert_ptr_equal(at, MAP_FAILED);
		assert_int_equal(errno, EPERM);
		assert_int_equal(pwrite(shelf.fd, "x", 1, 0), -1);
	}
	shelf.bytes[SOFT_SHELF_BYTES - 1] = 1; /* its maker goes on */
	soft_shelf_done(&shelf);
	soft_shelf_done(&shelf);
}

/* What a reader does not map. */
static void refused(void **state)
{
	struct soft_shelf_view *view;
	int fd = memfd_create("unsealed", MFD_ALLOW_SEALING), null = open("/dev/null", O_RDWR);

	(void)state;
	assert_true(fd >= 0 && null >= 0);
	assert_int_equal(ftruncate(fd, MEMORY), 0);
	assert_int_equal(soft_shelf_look(fd, 0, &view), -EPROTO);
	assert_int_equal(ftruncate(fd, MEMORY - 4096), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	assert_int_equal(soft_shelf_look(fd, 0, &view), -EPROTO);
	assert_int_equal(soft_shelf_look(null, 0, &view), -EPROTO);
	close(fd);
	close(null);
}

static struct soft_copy *asked;

static void keep(struct soft_copier *copier, struct soft_copy *copy)
{
	(void)copier;
	assert_null(asked);
	asked = copy;
}

static void answer(int rc)
{
	struct soft_copy *copy = asked;

	asked = NULL;
	soft_copy_done(copy, rc);
}

static void bounds(void **state)
{
	const uint64_t at = UINT64_MAX - SOFT_STAGING_SEGMENT; /* sums wrap */
	struct soft_copier copier = {.start = keep};
	struct soft_shelf_view *view;
	struct soft_shelf shelf;
	struct soft_staging staging = {0};
	struct soft_loan loan;
	uint8_t *part;

	(void)state;
	assert_int_equal(soft_shelf_make(&shelf), 0);
	assert_true(soft_staging_add(&staging, shelf.bytes, shelf.generations));
	part = soft_staging_get(&staging, PIECE);
	assert_non_null(part);
	assert_int_equal(soft_shelf_look(shelf.fd, at, &view), 0);
	assert_int_equal(soft_shelf_generation(&shelf, part, PIECE), 1);
	assert_int_equal(soft_shelf_generation(&shelf, &loan, 1), 0);
	assert_int_equal(soft_shelf_generation(&shelf, shelf.bytes + SOFT_SHELF_BYTES - 1, 2), 0);
	/* So many segments are page-locked, and no more. */
	copier.pinned = SOFT_SHELF_PINNED;
	assert_false(soft_shelf_lend(view, at, 1, 0, 64, &copier, &loan));
	assert_null(asked);
	copier.pinned = 0;
	/* Not before it is page-locked, for which a segment is asked once. */
	assert_false(soft_shelf_lend(view, at, 1, 0, 64, &copier, &loan));
	assert_false(soft_shelf_lend(view, at, 1, 0, 64, &copier, &loan));
	assert_int_equal(asked->what, SOFT_COPY_PIN);
	assert_int_equal(asked->len, SOFT_STAGING_SEGMENT);
	answer(0);
	assert_true(soft_shelf_lend(view, at, 1, 0, 64, &copier, &loan));
	assert_ptr_equal(loan.at, view->bytes);
	assert_true(soft_shelf_lend(view, at, 1, SOFT_STAGING_SEGMENT - 1, 1, &copier, &loan));
	assert_false(soft_shelf_lend(view, at, 1, SOFT_STAGING_SEGMENT - 1, 2, &copier, &loan));
	assert_false(soft_shelf_lend(view, at, 1, UINT32_MAX, UINT32_MAX, &copier, &loan));
	assert_false(soft_shelf_lend(view, at - 1, 1, 0, 1, &copier, &loan));
	assert_false(soft_shelf_lend(view, at + SOFT_SHELF_BYTES, 1, 0, 1, &copier, &loan));
	assert_false(soft_shelf_lend(view, at, 0, 0, 1, &copier, &loan));
	assert_false(soft_shelf_lend(view, at, 2, 0, 1, &copier, &loan));
	assert_null(asked);
	/* Given back: every unit of it is of another generation. */
	assert_true(soft_shelf_lend(view, at + (uint64_t)(part - shelf.bytes), 1, 0, PIECE, &copier,
				    &loan));
	soft_staging_put(&staging, part, PIECE);
	assert_false(soft_loan_good(&loan));
	assert_int_equal(soft_shelf_generation(&shelf, part + PIECE - 1, 1), 2);
	/* The next segment is refused, and not asked for again. */
	assert_false(soft_shelf_lend(view, at + SOFT_STAGING_SEGMENT, 1, 0, 1, &copier, &loan));
	answer(-EOPNOTSUPP);
	assert_false(soft_shelf_lend(view, at + SOFT_STAGING_SEGMENT, 1, 0, 1, &copier, &loan));
	assert_null(asked);
	assert_int_equal(view->error, -EOPNOTSUPP);
	/* The last user's going unlocks what is locked, before it is unmapped. */
	soft_shelf_view_put(view);
	assert_int_equal(asked->what, SOFT_COPY_UNPIN);
	assert_int_equal(copier.pinned, 1);
	answer(0);
	assert_int_equal(copier.pinned, 0);
	assert_null(asked);
	soft_shelf_done(&shelf);
}

struct scene {
	struct soft_sim sim;
	struct soft_sim_node nodes[2];
	struct soft_sim_end ends[2];
	uint8_t *source, *target;
	uint32_t key_source, key_target;
	uint64_t posted;
};

static struct scene *open_scene(int pin_rc, uint64_t seed)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct soft_sim_attr attr = soft_sim_attr();
	const uint32_t access = SOFT_ACCESS_LOCAL_WRITE | SOFT_ACCESS_REMOTE_WRITE;

	assert_non_null(s);
	attr.mtu = 4096;
	attr.signal_all = true;
	soft_sim_init(&s->sim, seed);
	s->sim.plan = (struct soft_sim_plan){
		.delay = 2000, .copy_delay = 30000, .lane_ppm = 1000000, .refer = true};
	for (unsigned int i = 0; i < 2; i++) {
		soft_sim_node_init(&s->nodes[i], 32 << 20);
		/* As of a lane: nothing has to be found out. */
		s->nodes[i].window.limit = s->nodes[i].window.limit_max;
		soft_sim_end_init(&s->sim, &s->ends[i], &s->nodes[i], &attr);
	}
	s->source = malloc(LEN);
	s->target = calloc(1, LEN);
	assert_true(s->source && s->target);
	for (size_t i = 0; i < LEN; i++)
		s->source[i] = (uint8_t)(i * 2654435761u >> 11);
	s->key_source = soft_sim_register(&s->nodes[0], s->source, LEN, access, soft_sim_pd);
	s->key_target = soft_sim_register(&s->nodes[1], s->target, LEN, access, soft_sim_pd);
	soft_sim_make_far(&s->sim, &s->nodes[0], s->key_source, 0);
	soft_sim_make_far(&s->sim, &s->nodes[1], s->key_target, 0);
	soft_sim_show_shelf(&s->nodes[0], &s->nodes[1]);
	s->nodes[1].copier.pin_rc = pin_rc;
	soft_sim_connect(&s->ends[0], &s->ends[1]);
	return s;
}

static void close_scene(struct scene *s)
{
	for (unsigned int i = 0; i < 2; i++)
		soft_sim_end_done(&s->ends[i]);
	/* The reader first: copies that nobody waits for any more read the other's memory. */
	soft_sim_node_done(&s->nodes[1]);
	soft_sim_node_done(&s->nodes[0]);
	soft_sim_done(&s->sim);
	free(s->source);
	free(s->target);
	free(s);
}

static void post(struct scene *s, size_t at, uint32_t len)
{
	struct soft_send_wr wr = {
		.id = s->posted++,
		.opcode = SOFT_WR_WRITE,
		.num_sge = 1,
		.rc = {.remote_addr = (uintptr_t)s->target + at, .rkey = s->key_target}};
	struct soft_sge sge = {(uintptr_t)s->source + at, len, s->key_source};

	assert_true(soft_sim_post(&s->ends[0], &wr, &sge));
}

static void run_for(struct scene *s, pp_ns time)
{
	pp_ns until = s->sim.now + time;

	while (s->sim.now < until && soft_sim_step(&s->sim))
		;
}

static void want_successes(struct scene *s, unsigned int n)
{
	struct soft_cqe cqe;

	for (unsigned int i = 0; i < n; i++) {
		assert_true(soft_sim_poll(&s->ends[0].send_cq, &cqe));
		assert_int_equal(cqe.status, SOFT_WC_SUCCESS);
	}
	assert_true(soft_cq_empty(&s->ends[0].send_cq));
}

/* The first message comes the old way, while the segment is being page-locked. */
static void lock_segment(struct scene *s)
{
	post(s, 0, 65536);
	run_for(s, 10 * PP_MILLISECOND);
	want_successes(s, 1);
	assert_int_equal(s->nodes[1].copier.pins, 1);
	assert_int_equal(s->nodes[1].mover.lent, 0);
}

/* A record is a copy, and there is no staging at the reader. */
static void straight(void **state)
{
	struct scene *s = open_scene(0, 1);
	uint64_t fetched;

	(void)state;
	lock_segment(s);
	fetched = s->sim.fetched;
	s->nodes[1].mover.in.most = 0;
	post(s, 65536, 4 << 20);
	post(s, (5 << 20) + 3, PIECE + 12345);
	post(s, 7 << 20, 20000);
	run_for(s, 50 * PP_MILLISECOND);
	want_successes(s, 3);
	assert_int_equal(s->nodes[1].mover.lent, 4 + 2 + 1);
	assert_int_equal(s->nodes[1].mover.lent_bytes, (4 << 20) + PIECE + 12345 + 20000);
	assert_int_equal(s->sim.fetched, fetched);
	assert_int_equal(s->nodes[1].mover.in.most, 0);
	assert_memory_equal(s->target, s->source, 65536 + (4 << 20));
	assert_memory_equal(s->target + (5 << 20) + 3, s->source + (5 << 20) + 3, PIECE + 12345);
	assert_memory_equal(s->target + (7 << 20), s->source + (7 << 20), 20000);
	assert_int_equal(s->nodes[0].mover.out.in_use, 0);
	close_scene(s);
}

/* What is lent is not acknowledged, whatever came: its sender would use the memory again. */
static void held(void **state)
{
	struct scene *s = open_scene(0, 1);

	(void)state;
	lock_segment(s);
	s->nodes[1].copier.held = true;
	post(s, 0, 4 << 20);
	post(s, 4 << 20, 4 << 20);
	run_for(s, 500 * PP_MILLISECOND);
	assert_true(soft_cq_empty(&s->ends[0].send_cq));
	assert_int_equal(s->nodes[0].mover.out.in_use, SOFT_OUTGOING_LEAST);
	assert_int_equal(s->ends[1].qp.resp.landing.lent, SOFT_OUTGOING_LEAST / PIECE);
	s->nodes[1].copier.held = false;
	run_for(s, 50 * PP_MILLISECOND);
	want_successes(s, 2);
	assert_memory_equal(s->target, s->source, LEN);
	assert_int_equal(s->nodes[0].mover.out.in_use, 0);
	close_scene(s);
}

/* A message that is longer than what one queue pair may have in staging: what has been copied is
 * acknowledged at once, and nothing is sent twice to find that out. */
static void longer(void **state)
{
	struct scene *s = open_scene(0, 1);

	(void)state;
	lock_segment(s);
	post(s, 0, LEN);
	run_for(s, 50 * PP_MILLISECOND);
	want_successes(s, 1);
	assert_memory_equal(s->target, s->source, LEN);
	assert_int_equal(s->nodes[1].mover.lent, LEN / PIECE);
	assert_int_equal(s->nodes[1].counters.duplicate_request, 0);
	close_scene(s);
}

/* The sender's queue pair ends while its bytes are copied, and the memory is used for others: none
 * of it counts, and nobody is told anything. */
static void taken_back(void **state)
{
	struct scene *s = open_scene(0, 1);
	struct soft_landing *landing;
	uint32_t msn;

	(void)state;
	lock_segment(s);
	landing = &s->ends[1].qp.resp.landing;
	s->nodes[1].copier.held = true;
	post(s, 0, 2 << 20);
	run_for(s, PP_MILLISECOND);
	assert_int_equal(landing->lent, 2);
	msn = s->ends[0].qp.req.sq.retired;
	soft_qp_to_error(&s->ends[0].qp);
	assert_int_equal(s->nodes[0].mover.out.in_use, 0);
	memset(s->nodes[0].shelf.bytes, 0xee, SOFT_STAGING_SEGMENT);
	s->nodes[1].copier.held = false;
	run_for(s, PP_SECOND);
	assert_true(landing->failed);
	assert_int_equal(s->ends[1].qp.state, SOFT_QP_RTS);
	assert_true(s->ends[1].qp.resp.closing);
	assert_int_equal(s->ends[0].qp.req.sq.retired - msn, 1); /* flushed */
	for (unsigned int i = 0; i < SOFT_QP_EVENT_LAST_WQE + 1; i++)
		assert_int_equal(s->ends[1].events[i], 0);
	/* And after a reset all is as new. */
	soft_qp_to_error(&s->ends[1].qp);
	assert_int_equal(landing->lent, 0);
	close_scene(s);
}

/* No page-lock for reading: as without a shelf. */
static void not_locked(void **state)
{
	struct scene *s = open_scene(-EOPNOTSUPP, 1);

	(void)state;
	post(s, 0, 4 << 20);
	post(s, 4 << 20, 4 << 20);
	run_for(s, 50 * PP_MILLISECOND);
	want_successes(s, 2);
	assert_int_equal(s->nodes[1].mover.lent, 0);
	assert_int_equal(s->nodes[1].view->error, -EOPNOTSUPP);
	assert_memory_equal(s->target, s->source, LEN);
	close_scene(s);
}

/* The lane has gone, and its copies go on; the page-lock goes after the last. */
static void lane_gone(void **state)
{
	struct scene *s = open_scene(0, 1);

	(void)state;
	lock_segment(s);
	s->nodes[1].copier.held = true;
	post(s, 0, 1 << 20);
	run_for(s, PP_MILLISECOND);
	assert_int_equal(s->ends[1].qp.resp.landing.lent, 1);
	soft_shelf_view_put(s->nodes[1].view);
	s->nodes[1].view = NULL;
	assert_int_equal(s->nodes[1].copier.unpins, 0);
	s->nodes[1].copier.held = false;
	run_for(s, 50 * PP_MILLISECOND);
	want_successes(s, 1);
	assert_memory_equal(s->target, s->source, 1 << 20);
	assert_int_equal(s->nodes[1].copier.unpins, 1);
	close_scene(s);
}

/* Packets lost, doubled, late; records of any length, some fetched and some not to be had; the
 * link changes. */
static void ill(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct scene *s = open_scene(0, seed);

		s->sim.plan.refer = seed % 2;
		s->sim.plan.lane_ppm = 900000;
		s->sim.plan.loss_ppm = 10000;
		s->sim.plan.duplicate_ppm = 10000;
		s->sim.plan.reorder_ppm = 20000;
		s->sim.plan.reorder_delay = 100000;
		s->sim.plan.unfetched_ppm = 50000;
		s->sim.plan.copy_jitter = 300000;
		for (unsigned int i = 0; i < 12; i++)
			post(s, i * 600000 + i, 500000 + i * 1000);
		run_for(s, 20 * PP_SECOND);
		want_successes(s, 12);
		for (unsigned int i = 0; i < 12; i++)
			assert_memory_equal(s->target + i * 600000 + i, s->source + i * 600000 + i,
					    500000 + i * 1000);
		assert_true(s->nodes[1].mover.lent > 0);
		assert_int_equal(s->nodes[0].mover.out.in_use, 0);
		close_scene(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sealed),    cmocka_unit_test(refused),
		cmocka_unit_test(bounds),    cmocka_unit_test(straight),
		cmocka_unit_test(held),	     cmocka_unit_test(taken_back),
		cmocka_unit_test(longer),    cmocka_unit_test(not_locked),
		cmocka_unit_test(lane_gone), cmocka_unit_test(ill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
