/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link from one network namespace to another over a veth pair of MTU 1500, and what a capture of
 * the wire shows: trains come apart on it, so that a judge written by others can check each ICRC
 * with the identification that the kernel really gave.
 */
#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "soft/link/host.h"
#include "soft/link/link.h"
#include "soft_net.h"

enum { PACKETS = 200, MTU = 1024, WAIT_MS = 10000 };

struct shared {
	_Atomic bool ready;
	_Atomic uint64_t right, wrong,
		places; /* places: with a place in a train beyond the first */
};

static struct shared *shared;
static pid_t child = -1;
static struct soft_gid near4, far4, near6, far6;
static struct soft_link *link_;
static uint8_t memory[PACKETS * MTU];
static char judge[4096];

static struct soft_gid ipv6(uint8_t last)
{
	return (struct soft_gid){{0xfd, 0x77, [15] = last}};
}

static struct soft_link *open_link(const struct soft_gid *a, const struct soft_gid *b)
{
	struct soft_link_config config = {.gids = {*a, *b}, .num_gids = 2};
	struct soft_link *link = NULL;
	struct pp_error err = {0};

	if (soft_link_open(&config, &link, &err) < 0)
		(void)fprintf(stderr, "%s\n", err.text);
	return link;
}

static void see(void *arg, const struct soft_datagram *d)
{
	struct soft_icrc_flow flow;
	struct soft_packet p;

	soft_icrc_flow_init(&flow, &d->src, &d->dst, d->sport);
	if (soft_packet_decode(d->bytes, d->len, &p) == 0 && p.psn < PACKETS &&
	    p.payload_bytes == MTU && memcmp(p.payload, memory + p.psn * MTU, MTU) == 0 &&
	    d->hop_limit == 64 && soft_icrc_check(&flow, d->place, d->bytes, d->len))
		shared->right++;
	else
		shared->wrong++;
	shared->places += d->place > 0;
}

/* The other end: waits for its half of the pair, and takes what comes. */
static int far_end(void)
{
	int fds[SOFT_LINK_FDS_MAX];
	struct soft_link *link;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET) < 0)
		return 1;
	shared->ready = true;
	for (int i = 0; i < WAIT_MS && if_nametoindex("there") == 0; i++)
		(void)poll(NULL, 0, 1);
	if (NET_RUN("ip", "addr", "add", "10.77.0.2/24", "dev", "there") ||
	    NET_RUN("ip", "-6", "addr", "add", "fd77::2/64", "dev", "there", "nodad") ||
	    NET_RUN("ip", "link", "set", "there", "up"))
		return 1;
	link = open_link(&far4, &far6);
	if (!link)
		return 1;
	shared->ready = true;
	for (;;) {
		unsigned int n = soft_link_fds(link, fds);
		struct pollfd p[2] = {{.fd = fds[0], .events = POLLIN},
				      {.fd = fds[1], .events = POLLIN}};

		(void)poll(p, n, 100);
		(void)soft_link_receive(link, SIZE_MAX, see, NULL);
	}
}

static bool wait_ready(void)
{
	pp_ns end = pp_clock_monotonic() + WAIT_MS * PP_MILLISECOND;

	while (!shared->ready && pp_clock_monotonic() < end)
		(void)poll(NULL, 0, 1);
	return atomic_exchange(&shared->ready, false);
}

/* What keeps the pair from being made, or NULL. */
static const char *make_pair(void)
{
	char pid[16];

	if (NET_RUN("ip", "link", "add", "here", "type", "veth", "peer", "name", "there"))
		return "no veth, or no iproute2";
	child = fork();
	if (child == 0)
		_exit(far_end());
	if (child < 0 || !wait_ready())
		return "no second network namespace";
	(void)snprintf(pid, sizeof(pid), "%d", (int)child);
	/* A capture sees packets as they are on a wire when the device takes no trains. */
	if (NET_RUN("ip", "link", "set", "here", "gso_max_segs", "1") ||
	    NET_RUN("ip", "link", "set", "there", "netns", pid) ||
	    NET_RUN("ip", "addr", "add", "10.77.0.1/24", "dev", "here") ||
	    NET_RUN("ip", "-6", "addr", "add", "fd77::1/64", "dev", "here", "nodad") ||
	    NET_RUN("ip", "link", "set", "here", "up") || !wait_ready())
		return "iproute2 cannot set up the pair";
	link_ = open_link(&near4, &near6);
	return link_ ? NULL : "no link over the pair";
}

static void send_all(const struct soft_gid *src, const struct soft_gid *dst)
{
	struct soft_path path;
	uint64_t want = shared->right + PACKETS;
	pp_ns end = pp_clock_monotonic() + WAIT_MS * PP_MILLISECOND;

	assert_int_equal(soft_link_path(link_, src, dst, 7, &path), 0);
	for (uint32_t psn = 0; psn < PACKETS; psn++) {
		struct soft_packet p = {.opcode = SOFT_WRITE_MIDDLE,
					.pkey = 0xffff,
					.dest_qp = 0x11,
					.psn = psn,
					.payload_bytes = MTU};
		struct iovec piece = {memory + psn * MTU, MTU};

		soft_link_send(link_, &path, &p, &piece, 1);
		/* A queue of a veth is short: trains of a few packets, with time between. */
		if (psn % 20 == 19) {
			soft_link_flush(link_);
			while (shared->right < want - (PACKETS - 1 - psn) &&
			       pp_clock_monotonic() < end)
				(void)poll(NULL, 0, 1);
		}
	}
	assert_int_equal(shared->wrong, 0);
	assert_int_equal(shared->right, want);
}

static void test_every_packet_arrives(void **state)
{
	struct soft_link_stats before = *soft_link_stats(link_);
	const struct soft_link_stats *after = soft_link_stats(link_);

	assert_int_equal(soft_host_path_mtu(1500), MTU);
	send_all(&near4, &far4);
	send_all(&near6, &far6);
	assert_int_equal(after->sent_packets - before.sent_packets, 2 * PACKETS);
	assert_int_equal(after->sent_trains - before.sent_trains, 2 * PACKETS / 20);
	assert_int_equal(after->send_errors, 0);
}

/* Starts tcpdump on "here"; returns once it captures. */
static pid_t capture_start(const char *file)
{
	int pipes[2];
	char text[512] = "";
	size_t n = 0;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(pipes[1], STDERR_FILENO);
		(void)close(pipes[0]);
		(void)close(pipes[1]);
		(void)execlp("tcpdump", "tcpdump", "-i", "here", "-U", "-s", "2000", "-B", "16384",
			     "-Z", "root", "-w", file, "udp port 4791", (char *)NULL);
		_exit(127);
	}
	(void)close(pipes[1]);
	while (n < sizeof(text) - 1 && !strstr(text, "listening on")) {
		ssize_t got = read(pipes[0], text + n, sizeof(text) - 1 - n);

		if (got <= 0)
			break;
		n += (size_t)got;
		text[n] = '\0';
	}
	/* The reading end stays open: tcpdump has more to say when it ends. */
	if (strstr(text, "listening on"))
		return pid;
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return -1;
}

/* The judge's line about a capture; its exit status. */
static int judge_run(const char *file, char *line, size_t size)
{
	int pipes[2], status = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		(void)dup2(pipes[1], STDOUT_FILENO);
		(void)execlp("python3", "python3", judge, file, (char *)NULL);
		_exit(127);
	}
	(void)close(pipes[1]);
	n = read(pipes[0], line, size - 1);
	line[n > 0 ? n : 0] = '\0';
	(void)close(pipes[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *no_capture; /* why none could be made */

static void test_capture_is_right(void **state)
{
	char dir[] = "/tmp/peerpath-veth.XXXXXX", file[64], line[512], want[64];
	struct stat st = {0};
	const off_t all = 24 + PACKETS * (2 * (16 + 14 + 8 + 12 + MTU + 4) + 20 + 40);
	pid_t tcpdump;
	int status;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(file, sizeof(file), "%s/wire.pcap", dir);
	tcpdump = capture_start(file);
	if (tcpdump < 0) {
		(void)rmdir(dir);
		no_capture = "tcpdump is not there, or may not capture";
		skip();
	}
	send_all(&near4, &far4);
	send_all(&near6, &far6);
	/* It writes a little later than the wire: a head of 24 bytes, of 16 for each packet. */
	for (int ms = 0; ms < WAIT_MS && st.st_size < all; ms += 10) {
		(void)poll(NULL, 0, 10);
		assert_int_equal(stat(file, &st), 0);
	}
	assert_int_equal(kill(tcpdump, SIGINT), 0);
	assert_int_equal(waitpid(tcpdump, &status, 0), tcpdump);
	status = judge_run(file, line, sizeof(line));
	(void)unlink(file);
	(void)rmdir(dir);
	(void)snprintf(want, sizeof(want), "packets %d icrc_ok %d icrc_bad 0", 2 * PACKETS,
		       2 * PACKETS);
	if (!strstr(line, want))
		fail_msg("expected '%s', the judge says: %s", want, line);
	assert_int_equal(status, 0);
}

static int skip_all(const char *why)
{
	if (child > 0)
		(void)kill(child, SIGKILL);
	printf("skipped: %s\n", why);
	return 77;
}

int main(void)
{
	const struct CMUnitTest arrival[] = {cmocka_unit_test(test_every_packet_arrives)};
	const struct CMUnitTest capture[] = {cmocka_unit_test(test_capture_is_right)};
	const char *shared_dir = getenv("PEERPATH_SHARED"), *here = getenv("PP_TEST_DIR");
	const char *why;
	int rc;

	if (net_own() < 0)
		return skip_all("no network namespace may be made");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	near4 = net_ipv4(10, 77, 0, 1);
	far4 = net_ipv4(10, 77, 0, 2);
	near6 = ipv6(1);
	far6 = ipv6(2);
	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 13 + (i >> 8) * 5 + (i >> 16));
	why = make_pair();
	if (why)
		return skip_all(why);
	rc = cmocka_run_group_tests_name("arrival", arrival, NULL, NULL);
	if (shared_dir)
		(void)snprintf(judge, sizeof(judge), "%s/tools/icrc-check", shared_dir);
	else
		(void)snprintf(judge, sizeof(judge), "%s/../../../shared/tools/icrc-check",
			       here ? here : "tests/unit");
	if (rc == 0 && access(judge, R_OK) < 0)
		return skip_all("icrc-check, the judge of captures, is not there");
	if (rc == 0)
		rc = cmocka_run_group_tests_name("capture", capture, NULL, NULL);
	if (rc == 0 && no_capture)
		return skip_all(no_capture);
	(void)kill(child, SIGKILL);
	soft_link_close(link_);
	return rc;
}
