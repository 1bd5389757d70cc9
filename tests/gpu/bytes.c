/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes between two processes, each of whose memory is of some kind: every byte foretold, those
 * around the message too; a completion, and a flag in host memory, never before the bytes.
 */
#include "traffic.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 8, GUARD = 0x5a, ROOM = 12 << 20, UNRELIABLE = 65536 };

/* Kept, as new pages for each message cost more than the messages. */
static uint8_t have[ROOM], want[ROOM];

static const size_t sizes[] = {
	1, 64, 1023, 4096, 65536, 1 << 20, (1 << 20) + 12345, 2 << 20, (4 << 20) + 1, 9 << 20};

static void fill(uint8_t *to, size_t len, uint32_t seed)
{
	uint64_t word = seed;

	for (size_t i = 0; i < len; i += sizeof(word)) {
		uint64_t mixed;

		word = word * 6364136223846793005 + 1442695040888963407;
		mixed = word ^ word >> 32;
		memcpy(to + i, &mixed, len - i < sizeof(mixed) ? len - i : sizeof(mixed));
	}
}

static void check(struct end *e, size_t at, size_t len, uint32_t seed, const char *what)
{
	size_t from = at ? at - 1 : 0, room = at + len + 1 - from;

	memset(want, GUARD, room);
	fill(want + (at - from), len, seed);
	gpu_get(&e->memory, from, have, room);
	if (!memcmp(have, want, room))
		return;
	for (size_t i = 0; i < room; i++)
		if (have[i] != want[i])
			end_fault("%s of %zu bytes: byte %zd is %02x, not %02x", what, len,
				  (ssize_t)(i + from) - (ssize_t)at, have[i], want[i]);
}

static void blank(struct end *e, size_t len)
{
	memset(want, GUARD, len);
	gpu_put(&e->memory, 0, want, len);
}

static void source(struct end *e, size_t at, size_t len, uint32_t seed)
{
	fill(want, len, seed);
	gpu_put(&e->memory, at, want, len);
}

static const struct way {
	const char *name;
	enum ibv_wr_opcode op;
	bool receives, uc;
} ways[] = {
	{"write", IBV_WR_RDMA_WRITE, false, false},
	{"write with immediate", IBV_WR_RDMA_WRITE_WITH_IMM, true, true},
	{"send", IBV_WR_SEND, true, true},
	{"send with immediate", IBV_WR_SEND_WITH_IMM, true, true},
	{"read", IBV_WR_RDMA_READ, false, false},
};

/* What is unreliable may be lost, and is sent again then. */
static bool answered(const struct end *e)
{
	struct pollfd fd = {.fd = e->talk, .events = POLLIN};

	return poll(&fd, 1, 500) == 1;
}

/* One message each time. */
static void one(struct end *e, bool first, const struct way *way, size_t len, uint32_t seed)
{
	bool reads = way->op == IBV_WR_RDMA_READ,
	     sends = way->op == IBV_WR_SEND || way->op == IBV_WR_SEND_WITH_IMM;
	size_t at = 4097;

	if (first != reads) {
		source(e, at, len, seed);
	} else {
		blank(e, at + len + 4096);
		if (way->receives)
			end_receive(e, seed, at, sends ? len : 0);
	}
	end_meet(e);
	if (first) {
		do {
			end_post(e, way->op, seed, at, len, at);
			(void)end_wait(e);
		} while (e->type == IBV_QPT_UC && !answered(e));
		if (reads)
			check(e, at, len, seed, way->name);
		end_meet(e);
		return;
	}
	if (way->receives) {
		struct ibv_wc wc = end_wait(e);

		if (wc.byte_len != len || wc.wr_id != seed)
			end_fault("%s of %zu bytes: completion of %u", way->name, len, wc.byte_len);
		check(e, at, len, seed, way->name);
	}
	end_meet(e);
	if (!reads)
		check(e, at, len, seed, way->name);
}

/* Several under way; looked at as soon as each is said to be there. */
static void many(struct end *e, bool first, size_t len, uint32_t seed)
{
	size_t slot = ROOM / SLOTS / 4096 * 4096;

	len = len < slot - 1 ? len : slot - 2;
	if (first)
		source(e, 0, len, seed);
	else
		blank(e, ROOM);
	for (uint32_t i = 0; i < SLOTS && !first; i++)
		end_receive(e, i, 0, 0);
	end_meet(e);
	for (uint32_t i = 0; i < SLOTS && first; i++)
		end_post(e, IBV_WR_RDMA_WRITE_WITH_IMM, i, 0, len, i * slot + 1);
	for (uint32_t i = 0; i < SLOTS; i++) {
		struct ibv_wc wc = end_wait(e);

		if (wc.wr_id != i)
			end_fault("completion %llu, not %u", (unsigned long long)wc.wr_id, i);
		if (!first)
			check(e, i * slot + 1, len, seed, "one of many");
	}
	end_meet(e);
}

/* Data, and behind it a flag in host memory, which is watched. */
static void flagged(struct end *e, bool first, size_t len, uint32_t seed)
{
	uint64_t value = seed;

	if (first)
		source(e, 8192, len, seed);
	else
		blank(e, len + 8192);
	*e->flag = 0;
	end_meet(e);
	if (first) {
		struct ibv_sge sge = {(uintptr_t)e->flag, 8, e->flag_mr->lkey};
		struct ibv_send_wr *bad, wr = {.wr_id = 2,
					       .sg_list = &sge,
					       .num_sge = 1,
					       .opcode = IBV_WR_RDMA_WRITE,
					       .send_flags = IBV_SEND_SIGNALED,
					       .wr.rdma = {e->peer.flag_at, e->peer.flag_rkey}};

		*e->flag = value;
		end_post(e, IBV_WR_RDMA_WRITE, 1, 8192, len, 1);
		if (ibv_post_send(e->qp, &wr, &bad))
			end_fault("ibv_post_send");
		(void)end_wait(e);
		(void)end_wait(e);
	} else {
		double until = end_seconds() + 30;
		struct ibv_wc wc;

		while (__atomic_load_n(e->flag, __ATOMIC_ACQUIRE) != value) {
			if (end_seconds() > until)
				end_fault("the flag does not come");
			(void)ibv_poll_cq(e->cq, 1, &wc);
		}
		check(e, 1, len, seed, "data before its flag");
	}
	end_meet(e);
}

void traffic_bytes(struct end *e, bool first, const struct traffic *t)
{
	uint32_t seed = 1;

	end_connect(e, first ? t->source : t->target, ROOM + 65536, t->inside);
	for (unsigned int round = 0; round < t->rounds; round++) {
		for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++)
			for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
				if (e->type == IBV_QPT_RC || (ways[w].uc && sizes[s] <= UNRELIABLE))
					one(e, first, &ways[w], sizes[s], ++seed);
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]) && e->type == IBV_QPT_RC;
		     s++) {
			many(e, first, sizes[s], ++seed);
			flagged(e, first, sizes[s], ++seed);
		}
	}
	end_close(e);
	if (first)
		printf("bytes: %s to %s: right\n", gpu_kind_names[t->source],
		       gpu_kind_names[t->target]);
}
