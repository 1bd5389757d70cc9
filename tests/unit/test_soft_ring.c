/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring between two processes: what is written is read, once and in order, also round the end
 * and by two threads of which one sleeps; what a hostile other side can do to it.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft/lane/ring.h"
#include "soft/lane/ring_shared.h"

struct both {
	struct soft_ring out, in;
};

static void open_both(struct both *b)
{
	int fd;

	memset(b, 0, sizeof(*b));
	assert_int_equal(soft_ring_make(&b->out, &fd), 0);
	assert_int_equal(soft_ring_adopt(&b->in, fd), 0);
	assert_int_equal(close(fd), 0);
}

static void close_both(struct both *b)
{
	soft_ring_done(&b->out);
	soft_ring_done(&b->in);
	soft_ring_done(&b->in);
}

static uint8_t byte_of(uint64_t at)
{
	return (uint8_t)(at * 31 + (at >> 9));
}

static bool write_piece(struct soft_ring *ring, uint64_t at, size_t bytes)
{
	uint8_t *to = soft_ring_reserve(ring, bytes);

	if (!to)
		return false;
	for (size_t i = 0; i < bytes; i++)
		to[i] = byte_of(at + i);
	soft_ring_publish(ring, bytes);
	return true;
}

static uint64_t read_all(struct soft_ring *ring, uint64_t at)
{
	size_t there = 0;
	const uint8_t *from = soft_ring_peek(ring, &there);

	if (!from)
		return 0;
	for (size_t i = 0; i < there; i++)
		if (from[i] != byte_of(at + i))
			fail_msg("byte %llu differs", (unsigned long long)(at + i));
	soft_ring_take(ring, there);
	return there;
}

static void test_round_the_end(void **state)
{
	static const size_t sizes[] = {64, 4096, 262144 + 64, 1 << 20, 192};
	uint64_t written = 0, seen = 0;
	struct both b;

	open_both(&b);
	for (unsigned int i = 0; written < 16u * SOFT_RING_BYTES; i++) {
		size_t bytes = sizes[i % 5];

		assert_true(write_piece(&b.out, written, bytes));
		written += bytes;
		if (i % 3)
			seen += read_all(&b.in, seen);
	}
	seen += read_all(&b.in, seen);
	assert_int_equal(seen, written);
	assert_true(soft_ring_empty(&b.in));
	assert_true(soft_ring_passed(&b.out, written));
	close_both(&b);
}

static void test_full(void **state)
{
	uint64_t written = 0, seen = 0;
	struct both b;

	open_both(&b);
	assert_null(soft_ring_reserve(&b.out, SOFT_RING_BYTES + SOFT_RING_UNIT));
	while (write_piece(&b.out, written, 4096))
		written += 4096;
	assert_int_equal(written, SOFT_RING_BYTES);
	assert_null(soft_ring_reserve(&b.out, SOFT_RING_UNIT));
	assert_false(soft_ring_passed(&b.out, 64));
	seen += read_all(&b.in, seen);
	assert_true(write_piece(&b.out, written, 4096));
	written += 4096;
	seen += read_all(&b.in, seen);
	assert_int_equal(seen, written);
	assert_false(b.in.broken || b.out.broken);
	close_both(&b);
}

/* Who is never behind is told to begin at the front again. */
static void test_stays_near(void **state)
{
	uint64_t written = 0, seen = 0, highest = 0;
	struct both b;

	open_both(&b);
	for (unsigned int i = 0; i < 10000; i++) {
		size_t skip = soft_ring_far(&b.out);

		if (skip) {
			assert_true(write_piece(&b.out, written, skip));
			written += skip;
			seen += read_all(&b.in, seen);
			assert_int_equal(written % SOFT_RING_BYTES, 0);
		}
		assert_true(write_piece(&b.out, written, 128));
		written += 128;
		if (written % SOFT_RING_BYTES > highest)
			highest = written % SOFT_RING_BYTES;
		seen += read_all(&b.in, seen);
	}
	assert_int_equal(seen, written);
	assert_true(highest <= SOFT_RING_NEAR);
	/* What lies there must not be skipped. */
	while (written % SOFT_RING_BYTES < SOFT_RING_NEAR) {
		assert_true(write_piece(&b.out, written, 128));
		written += 128;
	}
	assert_int_equal(soft_ring_far(&b.out), 0);
	close_both(&b);
}

static void break_ring(uint64_t head, uint64_t tail, bool reader)
{
	struct both b;
	size_t there;

	open_both(&b);
	assert_true(write_piece(&b.out, 0, 64));
	atomic_store(&b.out.shared->head, head);
	atomic_store(&b.out.shared->tail, tail);
	if (reader) {
		assert_null(soft_ring_peek(&b.in, &there));
		assert_true(b.in.broken);
		atomic_store(&b.out.shared->tail, 64);
		assert_null(soft_ring_peek(&b.in, &there));
	} else {
		assert_null(soft_ring_reserve(&b.out, SOFT_RING_BYTES));
		assert_true(b.out.broken);
		assert_null(soft_ring_reserve(&b.out, 64));
	}
	close_both(&b);
}

static void test_hostile_positions(void **state)
{
	break_ring(0, SOFT_RING_BYTES + 64, true);
	break_ring(0, UINT64_MAX - 63, true);
	break_ring(0, 63, true);
	break_ring(128, 64, false);
	break_ring(UINT64_MAX, 64, false);
	break_ring(1, 64, false);
	break_ring(64 - SOFT_RING_BYTES - 64, 64, false);
}

static int made(off_t bytes, unsigned int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void test_hostile_memory(void **state)
{
	const off_t right = SOFT_RING_HEAD + SOFT_RING_BYTES;
	const struct {
		int fd, rc;
	} cases[] = {
		{made(right, 0), -EPROTO},
		{made(right, F_SEAL_GROW), -EPROTO},
		{made(right - 4096, F_SEAL_SHRINK), -EPROTO},
		{made(right + 4096, F_SEAL_SHRINK), -EPROTO},
		{open("/dev/zero", O_RDWR | O_CLOEXEC), -EPROTO},
		{eventfd(0, EFD_CLOEXEC), -EPROTO},
		{made(right, F_SEAL_SHRINK), 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct soft_ring ring = {0};

		assert_int_equal(soft_ring_adopt(&ring, cases[i].fd), cases[i].rc);
		soft_ring_done(&ring);
		assert_int_equal(close(cases[i].fd), 0);
	}
}

/* What was sealed cannot be taken away under the reader. */
static void test_memory_stays(void **state)
{
	struct soft_ring ring;
	int fd;

	assert_int_equal(soft_ring_make(&ring, &fd), 0);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(close(fd), 0);
	soft_ring_done(&ring);
}

static void test_pulls_refused(void **state)
{
	struct both b;

	open_both(&b);
	assert_int_equal(soft_ring_pull_errno(&b.out), 0);
	soft_ring_refuse_pulls(&b.in, EPERM);
	assert_int_equal(soft_ring_pull_errno(&b.out), EPERM);
	close_both(&b);
}

enum { PIECES = 100000 };

struct sleeper {
	struct soft_ring *ring;
	int bell;
	uint64_t seen;
};

/* Sleeps whenever it finds nothing; a wake-up that is lost ends the test by its deadline. */
static void *read_sleeping(void *arg)
{
	struct sleeper *s = arg;
	uint64_t rung;

	while (s->seen < (uint64_t)PIECES * 128) {
		uint64_t got = read_all(s->ring, s->seen);

		s->seen += got;
		if (got)
			continue;
		soft_ring_sleep(s->ring);
		if (!soft_ring_empty(s->ring)) {
			soft_ring_awake(s->ring);
			continue;
		}
		if (read(s->bell, &rung, sizeof(rung)) != sizeof(rung))
			return NULL;
	}
	return s;
}

static void test_sleeping_reader(void **state)
{
	struct both b;
	struct sleeper s = {.ring = &b.in, .bell = eventfd(0, EFD_CLOEXEC)};
	const uint64_t one = 1;
	pthread_t thread;
	void *end = NULL;

	assert_true(s.bell >= 0);
	open_both(&b);
	assert_int_equal(pthread_create(&thread, NULL, read_sleeping, &s), 0);
	for (uint64_t at = 0; at < (uint64_t)PIECES * 128;) {
		if (!write_piece(&b.out, at, 128))
			continue;
		at += 128;
		if (soft_ring_must_wake(&b.out))
			assert_int_equal(write(s.bell, &one, sizeof(one)), sizeof(one));
	}
	assert_int_equal(pthread_join(thread, &end), 0);
	assert_ptr_equal(end, &s);
	assert_int_equal(s.seen, (uint64_t)PIECES * 128);
	close_both(&b);
	close(s.bell);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_the_end),  cmocka_unit_test(test_full),
		cmocka_unit_test(test_stays_near),     cmocka_unit_test(test_hostile_positions),
		cmocka_unit_test(test_hostile_memory), cmocka_unit_test(test_memory_stays),
		cmocka_unit_test(test_pulls_refused),  cmocka_unit_test(test_sleeping_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
