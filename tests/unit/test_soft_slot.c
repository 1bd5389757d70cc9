/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: who gets which number, what is handed on, and what a hostile neighbour can send.
 */
#include "unit.h"

#include <poll.h>
#include <stddef.h>
#include <sys/un.h>

#include "soft/link/slot.h"
#include "soft_net.h"

static const char *skipped; /* why something was not tried */

static struct soft_slot *take(void)
{
	struct soft_slot *slot = NULL;
	struct pp_error err = {0};

	if (soft_slot_take(&slot, &err) < 0)
		fail_msg("%s", err.text);
	return slot;
}

static void test_lowest_is_taken(void **state)
{
	struct soft_slot *a = take(), *b = take(), *c = take();

	assert_int_equal(soft_slot_number(b), soft_slot_number(a) + 1);
	assert_int_equal(soft_slot_number(c), soft_slot_number(a) + 2);
	soft_slot_free(b);
	b = take();
	assert_int_equal(soft_slot_number(b), soft_slot_number(a) + 1);
	soft_slot_free(a);
	soft_slot_free(b);
	soft_slot_free(c);
	soft_slot_free(NULL);
}

static void test_all_taken(void **state)
{
	static struct soft_slot *slots[SOFT_SLOTS];
	struct pp_error err = {0};
	unsigned int n = 0;
	int rc = 0;

	while (n < SOFT_SLOTS && (rc = soft_slot_take(&slots[n], &err)) == 0)
		n++;
	if (rc == 0) {
		struct soft_slot *more = NULL;

		rc = soft_slot_take(&more, &err);
		assert_null(more);
	}
	assert_int_equal(rc, -EUSERS);
	assert_non_null(strstr(err.text, "256"));
	while (n)
		soft_slot_free(slots[--n]);
}

static void test_free_after_death(void **state)
{
	struct soft_slot *slot;
	int status, pipes[2];
	uint8_t number;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		slot = take();
		number = (uint8_t)soft_slot_number(slot);
		(void)!write(pipes[1], &number, 1);
		(void)raise(SIGKILL);
	}
	assert_int_equal(read(pipes[0], &number, 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	slot = take();
	assert_int_equal(soft_slot_number(slot), number);
	soft_slot_free(slot);
	(void)close(pipes[0]);
	(void)close(pipes[1]);
}

struct seen {
	unsigned int n;
	size_t bytes;
	struct soft_datagram last;
	uint8_t copy[65536];
};

static void see(void *arg, const struct soft_datagram *d)
{
	struct seen *seen = arg;

	seen->n++;
	seen->last = *d;
	memcpy(seen->copy + seen->bytes, d->bytes, d->len);
	seen->bytes += d->len;
}

static const struct soft_datagram sample = {
	.src = {{[10] = 0xff, [11] = 0xff, 10, 1, 2, 3}},
	.dst = {{[0] = 0xfd, [15] = 9}},
	.sport = 0xC123,
	.place = 5,
	.traffic_class = 0x6a,
	.hop_limit = 63,
};

static void test_pass(void **state)
{
	struct soft_slot *a = take(), *b = take();
	struct soft_datagram d = sample;
	struct pollfd p = {.fd = soft_slot_fd(b), .events = POLLIN};
	static struct seen seen;
	static uint8_t bytes[60000];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + (i >> 8));
	memset(&seen, 0, sizeof(seen));
	assert_int_equal(soft_slot_receive(b, SIZE_MAX, see, &seen), 0);
	d.bytes = bytes;
	d.len = 100;
	assert_int_equal(soft_slot_pass(a, soft_slot_number(b), &d), 0);
	assert_int_equal(poll(&p, 1, 1000), 1);
	assert_int_equal(soft_slot_receive(b, SIZE_MAX, see, &seen), 1);
	assert_int_equal(seen.last.len, 100);
	assert_memory_equal(seen.copy, bytes, 100);
	assert_true(soft_gid_equal(&seen.last.src, &sample.src));
	assert_true(soft_gid_equal(&seen.last.dst, &sample.dst));
	assert_int_equal(seen.last.sport, 0xC123);
	assert_int_equal(seen.last.place, 5);
	assert_int_equal(seen.last.traffic_class, 0x6a);
	assert_int_equal(seen.last.hop_limit, 63);

	/* A train: 14 datagrams of 4112 bytes and one of 2432. */
	memset(&seen, 0, sizeof(seen));
	d.len = sizeof(bytes);
	assert_int_equal(soft_slot_pass_train(a, soft_slot_number(b), &d, 4112), 0);
	assert_int_equal(soft_slot_receive(b, SIZE_MAX, see, &seen), 15);
	assert_int_equal(seen.last.place, 5 + 14);
	assert_int_equal(seen.last.len, 60000 - 14 * 4112);
	assert_memory_equal(seen.copy, bytes, sizeof(bytes));
	assert_int_equal(soft_slot_stats(b)->taken, 2);
	assert_int_equal(soft_slot_stats(a)->passed, 2);
	soft_slot_free(a);
	soft_slot_free(b);
}

static void test_pass_to_nobody(void **state)
{
	struct soft_slot *a = take();
	struct soft_datagram d = sample;
	uint8_t bytes[32] = {0};

	d.bytes = bytes;
	d.len = sizeof(bytes);
	assert_int_equal(soft_slot_pass(a, 255, &d), -ECONNREFUSED);
	assert_int_equal(soft_slot_pass(a, 256, &d), -EINVAL);
	assert_int_equal(soft_slot_pass(a, soft_slot_number(a), &d), -EINVAL);
	assert_int_equal(soft_slot_pass_train(a, 255, &d, 0), -EINVAL);
	assert_int_equal(soft_slot_pass_train(a, 255, &d, 33), -EINVAL);
	assert_int_equal(soft_slot_stats(a)->not_passed, 1);
	soft_slot_free(a);
}

/* Nobody reads: the sender is told at once, and the kernel holds no more than its queue. */
static void test_full_queue(void **state)
{
	struct soft_slot *a = take(), *b = take();
	struct soft_datagram d = sample;
	static struct seen seen;
	uint8_t bytes[32] = {0};
	unsigned int sent = 0;
	int rc = 0;

	d.bytes = bytes;
	d.len = sizeof(bytes);
	while (rc == 0 && sent < 100000)
		if ((rc = soft_slot_pass(a, soft_slot_number(b), &d)) == 0)
			sent++;
	assert_int_equal(rc, -EAGAIN);
	memset(&seen, 0, sizeof(seen));
	assert_int_equal(soft_slot_receive(b, 64, see, &seen), 2); /* the budget */
	while (soft_slot_receive(b, 1000, see, &seen))
		;
	assert_int_equal(seen.n, sent);
	soft_slot_free(a);
	soft_slot_free(b);
}

static socklen_t name(unsigned int number, struct sockaddr_un *to)
{
	*to = (struct sockaddr_un){.sun_family = AF_UNIX};
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(to->sun_path + 1, 100, "peerpath-soft.%u", number));
}

static void send_raw(int fd, unsigned int number, const void *bytes, size_t len)
{
	struct sockaddr_un to;
	socklen_t namelen = name(number, &to);

	(void)sendto(fd, bytes, len, MSG_DONTWAIT, (struct sockaddr *)&to, namelen);
}

/* A message as soft_slot_pass() makes it, caught by a socket that poses as a slot. */
static size_t catch_message(struct soft_slot *from, uint8_t *ret, size_t size)
{
	struct soft_datagram d = sample;
	struct sockaddr_un at;
	socklen_t len = name(254, &at);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	uint8_t bytes[40] = {1, 2, 3};
	ssize_t n;

	assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
	d.bytes = bytes;
	d.len = sizeof(bytes);
	assert_int_equal(soft_slot_pass_train(from, 254, &d, 8), 0);
	n = recv(fd, ret, size, 0);
	assert_true(n > 40);
	(void)close(fd);
	return (size_t)n;
}

static unsigned int drain(struct soft_slot *slot, struct seen *seen)
{
	memset(seen, 0, sizeof(*seen));
	return soft_slot_receive(slot, SIZE_MAX, see, seen);
}

static void test_malformed(void **state)
{
	struct soft_slot *a = take(), *b = take();
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned int number = soft_slot_number(b);
	uint8_t good[256], bad[256];
	size_t len = catch_message(a, good, sizeof(good));
	static uint8_t big[80000];
	static struct seen seen;
	uint64_t refused = 0;

	send_raw(fd, number, good, len); /* an unnamed socket of our user may */
	assert_int_equal(drain(b, &seen), 5);
	/* Every length that cuts the head or leaves nothing. */
	for (size_t n = 0; n <= len - 40; n++) {
		send_raw(fd, number, good, n);
		assert_int_equal(drain(b, &seen), 0);
		refused++;
	}
	for (size_t byte = 0; byte < 4; byte++) { /* magic */
		memcpy(bad, good, len);
		bad[byte] ^= 0x10;
		send_raw(fd, number, bad, len);
		assert_int_equal(drain(b, &seen), 0);
		refused++;
	}
	memcpy(bad, good, len);
	memset(bad + 4, 0, 4); /* a segment of no bytes would never end */
	send_raw(fd, number, bad, len);
	assert_int_equal(drain(b, &seen), 0);
	memset(bad + 4, 0xff, 4);
	send_raw(fd, number, bad, len);
	assert_int_equal(drain(b, &seen), 0);
	memcpy(big, good, len);
	send_raw(fd, number, big, sizeof(big)); /* more than a datagram can have */
	assert_int_equal(drain(b, &seen), 0);
	refused += 3;
	assert_int_equal(soft_slot_stats(b)->refused, refused);
	assert_int_equal(soft_slot_stats(b)->taken, 1);
	(void)close(fd);
	soft_slot_free(a);
	soft_slot_free(b);
}

static int lowest_free_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)close(fd);
	return fd;
}

/* Descriptors that a neighbour attaches must not pile up here. */
static void test_attached_descriptors(void **state)
{
	struct soft_slot *b = take();
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), lowest = lowest_free_fd();
	static struct seen seen;

	for (unsigned int n = 1; n <= 64; n *= 2) {
		char control[CMSG_SPACE(64 * sizeof(int))] = {0};
		struct sockaddr_un to;
		struct iovec iov = {control, 1};
		struct msghdr msg = {.msg_name = &to,
				     .msg_namelen = name(soft_slot_number(b), &to),
				     .msg_iov = &iov,
				     .msg_iovlen = 1,
				     .msg_control = control,
				     .msg_controllen = CMSG_SPACE(n * sizeof(int))};
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		for (unsigned int i = 0; i < n; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(fd), &fd, sizeof(fd));
		assert_int_equal(sendmsg(fd, &msg, 0), 1);
		assert_int_equal(drain(b, &seen), 0);
		assert_int_equal(lowest_free_fd(), lowest);
	}
	assert_int_equal(soft_slot_stats(b)->refused, 7);
	(void)close(fd);
	soft_slot_free(b);
}

static void test_another_user(void **state)
{
	struct soft_slot *a, *b;
	static struct seen seen;
	uint8_t good[256];
	size_t len;
	int status;
	pid_t pid;

	if (geteuid() != 0) {
		skipped = "another user's messages: needs root";
		skip();
	}
	a = take();
	b = take();
	len = catch_message(a, good, sizeof(good));
	pid = fork();
	if (pid == 0) {
		int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		if (setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		send_raw(fd, soft_slot_number(b), good, len);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WEXITSTATUS(status) == 2)
		skipped = "another user's messages: nobody has no number in this user namespace";
	assert_int_equal(drain(b, &seen), 0);
	assert_int_equal(soft_slot_stats(b)->refused, WEXITSTATUS(status) == 2 ? 0 : 1);
	soft_slot_free(a);
	soft_slot_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lowest_is_taken),
		cmocka_unit_test(test_all_taken),
		cmocka_unit_test(test_free_after_death),
		cmocka_unit_test(test_pass),
		cmocka_unit_test(test_pass_to_nobody),
		cmocka_unit_test(test_full_queue),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_attached_descriptors),
		cmocka_unit_test(test_another_user),
	};
	int rc;

	if (net_own() < 0) {
		printf("skipped: no network namespace may be made, and slots are one a "
		       "namespace\n");
		return 77;
	}
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	if (rc == 0 && skipped) {
		printf("skipped: %s\n", skipped);
		return 77;
	}
	return rc;
}
