/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel takes for UDP trains over lo, and nothing else: no ICRC, no placing. The bound of
 * the software device's wire path on this machine. A sender and a receiver, one a processor, as
 * many bytes under way as the device's window; beside it what a copy of memory costs. Medians.
 *
 *	udp_train [WINDOW_KIB [RUN_MS]]
 */
#include <arpa/inet.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

enum {
	PACKET = 4112, /* a WRITE_MIDDLE of 4096 bytes */
	TRAIN = 15,
	BUFFER = 8 << 20,
	COPIED = 1 << 20,
	RUNS = 5,
};

/* What both processes see. */
struct shared {
	_Atomic uint64_t received;
	_Atomic bool stop;
};

static void pin(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	(void)sched_setaffinity(0, sizeof(set), &set); /* fewer processors: as they are */
}

static int option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value));
}

static void receive(int fd, struct shared *s)
{
	static char bytes[1 << 17];

	pin(0);
	while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
		ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (n > 0)
			atomic_fetch_add(&s->received, (uint64_t)n);
	}
	_exit(0);
}

/* Bytes a second that arrived. */
static double trains(int fd, struct shared *s, uint64_t window, pp_ns run)
{
	static char bytes[PACKET * TRAIN];
	uint64_t sent = atomic_load(&s->received), first = sent;
	pp_ns start = pp_clock_monotonic(), took;

	while ((took = pp_clock_monotonic() - start) < run) {
		if (sent - atomic_load_explicit(&s->received, memory_order_relaxed) > window)
			continue;
		if (send(fd, bytes, sizeof(bytes), 0) > 0)
			sent += sizeof(bytes);
	}
	return (double)(atomic_load(&s->received) - first) * (double)PP_SECOND / (double)took;
}

static double copies(pp_ns run)
{
	static char from[COPIED], to[COPIED];
	pp_ns start = pp_clock_monotonic(), took;
	uint64_t n = 0;

	memset(from, 1, sizeof(from));
	while ((took = pp_clock_monotonic() - start) < run) {
		memcpy(to, from, sizeof(to));
		/* The compiler must believe that somebody reads it. */
		__asm__ volatile("" : : "r"(to) : "memory");
		n += sizeof(to);
	}
	return (double)n * (double)PP_SECOND / (double)took;
}

static int by_size(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;

	return d < 0 ? -1 : d > 0;
}

static void show(const char *what, double *rates)
{
	double median;

	qsort(rates, RUNS, sizeof(*rates), by_size);
	median = rates[RUNS / 2];
	printf("%-24s %6.2f GB/s  %4.0f ps/B\n", what, median / 1e9, 1e12 / median);
}

/* Both ends, or false and a word on stderr. */
static bool sockets(int *receiver, int *sender)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);

	*receiver = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	*sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (option(*receiver, SOL_SOCKET, SO_RCVBUFFORCE, BUFFER))
		(void)option(*receiver, SOL_SOCKET, SO_RCVBUF, BUFFER);
	if (bind(*receiver, (struct sockaddr *)&at, len) ||
	    getsockname(*receiver, (struct sockaddr *)&at, &len) ||
	    connect(*sender, (struct sockaddr *)&at, len) ||
	    option(*receiver, SOL_UDP, UDP_GRO, 1) ||
	    option(*sender, SOL_UDP, UDP_SEGMENT, PACKET)) {
		perror("udp_train");
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	uint64_t window = 1024, run = 200;
	double rates[RUNS];
	struct shared *s;
	int receiver, sender;
	pid_t child;

	if (argc > 3 || (argc > 1 && pp_parse_u64(argv[1], 64, 1 << 20, &window)) ||
	    (argc > 2 && pp_parse_u64(argv[2], 10, 10000, &run))) {
		fprintf(stderr, "usage: udp_train [WINDOW_KIB [RUN_MS]]\n");
		return 64;
	}
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED || !sockets(&receiver, &sender) || (child = fork()) < 0)
		return 70;
	if (!child)
		receive(receiver, s);
	pin(1);
	for (unsigned int i = 0; i < RUNS; i++)
		rates[i] = trains(sender, s, window << 10, (pp_ns)run * PP_MILLISECOND);
	atomic_store(&s->stop, true);
	(void)waitpid(child, NULL, 0);
	show("UDP trains over lo", rates);
	for (unsigned int i = 0; i < RUNS; i++)
		rates[i] = copies((pp_ns)run * PP_MILLISECOND);
	show("memcpy of 1 MiB", rates);
	return 0;
}
