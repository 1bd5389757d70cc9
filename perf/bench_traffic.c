/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timed loops of bench: on a provider that only counts, for what the loop itself costs, or
 * between two processes on whatever libibverbs this is started on, for perf/bench.py.
 *
 *	bench_traffic null [MESSAGES]                                     ns a message
 *	bench_traffic DEVICE OP SIZE MESSAGES QPS DEPTH MTU REPEATS CPUS  one line a repeat:
 *	                             MB/s, CPU ns a message of sender and receiver
 *	bench_traffic DEVICE ping-OP SIZE MESSAGES 1 DEPTH MTU REPEATS CPUS   median us
 *
 * CPUS: "A,B" pins the ends, "-" leaves them.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parse.h"
#include "bench/traffic.h"
#include "../tests/fake/null.h"
#include "base/banned.h"

enum { SLOTS = 64, RUNS = 5 };

struct plan {
	const char *device;
	enum pp_operation op;
	bool ping;
	uint64_t size, messages, qps, depth, mtu, repeats;
	int cpu[2];
};

struct hello {
	struct pp_address address[PP_ENDPOINT_QPS];
	uint64_t memory;
	uint32_t rkey;
};

static void die(const char *why)
{
	(void)fprintf(stderr, "bench_traffic: %s\n", why);
	_exit(1);
}

static int compare_ns(const void *a, const void *b)
{
	pp_ns x = *(const pp_ns *)a, y = *(const pp_ns *)b;

	return (x > y) - (x < y);
}

/* ── the loop alone ── */

static double null_run(struct pp_endpoint *e, enum pp_operation op, uint32_t size, uint64_t n)
{
	struct pp_slot slots[SLOTS];
	struct pp_traffic t = {.endpoint = e,
			       .slots = slots,
			       .n_slots = SLOTS,
			       .op = op,
			       .size = size,
			       .messages = n,
			       .by_processor = true};
	struct pp_traffic_done done;
	struct pp_error err;

	for (unsigned int i = 0; i < SLOTS; i++)
		slots[i] = (struct pp_slot){i * 4096, i * 4096, i, i};
	if (pp_traffic_send(&t, &done, &err))
		die(err.text);
	return (double)done.took / (double)n;
}

static void null_row(enum pp_operation op, unsigned int qps, uint32_t size, uint64_t n)
{
	const struct pp_address peer = {.qpn = 1, .mtu = 4096, .rd_atomic = 4, .ethernet = true};
	struct pp_endpoint_options o = {.device = "null0", .gid_index = -1, .qps = qps};
	struct pp_endpoint e;
	struct pp_error err;
	pp_ns took[RUNS];

	null_reset();
	if (pp_endpoint_open(null_verbs(), &o, &e, &err))
		die(err.text);
	for (unsigned int q = 0; q < qps; q++)
		if (pp_endpoint_connect(&e, q, &peer, &err))
			die(err.text);
	for (int i = 0; i < RUNS; i++)
		took[i] = (pp_ns)(null_run(&e, op, size, n) * 1000);
	qsort(took, RUNS, sizeof(took[0]), compare_ns);
	(void)printf("null %s %u queue pairs %u bytes: %.2f ns a message\n", pp_operation_name(op),
		     qps, size, (double)took[RUNS / 2] / 1000);
	pp_endpoint_close(&e);
}

static int null_all(uint64_t n)
{
	null_row(PP_WRITE, 1, 8, n);
	null_row(PP_WRITE, 1, 4096, n);
	null_row(PP_WRITE, 16, 4096, n);
	null_row(PP_READ, 1, 4096, n);
	null_row(PP_WRITE, 1, 1 << 20, n);
	return 0;
}

/* ── two ends ── */

static void meet(int wire)
{
	char c = 'm';

	if (write(wire, &c, 1) != 1 || read(wire, &c, 1) != 1)
		die("the other end is gone");
}

static void connect_ends(struct pp_endpoint *e, int wire, void *memory, uint32_t rkey,
			 struct hello *ret)
{
	struct hello mine = {.memory = (uintptr_t)memory, .rkey = rkey};
	struct pp_error err;

	for (unsigned int q = 0; q < e->options.qps; q++)
		pp_endpoint_address(e, q, &mine.address[q]);
	if (write(wire, &mine, sizeof(mine)) != sizeof(mine) ||
	    read(wire, ret, sizeof(*ret)) != sizeof(*ret))
		die("the other end is gone");
	for (unsigned int q = 0; q < e->options.qps; q++)
		if (pp_endpoint_connect(e, q, &ret->address[q], &err))
			die(err.text);
	meet(wire);
}

static void ping(struct pp_traffic *t, int wire, bool first)
{
	struct pp_traffic_done done;
	struct pp_error err;

	if (pp_traffic_ping_ready(t, &err))
		die(err.text);
	meet(wire);
	if (pp_traffic_ping(t, first, &done, &err))
		die(err.text);
	if (done.n_latency) {
		qsort(done.latency, done.n_latency, sizeof(pp_ns), compare_ns);
		(void)printf("%.3f\n", (double)done.latency[done.n_latency / 2] / 1000);
	}
	pp_traffic_done_free(&done);
	meet(wire);
}

static pp_ns process_cpu(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * PP_SECOND + ts.tv_nsec;
}

static void bandwidth(struct pp_traffic *t, int wire, bool first)
{
	struct pp_traffic_done done = {0};
	pp_ns cpu, his = 0;
	struct pp_error err;
	int r = 0;

	if (t->op == PP_SEND && !first && pp_traffic_receive_ready(t, &err))
		die(err.text);
	meet(wire);
	cpu = process_cpu();
	if (first)
		r = pp_traffic_send(t, &done, &err);
	else if (t->op == PP_SEND)
		r = pp_traffic_receive(t, &done, &err);
	if (r)
		die(err.text);
	meet(wire);
	cpu = process_cpu() - cpu;
	if (!first) {
		(void)!write(wire, &cpu, sizeof(cpu));
		return;
	}
	(void)!read(wire, &his, sizeof(his));
	(void)printf("%.2f %.1f %.1f\n", (double)done.bytes * 1000 / (double)done.took,
		     (double)cpu / (double)done.messages, (double)his / (double)done.messages);
}

static void end_run(const struct plan *p, int wire, bool first)
{
	struct pp_endpoint_options o = {.device = p->device,
					.gid_index = -1,
					.qps = (unsigned int)p->qps,
					.depth = (unsigned int)p->depth,
					.mtu = (unsigned int)p->mtu,
					.timeout = 18};
	size_t each = (p->size + 63) & ~(size_t)63;
	/* As perftest walks through its buffer: one page of it. */
	unsigned int n = p->size > 64 ? 1 + (unsigned int)(4095 / p->size) : SLOTS;
	struct pp_slot slots[SLOTS];
	struct pp_endpoint e;
	struct pp_verbs v;
	struct pp_error err;
	struct hello peer;
	struct ibv_mr *mr;
	void *memory = NULL;
	cpu_set_t set;

	CPU_ZERO(&set);
	if (p->cpu[!first] >= 0) {
		CPU_SET((unsigned int)p->cpu[!first], &set);
		(void)sched_setaffinity(0, sizeof(set), &set);
	}
	if (pp_verbs_load(&v, &err) || pp_endpoint_open(&v, &o, &e, &err))
		die(err.text);
	/* Twice, as perftest: what the kernel makes of a larger mapping is the same then. */
	if (posix_memalign(&memory, 4096, 2 * each * n))
		die("no memory");
	memset(memory, first, 2 * each * n);
	mr = v.reg_memory(e.pd, memory, each * n,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ);
	if (!mr)
		die("ibv_reg_mr");
	connect_ends(&e, wire, memory, mr->rkey, &peer);
	for (unsigned int i = 0; i < n; i++)
		slots[i] = (struct pp_slot){(uintptr_t)memory + i * each, peer.memory + i * each,
					    mr->lkey, peer.rkey};
	struct pp_traffic t = {.endpoint = &e,
			       .slots = slots,
			       .n_slots = n,
			       .op = p->op,
			       .size = (uint32_t)p->size,
			       .messages = p->messages,
			       .by_processor = true};

	for (uint64_t i = 0; i < p->repeats; i++) {
		if (p->ping)
			ping(&t, wire, first);
		else
			bandwidth(&t, wire, first);
	}
	(void)fflush(stdout);
	(void)v.dereg_mr(mr);
	pp_endpoint_close(&e);
}

static int pair(const struct plan *p)
{
	int wires[2], status = 0;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, wires))
		return 1;
	child = fork();
	if (child < 0)
		return 1;
	(void)close(wires[child != 0]);
	if (!child) {
		end_run(p, wires[1], false);
		_exit(0);
	}
	end_run(p, wires[0], true);
	(void)waitpid(child, &status, 0);
	return status ? 1 : 0;
}

static int parse(char **word, struct plan *p)
{
	uint64_t *numbers[] = {&p->size, &p->messages, &p->qps, &p->depth, &p->mtu, &p->repeats};
	uint64_t cpu;
	char *comma;

	p->device = word[0];
	p->ping = !strncmp(word[1], "ping-", 5);
	if (pp_operation_parse(word[1] + (p->ping ? 5 : 0), &p->op))
		return -EINVAL;
	for (size_t i = 0; i < 6; i++)
		if (pp_parse_u64(word[2 + i], 0, 1 << 30, numbers[i]))
			return -EINVAL;
	p->cpu[0] = p->cpu[1] = -1;
	comma = strchr(word[8], ',');
	if (!comma)
		return 0;
	*comma = '\0';
	for (int i = 0; i < 2; i++) {
		if (pp_parse_u64(i ? comma + 1 : word[8], 0, 1023, &cpu))
			return -EINVAL;
		p->cpu[i] = (int)cpu;
	}
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t n = 10000000;
	struct plan p = {0};

	(void)signal(SIGPIPE, SIG_IGN);
	if (argc >= 2 && !strcmp(argv[1], "null") &&
	    (argc == 2 || !pp_parse_u64(argv[2], 1, 1 << 30, &n)))
		return null_all(n);
	if (argc != 10 || parse(argv + 1, &p)) {
		(void)fprintf(stderr, "usage: see the source\n");
		return 64;
	}
	return pair(&p);
}
