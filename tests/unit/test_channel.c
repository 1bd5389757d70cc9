/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control channel between two processes, and before strangers. What a stranger may say is
 * written down by hand here: a request of HTTP/1.1 (RFC 9112), a ClientHello's record (RFC 8446),
 * frames cut off, repeated, swapped, sent back. The code of a frame is computed by libsodium's
 * one-call HMAC, not by the code under test.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma/channel.h"
#include "rdma/channel_state.h"
#include "rdma/gate.h"
#include "rdma/location.h"

static const char token[] = "correct horse battery";

static pp_ns in(double seconds)
{
	return pp_clock_monotonic() + (pp_ns)(seconds * (double)PP_SECOND);
}

static int listener(uint16_t *ret_port)
{
	struct pp_error err;
	int fd = -1;

	assert_int_equal(pp_channel_listen("127.0.0.1:0", &fd, ret_port, &err), 0);
	return fd;
}

/* A child that runs @run with the port; its exit status is the number of its failures. */
static pid_t child(int (*run)(const char *address), uint16_t port)
{
	char address[64];
	pid_t pid = fork();

	if (pid)
		return pid;
	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	_exit(run(address));
}

static void ended_well(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int socket_to(const char *address)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct pp_location l;
	struct pp_error err;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (pp_location_parse(address, 1, &l, &err))
		return -1;
	to.sin_port = htons(l.port);
	return connect(fd, (struct sockaddr *)&to, sizeof(to)) ? -1 : fd;
}

static int says_hello(const char *address)
{
	struct pp_channel *c = NULL;
	struct pp_error err;
	json_t *m = NULL;
	int bad = 0;

	if (pp_channel_connect(address, token, in(5), NULL, &c, &err))
		return 1;
	bad += pp_channel_send(c, "{\"n\":1}", 7, &err) != 0;
	bad += pp_channel_receive(c, in(5), NULL, &m, &err) != 0;
	bad += json_integer_value(json_object_get(m, "n")) != 2;
	json_decref(m);
	(void)pp_channel_free(c);
	return bad;
}

static unsigned int refusals;
static char last_refusal[512];

static void note_refusal(const char *peer, const char *why)
{
	assert_true(peer[0]);
	refusals++;
	(void)snprintf(last_refusal, sizeof(last_refusal), "%s", why);
}

static void note_gate(void *arg, const char *peer, const char *why)
{
	assert_null(arg);
	note_refusal(peer, why);
}

static struct pp_channel *accepted(int fd)
{
	struct pp_channel *c = NULL;
	struct pp_error err;

	refusals = 0;
	assert_int_equal(pp_channel_accept(fd, token, in(30), NULL, note_refusal, &c, &err), 0);
	return c;
}

static json_t *message(struct pp_channel *c)
{
	struct pp_error err = {0};
	json_t *m = NULL;

	assert_int_equal(pp_channel_receive(c, in(5), NULL, &m, &err), 0);
	return m;
}

static void answers_hello(int fd)
{
	struct pp_channel *c = accepted(fd);
	struct pp_error err;
	json_t *m = message(c);

	assert_int_equal(json_integer_value(json_object_get(m, "n")), 1);
	json_decref(m);
	assert_int_equal(pp_channel_send(c, "{\"n\":2}", 7, &err), 0);
	/* The other side closes: that is the end, not a fault of the next message. */
	assert_int_equal(pp_channel_receive(c, in(5), NULL, &m, &err), -ECONNRESET);
	(void)pp_channel_free(c);
}

static void test_talks(void **state)
{
	uint16_t port;
	int fd = listener(&port);
	pid_t pid = child(says_hello, port);

	(void)state;
	answers_hello(fd);
	ended_well(pid);
	(void)close(fd);
}

static int says_hello_v6(const char *address)
{
	char six[64];

	(void)snprintf(six, sizeof(six), "[::1]%s", strchr(address, ':'));
	return says_hello(six);
}

static int says_hello_by_name(const char *address)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "localhost%s", strchr(address, ':'));
	return says_hello(name);
}

static void test_families_and_names(void **state)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int probe = socket(AF_INET6, SOCK_STREAM, 0), fd = -1;
	bool has_v6 = probe >= 0 && bind(probe, (struct sockaddr *)&six, sizeof(six)) == 0;
	struct pp_error err;
	uint16_t port;
	pid_t pid;

	(void)state;
	(void)close(probe);
	assert_int_equal(pp_channel_listen(":0", &fd, &port, &err), 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	if (has_v6) {
		pid = child(says_hello_v6, port);
		answers_hello(fd);
		ended_well(pid);
	} else {
		print_message("no IPv6 here\n");
	}
	pid = child(says_hello_by_name, port);
	answers_hello(fd);
	ended_well(pid);
	(void)close(fd);
}

static int strangers(const char *address)
{
	static const struct {
		const char *bytes;
		size_t len;
	} said[] = {
		{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27},
		{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11},
		{"SSH-2.0-OpenSSH_9.2\r\n", 21},
		{"peerpat", 7}, /* cut off */
		{"peerpath\0\0\0\1", 12},
		{"peerpath\0\0\0\1\0\0\0\1................................", 48},
		{"\0", 1},
		{"", 0},
	};
	char answer[64];
	int bad = 0;

	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		int fd = socket_to(address);

		if (fd < 0)
			return 1;
		(void)send(fd, said[i].bytes, said[i].len, MSG_NOSIGNAL);
		(void)shutdown(fd, SHUT_WR);
		/* Whoever does not greet hears nothing. */
		bad += recv(fd, answer, sizeof(answer), 0) > 0;
		(void)close(fd);
	}
	return bad + says_hello(address);
}

static void test_strangers(void **state)
{
	uint16_t port;
	int fd = listener(&port);
	pid_t pid = child(strangers, port);

	(void)state;
	answers_hello(fd);
	ended_well(pid);
	assert_int_equal(refusals, 8);
	(void)close(fd);
}

/* A peer whose protocol is another: both numbers are named, on both sides. */
static int other_version(const char *address)
{
	static const uint8_t greeting[48] = "peerpath\0\0\0\7";
	uint8_t answer[48];
	int fd = socket_to(address), bad;

	(void)send(fd, greeting, sizeof(greeting), MSG_NOSIGNAL);
	bad = recv(fd, answer, sizeof(answer), MSG_WAITALL) != sizeof(answer) ||
	      memcmp(answer, "peerpath\0\0\0\1", 12) != 0;
	(void)close(fd);
	return bad + says_hello(address);
}

static void test_other_version(void **state)
{
	uint16_t port;
	int fd = listener(&port);
	pid_t pid = child(other_version, port);

	(void)state;
	answers_hello(fd);
	ended_well(pid);
	assert_non_null(strstr(last_refusal, "version 7"));
	assert_non_null(strstr(last_refusal, "version 1"));
	(void)close(fd);
}

/* Answers each dialler with bytes of its own, once. */
static pid_t answerer(int fd, const void *bytes, size_t len, bool reflect)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	pid_t pid = fork();
	char got[64];
	ssize_t n;
	int peer;

	if (pid)
		return pid;
	(void)poll(&p, 1, 10000);
	peer = accept(fd, NULL, NULL);
	n = recv(peer, got, 48, MSG_WAITALL);
	(void)send(peer, reflect ? got : bytes, reflect ? (size_t)n : len, MSG_NOSIGNAL);
	(void)recv(peer, got, 1, 0);
	_exit(0);
}

static void dials(uint16_t port, double seconds, int code, const char *words)
{
	struct pp_channel *c = NULL;
	struct pp_error err = {0};
	char address[32];

	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	assert_int_equal(pp_channel_connect(address, token, in(seconds), NULL, &c, &err), code);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void test_dialler_meets_strangers(void **state)
{
	static const char http[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
	static const char later[] = "peerpath\0\0\0\11";
	uint16_t port;
	int fd = listener(&port);
	pid_t pid;

	(void)state;
	pid = answerer(fd, http, sizeof(http) - 1, false);
	dials(port, 20, -EPROTO, "says \"HTTP/1.1 400\"");
	ended_well(pid);
	pid = answerer(fd, later, 12, false);
	dials(port, 20, -EPROTO, "version 9");
	ended_well(pid);
	pid = answerer(fd, NULL, 0, true);
	dials(port, 20, -EPROTO, "sends back");
	ended_well(pid);
	pid = answerer(fd, NULL, 0, false);
	dials(port, 0.5, -ETIMEDOUT, "says nothing");
	ended_well(pid);
	(void)close(fd);
	dials(port, 0.5, -ECONNREFUSED, "nobody listens");
}

enum { WRONG_TOKENS = 10000 };

static int guesses(const char *address)
{
	struct pp_channel *c = NULL;
	struct pp_error err;
	char guess[32];

	for (int i = 0; i < WRONG_TOKENS; i++) {
		(void)snprintf(guess, sizeof(guess), "guess number %d", i);
		if (pp_channel_connect(address, guess, in(5), NULL, &c, &err) != -EACCES)
			return 1;
	}
	return says_hello(address);
}

static unsigned int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

static void test_wrong_tokens(void **state)
{
	uint16_t port;
	int fd = listener(&port);
	unsigned int before = open_files();
	pid_t pid = child(guesses, port);

	(void)state;
	answers_hello(fd);
	ended_well(pid);
	assert_int_equal(refusals, WRONG_TOKENS);
	assert_int_equal(open_files(), before);
	assert_non_null(strstr(last_refusal, "another token"));
	(void)close(fd);
}

/* 40 that say nothing, and one that knows: it is let in before any of them has to go. */
static int silent_crowd(const char *address)
{
	int fd[40], bad;

	for (int i = 0; i < 40; i++)
		fd[i] = socket_to(address);
	bad = says_hello(address);
	for (int i = 0; i < 40; i++)
		(void)close(fd[i]);
	return bad;
}

static void test_gate_and_silent_crowd(void **state)
{
	struct pp_channel *c = NULL;
	const struct pp_gate_options o = {
		.token = token, .introduction = "{}", .refused = note_gate};
	struct pp_gate *g = NULL;
	struct pp_error err;
	uint16_t port;
	int fd = listener(&port);
	pid_t pid = child(silent_crowd, port);

	(void)state;
	refusals = 0;
	assert_int_equal(pp_gate_new(fd, &o, &g, &err), 0);
	assert_int_equal(pp_gate_wait(g, in(4), NULL, &c, &err), 0);
	assert_true(refusals >= 9); /* 41 came, 32 may wait */
	assert_int_equal(pp_channel_send(c, "{\"n\":2}", 7, &err), 0);
	json_decref(message(c));
	(void)pp_channel_free(c);
	(void)pp_gate_free(g);
	ended_well(pid);
}

/* What a code is, by libsodium's one call. */
static size_t by_hand(const struct pp_frame_way *way, uint64_t number, const char *text,
		      uint8_t *ret)
{
	uint8_t bytes[256] = {0};
	size_t len = strlen(text);

	bytes[7] = (uint8_t)number;
	bytes[11] = (uint8_t)len;
	memcpy(bytes + 12, text, len);
	memcpy(ret, bytes + 8, 4);
	(void)crypto_auth_hmacsha256(ret + 4, bytes, 12 + len, way->key);
	memcpy(ret + 36, text, len);
	return 36 + len;
}

static void test_frames(void **state)
{
	static const uint8_t a[32] = {1}, b[32] = {2};
	struct pp_frame_way out, in_way, other;
	uint8_t head[PP_FRAME_HEAD], one[128], two[128];
	struct pp_frame f;
	size_t n;

	(void)state;
	pp_frame_keys(token, a, b, &out, &other);
	in_way = out;
	assert_memory_not_equal(out.key, other.key, 32);
	n = by_hand(&out, 0, "{\"x\":1}", one);
	assert_int_equal(pp_frame_head(&out, "{\"x\":1}", 7, head), 36);
	assert_memory_equal(head, one, 36);
	(void)by_hand(&out, 1, "{\"x\":2}", two);
	/* Cut off anywhere: more is needed, never more than there is. */
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(pp_frame_read(&in_way, one, i, 100, &f), -EAGAIN);
		assert_true(f.need > i && f.need <= n);
	}
	assert_int_equal(pp_frame_read(&in_way, two, n, 100, &f), -EBADMSG); /* one left out */
	assert_int_equal(pp_frame_read(&other, one, n, 100, &f), -EBADMSG);  /* sent back */
	assert_int_equal(pp_frame_read(&in_way, one, n, 6, &f), -EMSGSIZE);
	assert_int_equal(pp_frame_read(&in_way, one, n, 100, &f), 0);
	assert_int_equal(f.len, 7);
	assert_memory_equal(f.text, "{\"x\":1}", 7);
	assert_int_equal(pp_frame_read(&in_way, one, n, 100, &f), -EBADMSG); /* repeated */
	for (size_t i = 4; i < n; i++) {
		two[i] ^= 1;
		assert_int_equal(pp_frame_read(&in_way, two, n, 100, &f), -EBADMSG);
		two[i] ^= 1;
	}
	assert_int_equal(pp_frame_read(&in_way, two, n, 100, &f), 0);
	/* Another token, another nonce: other keys. */
	pp_frame_keys("correct horse batterz", a, b, &other, &in_way);
	assert_memory_not_equal(out.key, other.key, 32);
	pp_frame_keys(token, a, a, &other, &in_way);
	assert_memory_not_equal(out.key, other.key, 32);
}

static void test_pair(void **state)
{
	/* Static: a child that exits has lost no memory that way. */
	static struct pp_channel *c[2];
	static char *text;
	size_t big = PP_CHANNEL_MOST;
	struct pp_error err = {0};
	json_t *m = NULL;
	pid_t pid;

	(void)state;
	text = malloc(big + 1);
	assert_non_null(text);
	assert_int_equal(pp_channel_pair(c, &err), 0);
	assert_string_equal(pp_channel_peer(c[0]), "local");
	assert_int_equal(pp_channel_receive(c[0], in(0), NULL, &m, &err), -ETIMEDOUT);
	memset(text, ' ', big + 1);
	memcpy(text, "{\"whole\":true", 13);
	text[big - 1] = '}';
	assert_int_equal(pp_channel_send(c[0], text, big + 1, &err), -EMSGSIZE);
	assert_int_equal(pp_channel_send(c[0], "", 0, &err), -EMSGSIZE);
	pid = fork();
	if (!pid)
		_exit(pp_channel_send(c[0], text, big, &err) != 0);
	assert_int_equal(pp_channel_receive(c[1], in(20), NULL, &m, &err), 0);
	assert_true(json_is_true(json_object_get(m, "whole")));
	json_decref(m);
	ended_well(pid);
	assert_int_equal(pp_channel_send(c[0], "[1]", 3, &err), 0);
	assert_int_equal(pp_channel_receive(c[1], in(1), NULL, &m, &err), -EBADMSG);
	assert_int_equal(pp_channel_send(c[0], "{\"a\":1,\"a\":2}", 13, &err), 0);
	assert_int_equal(pp_channel_receive(c[1], in(1), NULL, &m, &err), -EBADMSG);
	/* 4 GiB announced: refused before memory is taken. */
	assert_int_equal(send(pp_channel_fd(c[0]), "\xff\xff\xff\xff", 4, 0), 4);
	assert_int_equal(pp_channel_receive(c[1], in(1), NULL, &m, &err), -EMSGSIZE);
	(void)pp_channel_free(c[1]);
	assert_int_equal(pp_channel_send(c[0], "{}", 2, &err), -EPIPE);
	(void)pp_channel_free(c[0]);
	free(text);
}

/* A peer that ends in the middle of a message; SIGPIPE, at its default, would end this test. */
static void test_cut_off(void **state)
{
	struct pp_channel *c[2];
	struct pp_error err = {0};
	json_t *m = NULL;

	(void)state;
	assert_int_equal(pp_channel_pair(c, &err), 0);
	assert_int_equal(send(pp_channel_fd(c[0]), "\0\0\0\x08{\"a", 7, 0), 7);
	assert_int_equal(pp_channel_receive(c[1], in(0.05), NULL, &m, &err), -ETIMEDOUT);
	(void)pp_channel_free(c[0]);
	assert_int_equal(pp_channel_receive(c[1], in(1), NULL, &m, &err), -ECONNRESET);
	assert_non_null(strstr(err.text, "in the middle"));
	(void)pp_channel_free(c[1]);
}

static void test_locations(void **state)
{
	static const struct {
		const char *text, *host;
		int port; /* -1: refused */
	} rows[] = {
		{"n1", "n1", 7},
		{"n1:80", "n1", 80},
		{":0", "", 0},
		{"10.0.0.1:65535", "10.0.0.1", 65535},
		{"[::1]", "::1", 7},
		{"[::1]:9", "::1", 9},
		{"fe80::1%eth0", "fe80::1%eth0", 7},
		{"", NULL, -1},
		{"n1:", NULL, -1},
		{"n1:65536", NULL, -1},
		{"n1:-1", NULL, -1},
		{"[::1", NULL, -1},
		{"[::1]x", NULL, -1},
		{"a b", NULL, -1},
		{"a/b", NULL, -1},
		{"n1:8o", NULL, -1},
	};
	struct pp_location l;
	struct pp_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int r = pp_location_parse(rows[i].text, 7, &l, &err);

		assert_int_equal(r, rows[i].port < 0 ? -EINVAL : 0);
		if (r)
			continue;
		assert_string_equal(l.host, rows[i].host);
		assert_int_equal(l.port, rows[i].port);
	}
}

static bool always(void)
{
	return true;
}

static void test_unreachable(void **state)
{
	struct pp_channel *c = NULL;
	struct pp_error err = {0};
	uint16_t port;
	int fd = listener(&port);

	(void)state;
	assert_int_equal(pp_channel_connect("no-such-host.invalid", token, in(10), NULL, &c, &err),
			 -EHOSTUNREACH);
	assert_non_null(strstr(err.text, "no-such-host.invalid"));
	assert_int_equal(pp_channel_accept(fd, token, in(0), NULL, NULL, &c, &err), -ETIMEDOUT);
	assert_int_equal(pp_channel_accept(fd, token, in(9), always, NULL, &c, &err), -EINTR);
	assert_int_equal(pp_channel_connect("127.0.0.1:1", token, in(9), always, &c, &err), -EINTR);
	assert_int_equal(pp_channel_listen("127.0.0.1:70000", &fd, &port, &err), -EINVAL);
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_locations),
		cmocka_unit_test(test_pair),
		cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_talks),
		cmocka_unit_test(test_families_and_names),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_other_version),
		cmocka_unit_test(test_dialler_meets_strangers),
		cmocka_unit_test(test_wrong_tokens),
		cmocka_unit_test(test_gate_and_silent_crowd),
		cmocka_unit_test(test_unreachable),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
