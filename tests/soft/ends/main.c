/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: ends DEVICE [WORD...]                      both ends
 *        ends DEVICE [WORD...] listen PORT          one, the first
 *        ends DEVICE [WORD...] connect IPV4 PORT    one, the second
 *
 * Words: cm (connect by librdmacm), brief (fewer bytes), refusals (only what must fail).
 *
 * Every operation and measure in both directions, then what must fail: each case at both ends at
 * once, in the order of the table.
 */
#include "ends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/banned.h"

/* 4.3 s, seven times: what else this machine does must not fail a test. */
enum { PATIENT = 20 };

enum { ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

static struct pp_traffic traffic(struct end *e, enum pp_operation op, uint32_t size,
				 uint64_t messages)
{
	return (struct pp_traffic){
		.endpoint = &e->endpoint,
		.slots = op == PP_READ ? e->from : e->out,
		.into = e->in,
		.n_slots = ENDS_SLOTS,
		.op = op,
		.size = size,
		.messages = messages,
		.by_processor = true,
		.silence = 60 * PP_SECOND,
	};
}

static struct pp_traffic_done good(struct end *e, int r, struct pp_traffic_done done,
				   const struct pp_error *err)
{
	if (r)
		ends_fault(e, "%s", err->text);
	ends_check(e, done.failure.status == 0 && done.took > 0);
	return done;
}

static unsigned int slots_of(uint64_t messages)
{
	return messages < ENDS_SLOTS ? (unsigned int)messages : ENDS_SLOTS;
}

/* One direction; @sender says whether this end posts. READ: the reader's memory is looked at. */
static void one_way(struct end *e, enum pp_operation op, uint32_t size, uint64_t messages,
		    bool sender)
{
	struct pp_traffic t = traffic(e, op, size, messages);
	struct pp_traffic_done done = {0};
	struct pp_error err;
	int r = 0;

	ends_fill(e, size, 3 + sender);
	if (op == PP_SEND && !sender) {
		t.slots = e->in;
		if (pp_traffic_receive_ready(&t, &err))
			ends_fault(e, "%s", err.text);
	}
	ends_meet(e);
	if (sender)
		r = pp_traffic_send(&t, &done, &err);
	else if (op == PP_SEND)
		r = pp_traffic_receive(&t, &done, &err);
	if (sender || op == PP_SEND) {
		done = good(e, r, done, &err);
		ends_check(e, done.messages == messages && done.bytes == messages * size);
	}
	ends_meet(e);
	ends_verify(e, size, sender ? 3 : 4, (op == PP_READ) == sender ? slots_of(messages) : 0);
}

static void by_time(struct end *e)
{
	struct pp_traffic t = traffic(e, PP_WRITE, 4096, 0);
	struct pp_traffic_done done;
	struct pp_error err;
	uint64_t his = 0;
	int r;

	t.duration = 50 * PP_MILLISECOND;
	ends_fill(e, 4096, 9);
	r = pp_traffic_send(&t, &done, &err); /* both ends: bidirectional */
	done = good(e, r, done, &err);
	ends_check(e, done.took >= t.duration && done.messages > 0);
	ends_check(e, done.messages % e->endpoint.options.qps == 0);
	ends_tell(e, &done.messages, sizeof(done.messages));
	(void)ends_hear(e, &his, sizeof(his));
	ends_verify(e, 4096, 9, slots_of(his));
}

static void exchange(struct end *e, uint32_t size, uint64_t messages)
{
	struct pp_traffic t = traffic(e, PP_SEND, size, messages);
	struct pp_traffic_done done;
	struct pp_error err;
	int r;

	ends_fill(e, size, 11);
	if (pp_traffic_receive_ready(&t, &err))
		ends_fault(e, "%s", err.text);
	ends_meet(e);
	r = pp_traffic_exchange(&t, &done, &err);
	done = good(e, r, done, &err);
	ends_check(e, done.messages == messages);
	ends_meet(e);
	ends_verify(e, size, 11, slots_of(messages));
}

static void ping(struct end *e, enum pp_operation op, uint32_t size, uint64_t messages)
{
	struct pp_traffic t = traffic(e, op, size, messages);
	struct pp_traffic_done done;
	struct pp_error err;
	bool reads = op == PP_READ;
	int r;

	ends_fill(e, size, 20 + e->first);
	if (pp_traffic_ping_ready(&t, &err))
		ends_fault(e, "%s", err.text);
	ends_meet(e);
	r = pp_traffic_ping(&t, e->first, &done, &err);
	done = good(e, r, done, &err);
	ends_check(e, done.messages == (reads && !e->first ? 0 : messages));
	ends_check(e, done.n_latency == (e->first ? messages : 0));
	for (size_t i = 0; i < done.n_latency; i++)
		ends_check(e, done.latency[i] > 0);
	ends_meet(e);
	ends_verify(e, size, e->first ? 20 : 21, reads && !e->first ? 0 : slots_of(messages));
	pp_traffic_done_free(&done);
}

static void all_cases(struct end *e, unsigned int qps, unsigned int depth)
{
	static const uint32_t sizes[] = {1, 200, 4096, 65537, ENDS_SLOT_MOST};
	char doing[96];

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		uint64_t messages = sizes[s] > 65536 ? (e->brief ? ENDS_SLOTS + 1 : 40)
						     : (e->brief ? 24 : 1000);

		if (e->brief && sizes[s] > 65537)
			break;

		for (int op = 0; op < PP_OPERATIONS; op++) {
			(void)snprintf(doing, sizeof(doing), "%s, %u bytes, %u queue pairs of %u",
				       pp_operation_name(op), sizes[s], qps, depth);
			e->doing = doing;
			one_way(e, op, sizes[s], messages, e->first);
			one_way(e, op, sizes[s], messages, !e->first);
			one_way(e, op, sizes[s], 3, e->first);
			ping(e, op, sizes[s], messages / 4);
		}
		e->doing = "exchange";
		exchange(e, sizes[s], messages);
	}
	e->doing = "by time";
	by_time(e);
}

static void works(struct end *e, const char *device)
{
	static const unsigned int shapes[][2] = {{1, 128}, {5, 3}, {2, 1}};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct pp_endpoint_options o = {.device = device,
						.gid_index = -1,
						.qps = shapes[i][0],
						.depth = shapes[i][1],
						.timeout = PATIENT};

		ends_open(e, &o, ALL);
		all_cases(e, o.qps, o.depth);
		ends_close(e);
	}
}

/* ── what must fail ── */

static struct pp_traffic_done bad(struct end *e, struct pp_traffic *t, int expected)
{
	struct pp_traffic_done done;
	struct pp_error err = {0};
	int r = pp_traffic_send(t, &done, &err);

	if (r != expected)
		ends_fault(e, "%d, not %d: %s", r, expected, err.text);
	ends_check(e, *err.text && !done.latency);
	return done;
}

static void refused(struct end *e, enum pp_operation op, uint64_t message, int status)
{
	struct pp_slot slots[ENDS_SLOTS];
	struct pp_traffic t = traffic(e, op, 4096, 100);
	struct pp_traffic_done done;

	char doing[96];

	(void)snprintf(doing, sizeof(doing), "%s %llu refused with %d on %u queue pairs",
		       pp_operation_name(op), (unsigned long long)message, status,
		       e->endpoint.options.qps);
	e->doing = doing;
	ends_fill(e, 4096, 5);
	if (e->first) {
		memcpy(slots, op == PP_READ ? e->from : e->out, sizeof(slots));
		if (status == IBV_WC_LOC_PROT_ERR)
			slots[message].lkey ^= 0x100;
		else
			slots[message].rkey ^= 0x100;
		t.slots = slots;
		done = bad(e, &t, -EIO);
		ends_check(e, done.failure.status == status);
		/* Queue pairs may fail in any order; one alone fails at the first. */
		ends_check(e, done.failure.message % ENDS_SLOTS == message);
		ends_check(e, e->endpoint.options.qps > 1 || done.failure.message == message);
		ends_check(e, done.failure.qp == done.failure.message % e->endpoint.options.qps);
	}
	ends_reset(e);
	one_way(e, PP_WRITE, 4096, 20, e->first);
	e->doing = NULL;
}

static void no_right(struct end *e, const char *device)
{
	struct pp_endpoint_options o = {.device = device, .gid_index = -1, .timeout = PATIENT};
	struct pp_traffic t;

	ends_open(e, &o, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	t = traffic(e, PP_READ, 64, 10);
	if (e->first)
		ends_check(e, bad(e, &t, -EIO).failure.status == IBV_WC_REM_ACCESS_ERR);
	ends_meet(e);
	ends_close(e);
}

static unsigned int looked;

static bool after_some_looks(void)
{
	return ++looked > 3;
}

/* Nobody receives: the sender meets a receiver that is not ready, for ever. */
static void silent(struct end *e, const char *device)
{
	struct pp_endpoint_options o = {.device = device, .gid_index = -1, .timeout = PATIENT};
	struct pp_traffic t;
	pp_ns start;

	ends_open(e, &o, ALL);
	t = traffic(e, PP_SEND, 64, 10);
	t.silence = 200 * PP_MILLISECOND;
	start = pp_clock_monotonic();
	if (e->first) {
		(void)bad(e, &t, -ETIMEDOUT);
		ends_check(e, pp_clock_monotonic() - start >= t.silence);
	}
	ends_reset(e);
	t = traffic(e, PP_SEND, 64, 10);
	t.stopped = after_some_looks;
	if (e->first)
		(void)bad(e, &t, -EINTR);
	ends_reset(e);
	one_way(e, PP_SEND, 64, 100, e->first);
	ends_close(e);
}

static void gone(struct end *e, const char *device)
{
	struct pp_endpoint_options o = {
		.device = device, .gid_index = -1, .timeout = 10, .retries = 1};
	struct pp_traffic t;

	ends_open(e, &o, ALL);
	if (!e->first)
		ends_close(e);
	ends_meet(e);
	if (!e->first)
		return;
	t = traffic(e, PP_WRITE, 64, 10);
	ends_check(e, bad(e, &t, -EIO).failure.status == IBV_WC_RETRY_EXC_ERR);
	ends_close(e);
}

static void smaller_mtu(struct end *e, const char *device)
{
	struct pp_endpoint_options o = {.device = device,
					.gid_index = -1,
					.mtu = e->first ? 1024 : 512,
					.timeout = PATIENT};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ends_open(e, &o, ALL);
	ends_check(e, e->verbs.query_qp(e->endpoint.qp[0], &attr, IBV_QP_PATH_MTU, &init) == 0);
	ends_check(e, attr.path_mtu == IBV_MTU_512);
	one_way(e, PP_WRITE, 65537, 40, e->first);
	one_way(e, PP_READ, 65537, 40, !e->first);
	ends_close(e);
}

static void refusals(struct end *e, const char *device)
{
	struct pp_endpoint_options o = {
		.device = device, .gid_index = -1, .qps = 2, .timeout = PATIENT};
	struct pp_endpoint none;
	struct pp_error err;

	for (o.qps = 1; o.qps <= 2; o.qps++) {
		e->doing = "wrong keys";
		ends_open(e, &o, ALL);
		refused(e, PP_WRITE, 0, IBV_WC_REM_ACCESS_ERR);
		refused(e, PP_WRITE, 5, IBV_WC_REM_ACCESS_ERR);
		refused(e, PP_READ, 3, IBV_WC_REM_ACCESS_ERR);
		/*
		 * The kernel's rdma_rxe (6.1) takes no acknowledge any more once its requester
		 * has failed by itself, so that nothing before the wrong key ever completes.
		 */
		if (strncmp(device, "rxe", 3) != 0)
			refused(e, PP_WRITE, 4, IBV_WC_LOC_PROT_ERR);
		ends_close(e);
	}
	e->doing = "a right that was not given";
	no_right(e, device);
	e->doing = "silence";
	silent(e, device);
	e->doing = "a peer that is gone";
	gone(e, device);
	e->doing = "two MTUs";
	smaller_mtu(e, device);
	e->doing = "what an endpoint cannot be";
	o.device = "no-such-device";
	ends_check(e, pp_endpoint_open(&e->verbs, &o, &none, &err) == -ENODEV);
	ends_check(e, strstr(err.text, device) != NULL);
	o = (struct pp_endpoint_options){.device = device, .gid_index = 77};
	ends_check(e, pp_endpoint_open(&e->verbs, &o, &none, &err) == -ENOENT);
	ends_check(e, strstr(err.text, "RoCE v2") != NULL);
	o = (struct pp_endpoint_options){.device = device, .gid_index = -1, .port = 2};
	ends_check(e, pp_endpoint_open(&e->verbs, &o, &none, &err) == -EINVAL);
	o = (struct pp_endpoint_options){
		.device = device, .gid_index = -1, .qps = 64, .depth = 4096};
	ends_check(e, pp_endpoint_open(&e->verbs, &o, &none, &err) == -EINVAL);
}

/* What librdmacm's connections must refuse; the second end asks. */
static void strangers(struct end *e, const char *device)
{
	struct pp_endpoint_options o = {.device = device, .gid_index = -1};
	struct pp_cm_options c = {.address = "192.0.2.1", /* of nobody */
				  .deadline = pp_clock_monotonic() + 10 * PP_SECOND};
	struct ends_place place;
	struct pp_cm *connections;
	struct pp_endpoint one;
	struct pp_error err;

	if (pp_endpoint_open(&e->verbs, &o, &one, &err) ||
	    pp_cm_address(&one, NULL, place.address, &err))
		ends_fault(e, "%s", err.text);
	ends_check(e, pp_cm_listen(&one, &c, &connections, &place.port, &err) < 0);
	c.address = "no address";
	ends_check(e, pp_cm_connect(&one, &c, &connections, &err) == -EINVAL);
	c.address = place.address;
	c.nonce = 7 + e->first;
	if (e->first) {
		c.deadline = pp_clock_monotonic() + PP_SECOND;
		ends_check(e, pp_cm_listen(&one, &c, &connections, &place.port, &err) == 0);
		ends_tell(e, &place, sizeof(place));
		/* Of another run: turned away, and waited on. */
		ends_check(e, pp_cm_accept(connections, &err) == -ETIMEDOUT);
		pp_cm_free(connections);
		ends_meet(e);
	} else {
		(void)ends_hear(e, &place, sizeof(place));
		c.port = place.port;
		if (pp_cm_connect(&one, &c, &connections, &err) != -EACCES)
			ends_fault(e, "%s", err.text);
		ends_meet(e);
		if (pp_cm_connect(&one, &c, &connections, &err) != -ECONNREFUSED)
			ends_fault(e, "%s", err.text);
	}
	pp_endpoint_close(&one);
	ends_meet(e);
}

static int end_run(struct end *e, const char *device)
{
	struct pp_error err;

	(void)alarm(e->brief ? 250 : 140);
	if (pp_verbs_load(&e->verbs, &err))
		ends_fault(e, "%s", err.text);
	if (!e->refusals)
		works(e, device);
	refusals(e, device);
	e->doing = "strangers";
	if (e->by_cm)
		strangers(e, device);
	return 0;
}

static int both(struct end e, const char *device)
{
	int wires[2], status = 0;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, wires))
		return 2;
	child = fork();
	if (child < 0)
		return 2;
	(void)close(wires[child != 0]);
	e.first = child != 0;
	e.wire = wires[child == 0];
	if (!child)
		_exit(end_run(&e, device));
	(void)end_run(&e, device);
	(void)waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* A TCP connection: from anywhere, or to @host. */
static int wire_to(const char *host, uint64_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (host)
		return inet_pton(AF_INET, host, &at.sin_addr) == 1 &&
				       !connect(fd, (struct sockaddr *)&at, sizeof(at))
			       ? fd
			       : -1;
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 1))
		return -1;
	return accept(fd, NULL, NULL);
}

int main(int argc, char **argv)
{
	struct end e = {.first = true};
	uint64_t port = 0;
	int at = 2, r;

	(void)signal(SIGPIPE, SIG_IGN);
	for (; at < argc; at++) {
		if (!strcmp(argv[at], "cm"))
			e.by_cm = true;
		else if (!strcmp(argv[at], "brief"))
			e.brief = true;
		else if (!strcmp(argv[at], "refusals"))
			e.refusals = true;
		else
			break;
	}
	e.first = at < argc && !strcmp(argv[at], "listen");
	if (argc < 2 || (at != argc && pp_parse_u64(argv[argc - 1], 1, UINT16_MAX, &port)) ||
	    (at != argc && at + (e.first ? 2 : 3) != argc))
		return 2;
	if (at == argc) {
		r = both(e, argv[1]);
	} else {
		e.wire = wire_to(e.first ? NULL : argv[at + 1], port);
		r = e.wire < 0 ? 2 : end_run(&e, argv[1]);
	}
	if (!r)
		(void)printf("both ends right\n");
	return r;
}
