/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: ends DEVICE [cm]
 *
 * Every operation and measure in both directions, then what must fail: each case at both ends at
 * once, in the order of the table.
 */
#include "ends.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/banned.h"

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
	int r;

	t.duration = 50 * PP_MILLISECOND;
	ends_fill(e, 4096, 9);
	r = pp_traffic_send(&t, &done, &err); /* both ends: bidirectional */
	done = good(e, r, done, &err);
	ends_check(e, done.took >= t.duration && done.messages >= ENDS_SLOTS);
	ends_check(e, done.messages % e->endpoint.options.qps == 0);
	ends_meet(e);
	ends_verify(e, 4096, 9, ENDS_SLOTS);
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
		uint64_t messages = sizes[s] > 65536 ? 40 : 1000;

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
						.depth = shapes[i][1]};

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
}

static void no_right(struct end *e, const char *device)
{
	struct pp_endpoint_options o = {.device = device, .gid_index = -1};
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
	struct pp_endpoint_options o = {.device = device, .gid_index = -1};
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
	struct pp_endpoint_options o = {
		.device = device, .gid_index = -1, .mtu = e->first ? 1024 : 512};
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
	struct pp_endpoint_options o = {.device = device, .gid_index = -1, .qps = 2};
	struct pp_endpoint none;
	struct pp_error err;

	e->doing = "wrong keys";
	for (o.qps = 1; o.qps <= 2; o.qps++) {
		ends_open(e, &o, ALL);
		refused(e, PP_WRITE, 0, IBV_WC_REM_ACCESS_ERR);
		refused(e, PP_WRITE, 5, IBV_WC_REM_ACCESS_ERR);
		refused(e, PP_READ, 3, IBV_WC_REM_ACCESS_ERR);
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
	char address[PP_CM_ADDRESS];
	struct pp_cm *connections;
	struct pp_endpoint one;
	struct pp_error err;
	uint16_t port;

	if (pp_endpoint_open(&e->verbs, &o, &one, &err) || pp_cm_address(&one, address, &err))
		ends_fault(e, "%s", err.text);
	ends_check(e, pp_cm_listen(&one, &c, &connections, &port, &err) < 0);
	c.address = "no address";
	ends_check(e, pp_cm_connect(&one, &c, &connections, &err) == -EINVAL);
	c.address = address;
	c.nonce = 7 + e->first;
	if (e->first) {
		c.deadline = pp_clock_monotonic() + PP_SECOND;
		ends_check(e, pp_cm_listen(&one, &c, &connections, &port, &err) == 0);
		ends_tell(e, &port, sizeof(port));
		/* Of another run: turned away, and waited on. */
		ends_check(e, pp_cm_accept(connections, &err) == -ETIMEDOUT);
		pp_cm_free(connections);
		ends_meet(e);
	} else {
		(void)ends_hear(e, &port, sizeof(port));
		c.port = port;
		if (pp_cm_connect(&one, &c, &connections, &err) != -EACCES)
			ends_fault(e, "%s", err.text);
		ends_meet(e);
		if (pp_cm_connect(&one, &c, &connections, &err) != -ECONNREFUSED)
			ends_fault(e, "%s", err.text);
	}
	pp_endpoint_close(&one);
	ends_meet(e);
}

static int end_run(int wire, bool first, const char *device, bool by_cm)
{
	struct end e = {.wire = wire, .first = first, .by_cm = by_cm};
	struct pp_error err;

	(void)alarm(120);
	if (pp_verbs_load(&e.verbs, &err))
		ends_fault(&e, "%s", err.text);
	works(&e, device);
	refusals(&e, device);
	e.doing = "strangers";
	if (by_cm)
		strangers(&e, device);
	return 0;
}

int main(int argc, char **argv)
{
	int wires[2], status = 0, mine;
	pid_t child;

	if (argc < 2 || argc > 3 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, wires))
		return 2;
	(void)signal(SIGPIPE, SIG_IGN);
	child = fork();
	if (child < 0)
		return 2;
	(void)close(wires[child != 0]);
	if (!child)
		_exit(end_run(wires[1], false, argv[1], argc == 3));
	mine = end_run(wires[0], true, argv[1], argc == 3);
	(void)waitpid(child, &status, 0);
	if (!mine && WIFEXITED(status) && !WEXITSTATUS(status))
		(void)printf("both ends right\n");
	return mine ? mine : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
