/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speed of CRC-32 by each way that this processor has, of the copies, and of checking an ICRC;
 * beside memcpy(). Everything lies in the first-level cache. All are run in turns, so that a busy
 * moment hits all alike; prints medians and judges nothing.
 *
 *   ninja -C build perf/soft_crc32 && build/perf/soft_crc32
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "soft/copy/place.h"
#include "soft/wire/crc32_way.h"
#include "soft/wire/icrc.h"
#include "soft/wire/packet.h"
#include "base/banned.h"

enum { ROUNDS = 21, ROWS = 64, CALLS_BYTES = 1 << 20, CALLS_LEAST = 2000, BUFFER = 8192 };

struct row;
typedef uint32_t (*work)(const struct row *row);

struct row {
	const char *what;
	const struct soft_crc32_way *way;
	work call;
	size_t len;
	double ns[ROUNDS];
};

static uint8_t from[BUFFER] __attribute__((aligned(64)));
static uint8_t to[BUFFER] __attribute__((aligned(64)));
static struct soft_icrc_flow flow4, flow6;

static uint32_t by_sum(const struct row *row)
{
	return row->way->sum(1, from, row->len);
}

static uint32_t by_copy(const struct row *row)
{
	return row->way->copy(1, to, from, row->len);
}

static uint32_t by_memcpy(const struct row *row)
{
	memcpy(to, from, row->len);
	__asm__ volatile("" ::: "memory");
	return 0;
}

static uint32_t by_memcpy_then_sum(const struct row *row)
{
	memcpy(to, from, row->len);
	__asm__ volatile("" ::: "memory");
	return row->way->sum(1, to, row->len);
}

static uint32_t by_place(const struct row *row)
{
	soft_copy_place(to, from, row->len);
	return 0;
}

/* @len counts the payload; @guess 1 is wrong. */
static uint32_t by_check(const struct row *row, const struct soft_icrc_flow *flow, uint16_t guess)
{
	static size_t sealed_len;
	static const struct soft_icrc_flow *sealed_flow;
	size_t len = SOFT_BTH_BYTES + row->len + SOFT_ICRC_BYTES;

	if (sealed_len != len || sealed_flow != flow) {
		uint32_t sum = soft_icrc_begin(flow, 0, len, from, SOFT_BTH_BYTES);

		sum = soft_crc32_ways[0]->sum(sum, from + SOFT_BTH_BYTES, row->len);
		soft_icrc_final(sum, from + len - SOFT_ICRC_BYTES);
		sealed_len = len;
		sealed_flow = flow;
	}
	if (!soft_icrc_check(flow, guess, from, len))
		abort();
	return 0;
}

static uint32_t by_right_guess(const struct row *row)
{
	return by_check(row, &flow4, 0);
}

static uint32_t by_wrong_guess(const struct row *row)
{
	return by_check(row, &flow4, 1);
}

static uint32_t by_ipv6(const struct row *row)
{
	return by_check(row, &flow6, 0);
}

static double now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double measure(const struct row *row)
{
	size_t calls = CALLS_BYTES / row->len + CALLS_LEAST;
	volatile uint32_t sink = 0;
	double begin;

	sink = row->call(row);
	begin = now_ns();
	for (size_t i = 0; i < calls; i++)
		sink = row->call(row);
	(void)sink;
	return (now_ns() - begin) / (double)calls;
}

static int by_number(const void *a, const void *b)
{
	double x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x < y ? -1 : x > y;
}

static size_t plan(struct row rows[ROWS])
{
	static const size_t lens[] = {12, 60, 64, 1024, 4096};
	static const struct {
		const char *what;
		work call;
	} others[] = {
		{"memcpy", by_memcpy},
		{"place", by_place},
		{"icrc, guess right", by_right_guess},
		{"icrc, guess wrong", by_wrong_guess},
		{"icrc, IPv6", by_ipv6},
	};
	size_t n = 0;

	for (size_t i = 0; i < 5; i++) {
		for (const struct soft_crc32_way *const *w = soft_crc32_ways; *w; w++) {
			if (!(*w)->usable())
				continue;
			rows[n++] = (struct row){"sum", *w, by_sum, lens[i]};
			rows[n++] = (struct row){"copy", *w, by_copy, lens[i]};
		}
		rows[n++] = (struct row){"memcpy+sum",
					 soft_crc32_ways[0]->usable() ? soft_crc32_ways[0]
								      : &soft_crc32_by_table,
					 by_memcpy_then_sum, lens[i]};
		for (size_t k = 0; k < 5; k++)
			rows[n++] = (struct row){others[k].what, NULL, others[k].call, lens[i]};
	}
	return n;
}

int main(void)
{
	static struct row rows[ROWS];
	struct soft_gid a = {{[10] = 0xff, 0xff, 10, 0, 0, 1}}, b = {{0xfe, 0x80, [15] = 1}};
	size_t n = plan(rows);

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 37 + i / 253);
	soft_icrc_flow_init(&flow4, &a, &a, 0xc000);
	soft_icrc_flow_init(&flow6, &b, &b, 0xc000);
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < n; i++)
			rows[i].ns[round] = measure(&rows[i]);
	(void)printf("%-20s %-8s %6s %9s %7s\n", "what", "way", "bytes", "ns", "GB/s");
	for (size_t i = 0; i < n; i++) {
		double ns;

		qsort(rows[i].ns, ROUNDS, sizeof(double), by_number);
		ns = rows[i].ns[ROUNDS / 2];
		(void)printf("%-20s %-8s %6zu %9.1f %7.2f\n", rows[i].what,
			     rows[i].way ? rows[i].way->name : "", rows[i].len, ns,
			     (double)rows[i].len / ns);
	}
	return 0;
}
