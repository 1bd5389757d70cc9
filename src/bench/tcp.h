/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_tcp: the classic path. One TCP connection between the two ends of a pair over the
 * rail's own address, the same messages and slots as by RDMA, so that CPU, copies in the kernel
 * and latency stand beside it.
 *
 * Who connects must say the listener's nonce, which came over the control channel: a stranger's
 * connection is closed and the next one waited for. Not thread-safe.
 */
#ifndef PP_BENCH_TCP_H
#define PP_BENCH_TCP_H

#include "base/clock.h"
#include "base/error.h"
#include "bench/traffic.h"

enum { PP_TCP_NONCE = 32 }; /* hexadecimal digits */

struct pp_tcp {
	int listener, fd; /* -1 none */
	uint16_t port;
	char nonce[PP_TCP_NONCE + 1];
};

#define PP_TCP_NONE ((struct pp_tcp){.listener = -1, .fd = -1})

/* @address: numeric, IPv4 or IPv6 ("fe80::1%eth0" too): where to listen. */
int pp_tcp_listen(const char *address, struct pp_tcp *ret, struct pp_error *err);
/* From @local (numeric; NULL: any) to @address and @port. */
int pp_tcp_connect(const char *local, const char *address, uint16_t port, const char *nonce,
		   pp_ns deadline, bool (*stopped)(void), struct pp_tcp *ret, struct pp_error *err);
int pp_tcp_accept(struct pp_tcp *t, pp_ns deadline, bool (*stopped)(void), struct pp_error *err);
void pp_tcp_close(struct pp_tcp *t);

struct pp_tcp_run {
	int fd;
	uint8_t *memory;	  /* borrowed */
	const uint64_t *out, *in; /* offsets of slots, n_slots of each */
	unsigned int n_slots;
	uint64_t size, out_messages, in_messages;
	pp_ns silence; /* -ETIMEDOUT when nothing moves for so long; 0 = 3 s */
	bool (*stopped)(void);
};

/* Both directions at once as fast as they go; ends when the peer said that it has everything. */
int pp_tcp_stream(const struct pp_tcp_run *t, struct pp_traffic_done *ret, struct pp_error *err);
/* @out_messages each way, one at a time; @first begins and has the latencies (half a round trip).
 */
int pp_tcp_ping(const struct pp_tcp_run *t, bool first, struct pp_traffic_done *ret,
		struct pp_error *err);

/* User and system time of this process so far. */
pp_ns pp_cpu_used(void);

#endif
