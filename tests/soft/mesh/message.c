/* SPDX-License-Identifier: Apache-2.0 */
/* What a message is, and its bytes; and how long is too long. */
#include "mesh.h"

#include <stddef.h>
#include <stdio.h>
#include <time.h>

enum { CLEAR = 0xc5 };

int64_t mesh_clock_s(struct mesh_clock *clock)
{
	const int64_t most = 100000000;
	struct timespec t;
	int64_t now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	if (clock->last)
		clock->sum_ns += now - clock->last < most ? now - clock->last : most;
	clock->last = now;
	return clock->sum_ns / 1000000000;
}

/* splitmix64's finalizer over a sum. */
uint64_t mesh_mix(uint64_t a, uint64_t b)
{
	uint64_t x = a + (b + 1) * 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Around what cuts messages into packets, and now and then anything. */
static uint32_t size_of(uint64_t random, uint32_t max)
{
	static const uint32_t sizes[] = {0,    1,    3,	   8,	 64,   255,  256,  257,
					 1024, 1025, 2047, 4096, 4097, 8192, 9001, 16384};
	uint32_t size = sizes[random % 16];

	if (random >> 8 & 1)
		size = (uint32_t)(random >> 16);
	return size <= max ? size : (uint32_t)(size % (max + 1));
}

struct mesh_message mesh_message(const struct mesh_plan *plan, unsigned int from, unsigned int to,
				 unsigned int lane, uint64_t number)
{
	static const uint8_t kinds[16] = {
		MESH_WRITE, MESH_WRITE, MESH_WRITE,	MESH_WRITE_IMM, MESH_WRITE_IMM, MESH_SEND,
		MESH_SEND,  MESH_SEND,	MESH_SEND_IMM,	MESH_SEND_IMM,	MESH_READ,	MESH_READ,
		MESH_READ,  MESH_READ,	MESH_FETCH_ADD, MESH_SWAP,
	};
	uint64_t word = mesh_mix(mesh_mix(plan->seed, from << 20 | to << 12 | lane), number);
	uint64_t random = mesh_mix(word, 1);
	struct mesh_message m = {
		.kind = kinds[random & 15],
		.word = word,
		.imm = (uint32_t)number ^ (uint32_t)plan->seed,
		.hits = random >> 4 & 1,
		.pieces = random >> 5 & 1,
	};

	m.size = size_of(random >> 8, plan->size_max);
	m.shift = (uint32_t)(random >> 40) % 32;
	if (m.kind >= MESH_FETCH_ADD) {
		m.size = 8;
		m.shift = 0;
	}
	m.in_line = m.size <= MESH_INLINE && random >> 6 & 1 && mesh_receives(&m);
	return m;
}

static uint8_t byte(uint64_t word, size_t i)
{
	return (uint8_t)((word >> 8 * (i % 8)) + i * 31 + (i >> 8) * 17);
}

void mesh_fill(uint8_t *to, size_t len, uint64_t word)
{
	for (size_t i = 0; i < len; i++)
		to[i] = byte(word, i);
}

void mesh_clear(uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)(CLEAR ^ i);
}

const char *mesh_verify(const uint8_t *slot, size_t slot_bytes, size_t at, size_t len,
			uint64_t word, size_t skip)
{
	static char text[96];

	for (size_t i = 0; i < slot_bytes; i++) {
		bool inside = i >= at && i - at < len;
		uint8_t want = inside ? byte(word, i - at + skip) : (uint8_t)(CLEAR ^ i);

		if (slot[i] == want)
			continue;
		(void)snprintf(text, sizeof(text), "byte %td of %zu is %02x, not %02x",
			       (ptrdiff_t)i - (ptrdiff_t)at, len, slot[i], want);
		return text;
	}
	return NULL;
}
