/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ends of a lane: how they meet and whom they turn away; payload copied and fetched; what is
 * taken back, what cannot be read, what does not fit; a writer that writes rubbish. The kernel is
 * the judge of users and of memory.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soft/lane/lane.h"
#include "soft/lane/ring_shared.h"

enum { BYTES = 1 << 20 };

/* Beyond the slots, so that no program on the device has it. */
static unsigned int slot;
static int listener, bell;

static const struct soft_record_route route = {
	.src = {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}},
	.dst = {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}},
};

struct pair {
	struct soft_lane *out;
	struct soft_lane_in *in;
	uint8_t *memory; /* that is sent */
};

/* The writing end as soft_lane_open() makes it, at a slot of this test's. */
static void open_pair(struct pair *p)
{
	assert_int_equal(soft_lane_open(slot, 7, NULL, &p->out), 0);
	assert_int_equal(soft_lane_hear(p->out), -EAGAIN);
	assert_int_equal(soft_lane_in_accept(listener, &p->in), 0);
	assert_int_equal(soft_lane_in_accept(listener, &p->in), -EAGAIN);
	assert_int_equal(p->in->pid, getpid());
	assert_int_equal(soft_lane_in_hear(p->in, bell), 0);
	assert_int_equal(soft_lane_hear(p->out), 0);
	assert_true(p->out->up);
	assert_int_equal(p->in->slot, 7);
	assert_int_equal(p->in->pull_errno, 0);
	p->memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(p->memory, MAP_FAILED);
	for (unsigned int i = 0; i < BYTES; i++)
		p->memory[i] = (uint8_t)(i * 13 + (i >> 8));
}

static void close_pair(struct pair *p)
{
	soft_lane_close(p->out);
	soft_lane_in_close(p->in);
	(void)munmap(p->memory, BYTES);
}

static bool send_piece(struct pair *p, uint32_t qpn, size_t from, uint32_t len, bool stays)
{
	struct iovec piece = {p->memory + from, len};
	struct soft_packet packet = {
		.opcode = SOFT_SEND_ONLY,
		.dest_qp = 9,
		.payload_bytes = len,
		.packets = len > 4096 ? (len - 1) / 4096 + 1 : 1,
		.stays = stays,
	};

	return soft_lane_send(p->out, &route, qpn, &packet, &piece, 1);
}

/* What came: the last packet's bytes, and how many could not be had. */
struct got {
	unsigned int records, fetched, lost;
	uint32_t len;
	uint8_t bytes[SOFT_RECORD_PAYLOAD_MAX];
};

static void on_record(void *arg, const struct soft_record *record, struct soft_packet *p)
{
	struct got *got = arg;

	assert_memory_equal(&record->src, &route.src, sizeof(route.src));
	got->records++;
	got->len = p->payload_bytes;
	if (!p->source) {
		memcpy(got->bytes, p->payload, p->payload_bytes);
		return;
	}
	memset(got->bytes, 0, p->payload_bytes);
	/* In two parts, as pieces of a receive request would take it. */
	if (p->source->fetch(p->source, 0, got->bytes, 1000) ||
	    p->source->fetch(p->source, 1000, got->bytes + 1000, p->payload_bytes - 1000))
		got->lost++;
	else
		got->fetched++;
}

static struct got *receive(struct pair *p, int want)
{
	static struct got got;

	memset(&got, 0, sizeof(got));
	assert_int_equal(soft_lane_in_receive(p->in, SIZE_MAX, on_record, &got), want);
	return &got;
}

static void test_payload(void **state)
{
	static const uint32_t sizes[] = {
		1, 8, 4096, SOFT_LANE_COPIED, SOFT_LANE_COPIED + 1, 65537, 262144, 100000, 8};
	struct pair p;

	open_pair(&p);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct got *got;

		assert_true(send_piece(&p, 1, 3 * i, sizes[i], true));
		got = receive(&p, 1);
		assert_int_equal(got->len, sizes[i]);
		assert_int_equal(got->fetched, sizes[i] > SOFT_LANE_COPIED);
		assert_memory_equal(got->bytes, p.memory + 3 * i, sizes[i]);
	}
	/* What may change as soon as it was sent is never referred to. */
	assert_true(send_piece(&p, 1, 0, 65536, false));
	p.memory[100] ^= 1;
	assert_int_equal(receive(&p, 1)->fetched, 0);
	close_pair(&p);
}

static void test_taken_back(void **state)
{
	struct pair p;

	open_pair(&p);
	assert_true(send_piece(&p, 1, 0, 20000, true));
	assert_true(send_piece(&p, 2, 40000, 20000, true));
	assert_true(send_piece(&p, 3, 80000, 20000, true));
	soft_lane_take_back(p.out, (uintptr_t)p.memory + 59999, (uintptr_t)p.memory + 80000);
	assert_int_equal(receive(&p, 3)->lost, 1);
	assert_true(send_piece(&p, 1, 0, 20000, true));
	assert_true(send_piece(&p, 2, 40000, 20000, true));
	soft_lane_take_back_of(p.out, 1);
	assert_int_equal(receive(&p, 2)->lost, 1);
	/* That is no reason to copy from now on. */
	assert_int_equal(soft_lane_pull_errno(p.out), 0);
	close_pair(&p);
}

/* Memory that cannot be read (here: is not there): from then on the writer copies. */
static void test_not_readable(void **state)
{
	struct pair p;

	open_pair(&p);
	assert_true(send_piece(&p, 1, 0, 20000, true));
	assert_int_equal(mprotect(p.memory, BYTES, PROT_NONE), 0);
	assert_int_equal(receive(&p, 1)->lost, 1);
	assert_int_equal(mprotect(p.memory, BYTES, PROT_READ), 0);
	assert_int_equal(soft_lane_pull_errno(p.out), EFAULT);
	assert_int_equal(soft_lane_shape(p.out).jumbo, SOFT_LANE_JUMBO_COPIED);
	assert_int_equal(p.out->window.limit, SOFT_LANE_WINDOW_COPIED);
	assert_true(send_piece(&p, 1, 0, 20000, true));
	assert_int_equal(receive(&p, 1)->fetched, 0);
	close_pair(&p);
}

static void test_full(void **state)
{
	unsigned int sent = 0;
	struct pair p;

	open_pair(&p);
	while (send_piece(&p, 1, 0, 8192, false))
		sent++;
	assert_true(sent > SOFT_RING_BYTES / 8192 / 2 && sent < SOFT_RING_BYTES / 8192);
	assert_true(soft_lane_shape(p.out).full);
	assert_int_equal(p.out->stats.lost, 1);
	assert_int_equal(receive(&p, (int)sent)->records, sent);
	assert_false(soft_lane_shape(p.out).full);
	/* References have places: before they run out no request begins. */
	for (sent = 0; !soft_lane_shape(p.out).full; sent++)
		assert_true(send_piece(&p, 1, 0, 9000, true));
	assert_true(sent > SOFT_LANE_REFERENCES / 2 && sent <= SOFT_LANE_REFERENCES);
	assert_int_equal(receive(&p, (int)sent)->fetched, 1 * sent);
	close_pair(&p);
}

static void test_wakes_who_sleeps(void **state)
{
	struct pair p;
	uint64_t rung;

	open_pair(&p);
	assert_true(send_piece(&p, 1, 0, 8, false));
	soft_lane_flush(p.out);
	assert_int_equal(read(bell, &rung, sizeof(rung)), -1);
	soft_ring_sleep(&p.in->ring);
	assert_true(send_piece(&p, 1, 0, 8, false));
	assert_true(send_piece(&p, 1, 0, 8, false));
	soft_lane_flush(p.out);
	soft_lane_flush(p.out);
	assert_int_equal(read(bell, &rung, sizeof(rung)), sizeof(rung));
	assert_int_equal(rung, 1);
	assert_int_equal(p.out->stats.wakes, 1);
	close_pair(&p);
}

static void test_rubbish(void **state)
{
	struct pair p;

	open_pair(&p);
	memset(p.out->ring.bytes, 0xa5, 4096);
	soft_ring_publish(&p.out->ring, 4096);
	(void)receive(&p, -EPROTO);
	close_pair(&p);
	open_pair(&p);
	atomic_store(&p.out->ring.shared->tail, 12345);
	(void)receive(&p, -EPROTO);
	close_pair(&p);
	/* A reader that claims to have read what was never written. */
	open_pair(&p);
	atomic_store(&p.out->ring.shared->head, 1 << 30);
	for (unsigned int i = 0; i < SOFT_RING_BYTES / 8192 && send_piece(&p, 1, 0, 8192, false);
	     i++)
		;
	assert_true(p.out->ring.broken);
	close_pair(&p);
}

/* What is shown and answered, with its descriptor; what is neither ends the lane. */
static void test_showing(void **state)
{
	struct soft_export x = {.number = 0x301, .of = {.kind = SOFT_EXPORT_VMM, .len = 4096}};
	struct soft_showing said;
	struct soft_door_answer answer;
	struct pair p;
	struct stat mine, theirs;

	open_pair(&p);
	assert_int_equal(soft_lane_in_told(p.in, &said), -EAGAIN);
	x.of.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(soft_lane_show(p.out, &x), 0);
	assert_int_equal(soft_lane_withdraw(p.out, 0x301), 0);
	assert_int_equal(soft_lane_in_hear(p.in, bell), -EALREADY);
	assert_int_equal(soft_lane_in_told(p.in, &said), 0);
	assert_true(said.kind == SOFT_EXPORT_VMM && said.number == 0x301 && said.bytes == 4096);
	assert_true(said.fd >= 0 && said.fd != x.of.fd);
	assert_true(fstat(said.fd, &theirs) == 0 && fstat(x.of.fd, &mine) == 0);
	assert_true(mine.st_ino == theirs.st_ino && mine.st_dev == theirs.st_dev);
	(void)close(said.fd);
	assert_int_equal(soft_lane_in_told(p.in, &said), 0);
	assert_true(said.kind == SOFT_EXPORT_NONE && said.fd == -1 && said.number == 0x301);
	x.of.kind = SOFT_EXPORT_IPC;
	(void)close(x.of.fd);
	x.of.fd = -1;
	memset(x.of.handle, 7, sizeof(x.of.handle));
	assert_int_equal(soft_lane_show(p.out, &x), 0);
	assert_int_equal(soft_lane_in_told(p.in, &said), 0);
	assert_memory_equal(said.handle, x.of.handle, sizeof(said.handle));
	soft_lane_in_answer(p.in, 0x301, SOFT_IMPORT_GONE);
	assert_int_equal(soft_lane_hear(p.out), -EALREADY);
	assert_int_equal(soft_lane_answered(p.out, &answer), 0);
	assert_true(answer.number == 0x301 && answer.what == SOFT_IMPORT_GONE);
	assert_int_equal(soft_lane_answered(p.out, &answer), -EAGAIN);
	/* A descriptor is missing; the message is another's; it is cut short. */
	x.of.kind = SOFT_EXPORT_VMM;
	assert_int_equal(soft_lane_show(p.out, &x), 0);
	assert_int_equal(soft_lane_in_told(p.in, &said), -EPROTO);
	assert_int_equal(send(p.out->fd, &answer, sizeof(answer), 0), sizeof(answer));
	assert_int_equal(soft_lane_in_told(p.in, &said), -EPROTO);
	memset(&said, 0, sizeof(said));
	assert_int_equal(send(p.out->fd, &said, sizeof(said), 0), sizeof(said));
	assert_int_equal(soft_lane_in_told(p.in, &said), -EPROTO);
	assert_int_equal(send(p.in->fd, "x", 1, 0), 1);
	assert_int_equal(soft_lane_answered(p.out, &answer), -EPROTO);
	close_pair(&p);
}

static void test_ends(void **state)
{
	struct soft_door_answer answer;
	struct soft_showing said;
	struct pair p;

	open_pair(&p);
	assert_true(send_piece(&p, 1, 0, 8, false));
	soft_lane_close(p.out);
	assert_true(soft_lane_in_hear(p.in, bell) < 0);
	assert_int_equal(soft_lane_in_hear(p.in, bell), -EALREADY);
	assert_int_equal(soft_lane_in_told(p.in, &said), -ECONNRESET);
	/* What was written before its end is there. */
	assert_int_equal(receive(&p, 1)->records, 1);
	soft_lane_in_close(p.in);
	(void)munmap(p.memory, BYTES);

	open_pair(&p);
	soft_lane_in_close(p.in);
	assert_int_equal(soft_lane_hear(p.out), -EALREADY);
	assert_int_equal(soft_lane_answered(p.out, &answer), -ECONNRESET);
	soft_lane_close(p.out);
	(void)munmap(p.memory, BYTES);
}

/* Says something else than hello, and gives something else than a ring. */
static void test_hostile_hello(void **state)
{
	struct soft_hello hello = {.magic = SOFT_LANE_MAGIC};
	struct soft_lane_in *in;
	int fd, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_true(null >= 0);
	for (int i = 0; i < 3; i++) {
		fd = soft_door_knock(slot, &hello, null, -1);
		assert_true(fd >= 0);
		if (i == 1)
			assert_int_equal(send(fd, "x", 1, 0), 1);
		assert_int_equal(soft_lane_in_accept(listener, &in), 0);
		/* 0: no memory; 1: the same, and more; 2: another language. */
		assert_int_equal(soft_lane_in_hear(in, bell), -EPROTO);
		soft_lane_in_close(in);
		(void)close(fd);
		hello.magic += i == 1;
	}
	(void)close(null);
}

/* Bytes of a shelf are taken from there, as long as they are what was sent; no memory of the
 * writer's is read. What is no shelf is not mapped, and the lane goes on without. */
static void test_shelf(void **state)
{
	struct soft_staging staging = {0};
	struct soft_shelf shelf, wrong;
	struct pair p = {0};
	struct got *got;

	assert_int_equal(soft_shelf_make(&shelf), 0);
	assert_true(soft_staging_add(&staging, shelf.bytes, shelf.generations));
	assert_int_equal(soft_lane_open(slot, 7, &shelf, &p.out), 0);
	assert_int_equal(soft_lane_in_accept(listener, &p.in), 0);
	assert_int_equal(soft_lane_in_hear(p.in, bell), 0);
	assert_int_equal(soft_lane_hear(p.out), 0);
	assert_non_null(p.in->view);
	p.memory = soft_staging_get(&staging, BYTES);
	for (unsigned int i = 0; i < BYTES; i++)
		p.memory[i] = (uint8_t)(i * 13 + (i >> 8));
	assert_true(send_piece(&p, 1, 5, 300001, true));
	got = receive(&p, 1);
	assert_int_equal(got->fetched, 1);
	assert_memory_equal(got->bytes, p.memory + 5, 300001);
	assert_int_equal(p.in->stats.mapped_bytes, 300001);
	assert_int_equal(p.in->stats.pulls, 0);
	/* Taken back and given away: neither way has it. */
	assert_true(send_piece(&p, 1, 5, 300001, true));
	soft_lane_take_back_of(p.out, 1);
	soft_staging_put(&staging, p.memory, BYTES);
	assert_int_equal(receive(&p, 1)->lost, 1);
	assert_int_equal(p.in->stats.mapped_bytes, 300001);
	soft_lane_close(p.out);
	soft_lane_in_close(p.in);
	wrong = shelf;
	wrong.fd = memfd_create("unsealed", MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(wrong.fd, SOFT_SHELF_BYTES + SOFT_SHELF_TAIL), 0);
	assert_int_equal(soft_lane_open(slot, 7, &wrong, &p.out), 0);
	assert_int_equal(soft_lane_in_accept(listener, &p.in), 0);
	assert_int_equal(soft_lane_in_hear(p.in, bell), 0);
	assert_int_equal(soft_lane_hear(p.out), 0);
	assert_null(p.in->view);
	assert_int_equal(p.in->view_errno, EPROTO);
	assert_true(send_piece(&p, 1, 5, 300001, true));
	got = receive(&p, 1);
	assert_int_equal(got->fetched, 1);
	assert_memory_equal(got->bytes, p.memory + 5, 300001);
	assert_int_equal(p.in->stats.pulled_bytes, 300001);
	soft_lane_close(p.out);
	soft_lane_in_close(p.in);
	close(wrong.fd);
	soft_shelf_done(&shelf);
}

static int run_other_user(void)
{
	struct soft_hello hello = {.magic = SOFT_LANE_MAGIC};
	int fd;

	if (setresuid(65534, 65534, 65534) < 0)
		return 77;
	fd = soft_door_knock(slot, &hello, 0, -1);
	return fd == -EPERM ? 0 : 1;
}

/* The kernel tells either end who the other is. */
static void test_another_user(void **state)
{
	struct soft_lane_in *in;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(run_other_user());
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("not tried: another user (it takes root)\n");
		return;
	}
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(soft_lane_in_accept(listener, &in), -EPERM);
	assert_int_equal(soft_lane_in_accept(listener, &in), -EAGAIN);
}

static void test_nobody_there(void **state)
{
	struct soft_lane *lane = NULL;

	assert_int_equal(soft_lane_open(slot + 1, 7, NULL, &lane), -ECONNREFUSED);
	assert_null(lane);
}

/* The word that proves who it is must be what it says, in the process that it says. */
static void test_proof(void **state)
{
	volatile uint64_t word = 42;
	pid_t pid;

	assert_int_equal(soft_pull_try(getpid(), (uintptr_t)&word, 42), 0);
	assert_int_equal(soft_pull_try(getpid(), (uintptr_t)&word, 43), ESRCH);
	assert_int_equal(soft_pull_try(getpid(), 0, 42), EFAULT);
	assert_int_equal(soft_pull_try(0, (uintptr_t)&word, 42), ESRCH);
	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(soft_pull_try(pid, (uintptr_t)&word, 42), ESRCH);
}

static int set_up(void **state)
{
	slot = 1000000 + (unsigned int)getpid();
	listener = soft_door_listen(slot);
	bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return listener < 0 || bell < 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_payload),
		cmocka_unit_test(test_taken_back),
		cmocka_unit_test(test_not_readable),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_wakes_who_sleeps),
		cmocka_unit_test(test_rubbish),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_shelf),
		cmocka_unit_test(test_showing),
		cmocka_unit_test(test_hostile_hello),
		cmocka_unit_test(test_another_user),
		cmocka_unit_test(test_nobody_there),
		cmocka_unit_test(test_proof),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
