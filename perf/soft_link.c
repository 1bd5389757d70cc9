/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a link carries WRITEs of 4096-byte packets over lo: a sending and a receiving process,
 * ICRC made, checked, payload placed. No acknowledges: the receiver tells through shared memory
 * how far it is, so that the figures are the link's alone. Medians of five runs.
 *
 *	soft_link [WINDOW_KIB [RUN_MS]]
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "soft/copy/place.h"
#include "soft/link/link.h"
#include "soft/wire/crc32.h"
#include "../tests/unit/soft_net.h"
#include "base/banned.h"

enum {
	MTU = 4096,
	MEMORY = 1 << 20,
	RUNS = 5,
	LOST_SPINS = 1000000,
	SLOT_SENDER = 0,
	SLOT_RECEIVER = 1
};

struct shared {
	_Atomic uint64_t received; /* bytes of payload, right and placed */
	_Atomic uint64_t bad;
	_Atomic bool ready, stop;
};

struct way {
	const char *name;
	uint32_t message, messages; /* bytes of one, how many before a flush */
};

struct result {
	double gbps, sender_cpu, receiver_cpu; /* CPU seconds a GB */
	uint64_t trains, packets, lost;
};

static struct shared *shared;
static uint8_t *memory;
static uint64_t window = 1 << 20;
static pp_ns run_time = 300 * PP_MILLISECOND;
static struct soft_gid lo;

static struct soft_link *open_link(unsigned int slot)
{
	struct soft_link_config config = {.gids = {lo}, .num_gids = 1, .slot = slot};
	struct soft_link *link = NULL;
	struct pp_error err;

	if (soft_link_open(&config, &link, &err) < 0) {
		(void)fprintf(stderr, "soft_link: %s\n", err.text);
		exit(1);
	}
	return link;
}

struct place {
	struct soft_icrc_flow flow;
	uint8_t *to;
	uint64_t bytes;
};

static void take(void *arg, const struct soft_datagram *d)
{
	struct place *place = arg;
	struct soft_packet p;

	if (place->flow.sport != d->sport)
		soft_icrc_flow_init(&place->flow, &d->src, &d->dst, d->sport);
	if (soft_packet_decode(d->bytes, d->len, &p) < 0 ||
	    !soft_icrc_check(&place->flow, d->place, d->bytes, d->len)) {
		shared->bad++;
		return;
	}
	soft_copy_place(place->to + (uint64_t)p.psn * MTU % MEMORY, p.payload, p.payload_bytes);
	place->bytes += p.payload_bytes;
}

static void receiver(void)
{
	struct soft_link *link = open_link(SLOT_RECEIVER);
	struct place place = {.to = memory};
	uint64_t idle = 0;

	shared->ready = true;
	while (!shared->stop) {
		if (soft_link_receive(link, 1 << 18, take, &place) == 0 && ++idle % 100 == 0)
			(void)sched_yield();
		atomic_store_explicit(&shared->received, place.bytes, memory_order_release);
	}
	soft_link_close(link);
	_exit(0); /* the parent's lines wait in our copy of its buffer */
}

static uint32_t send_message(struct soft_link *link, const struct soft_path *path,
			     const struct way *way, uint32_t psn)
{
	uint32_t n = (way->message + MTU - 1) / MTU;

	for (uint32_t i = 0; i < n; i++, psn++) {
		struct soft_packet p = {
			.opcode = n == 1       ? SOFT_WRITE_ONLY
				  : i == 0     ? SOFT_WRITE_FIRST
				  : i == n - 1 ? SOFT_WRITE_LAST
					       : SOFT_WRITE_MIDDLE,
			.pkey = 0xffff,
			.dest_qp = SLOT_RECEIVER << 16 | 1,
			.psn = psn & 0xffffff,
			.length = way->message,
			.payload_bytes = i < n - 1 ? MTU : way->message - (n - 1) * MTU,
		};
		struct iovec piece = {memory + (uint64_t)psn * MTU % MEMORY, p.payload_bytes};

		soft_link_send(link, path, &p, &piece, 1);
	}
	return psn;
}

/* What an engine sends before it flushes. */
static uint32_t send_turn(struct soft_link *link, const struct soft_path *path,
			  const struct way *way, uint32_t psn)
{
	for (uint32_t i = way->messages; i > 0; i--)
		psn = send_message(link, path, way, psn);
	soft_link_flush(link);
	return psn;
}

/* Lost packets never come: after a silence they are no longer waited for. */
static void wait_for_room(uint64_t sent, uint64_t *lost)
{
	uint64_t before = 0, spins = 0;

	for (;;) {
		uint64_t got = atomic_load_explicit(&shared->received, memory_order_acquire);

		if (sent - *lost - got <= window)
			return;
		spins = got == before ? spins + 1 : 0;
		before = got;
		if (spins > LOST_SPINS)
			*lost = sent - got;
		/* On a busy machine the other one may be waiting for this processor. */
		if (spins > 100)
			(void)sched_yield();
	}
}

static struct result run_once(const struct way *way)
{
	struct result r = {0};
	struct soft_link *link;
	struct soft_path path;
	uint64_t sent = 0;
	uint32_t psn = 0;
	pp_ns start, took;
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	link = open_link(SLOT_SENDER);
	pid = fork();
	if (pid == 0)
		receiver();
	while (!shared->ready)
		(void)sched_yield();
	(void)soft_link_path(link, &lo, &lo, 1, &path);
	start = pp_clock_monotonic();
	while (pp_clock_monotonic() - start < run_time) {
		psn = send_turn(link, &path, way, psn);
		sent += (uint64_t)way->messages * way->message;
		wait_for_room(sent, &r.lost);
	}
	while (shared->received < sent - r.lost && pp_clock_monotonic() - start < 2 * run_time)
		;
	took = pp_clock_monotonic() - start;
	r.gbps = (double)shared->received / (double)took;
	r.trains = soft_link_stats(link)->sent_trains;
	r.packets = soft_link_stats(link)->sent_packets;
	shared->stop = true;
	(void)waitpid(pid, NULL, 0);
	r.lost = shared->bad + (sent - shared->received) / MTU;
	soft_link_close(link);
	return r;
}

static double thread_seconds(void)
{
	struct timespec t = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*
 * Both sides by turns in one thread: what each costs in CPU time, which a busy machine does not
 * change much. The slower side bounds what two processes can reach.
 */
static struct result cost_once(const struct way *way)
{
	struct result r = {0};
	struct soft_link *sender = open_link(SLOT_SENDER), *receiver = open_link(SLOT_RECEIVER);
	struct place place = {.to = memory};
	struct soft_path path;
	pp_ns start = pp_clock_monotonic();
	uint32_t psn = 0;

	memset(shared, 0, sizeof(*shared));
	(void)soft_link_path(sender, &lo, &lo, 1, &path);
	while (pp_clock_monotonic() - start < run_time) {
		double before = thread_seconds(), middle;

		for (int i = 0; i < 4; i++)
			psn = send_turn(sender, &path, way, psn);
		middle = thread_seconds();
		while (soft_link_receive(receiver, 1 << 18, take, &place))
			;
		r.sender_cpu += middle - before;
		r.receiver_cpu += thread_seconds() - middle;
	}
	r.sender_cpu /= (double)place.bytes / 1e9;
	r.receiver_cpu /= (double)place.bytes / 1e9;
	r.gbps = 1 / (r.sender_cpu > r.receiver_cpu ? r.sender_cpu : r.receiver_cpu);
	r.lost = shared->bad;
	soft_link_close(sender);
	soft_link_close(receiver);
	return r;
}

static int by_rate(const void *a, const void *b)
{
	const struct result *x = a, *y = b;

	return (x->gbps > y->gbps) - (x->gbps < y->gbps);
}

int main(int argc, char **argv)
{
	static const struct way ways[] = {
		{"64 KiB", 65536, 1}, {"1 MiB", 1 << 20, 1}, {"4 KiB", 4096, 16},
		{"8 B", 8, 64},	      {"8 B alone", 8, 1},
	};
	uint64_t value;

	if (argc > 1 && pp_parse_u64(argv[1], 0, 1 << 20, &value) == 0)
		window = value << 10;
	if (argc > 2 && pp_parse_u64(argv[2], 1, 60000, &value) == 0)
		run_time = (pp_ns)value * PP_MILLISECOND;
	(void)net_own();
	lo = net_ipv4(127, 0, 0, 1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	memory = malloc(MEMORY);
	if (shared == MAP_FAILED || !memory)
		return 1;
	memset(memory, 0x5a, MEMORY);
	printf("crc32 by %s, window %llu KiB, medians of %d\n", soft_crc32_way(),
	       (unsigned long long)window >> 10, RUNS);
	for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
		struct result r[RUNS], *m = &r[RUNS / 2];

		for (int i = 0; i < RUNS; i++)
			r[i] = cost_once(&ways[w]);
		qsort(r, RUNS, sizeof(r[0]), by_rate);
		printf("%-9s CPU ns: send %6.0f, receive %6.0f a message: at most %6.3f GB/s",
		       ways[w].name, m->sender_cpu * ways[w].message,
		       m->receiver_cpu * ways[w].message, m->gbps);
		for (int i = 0; i < RUNS; i++)
			r[i] = run_once(&ways[w]);
		qsort(r, RUNS, sizeof(r[0]), by_rate);
		printf("; two processes %6.3f (%.3f..%.3f), packets/train %.1f, lost %llu\n",
		       m->gbps, r[0].gbps, r[RUNS - 1].gbps, (double)m->packets / (double)m->trains,
		       (unsigned long long)m->lost);
	}
	return 0;
}
