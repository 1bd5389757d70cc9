/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ICRC against one that is computed here the long way: a whole IP packet is written down, its
 * changing fields are set to ones, zlib sums it. That both are what others put on the wire is
 * test_soft_rxe.c's and tests/wire's part.
 */
#include "unit.h"

#include <stdbool.h>

#include <zlib.h>

#include "soft/wire/crc32.h"
#include "soft/wire/icrc.h"
#include "soft/wire/packet.h"

enum { PAYLOAD = 4096, WRITE_BYTES = 28 + PAYLOAD + 4 };

static const struct soft_gid v4_src = {{[10] = 0xff, 0xff, 10, 1, 2, 3}};
static const struct soft_gid v4_dst = {{[10] = 0xff, 0xff, 192, 168, 7, 9}};
static const struct soft_gid v6_src = {{0xfe, 0x80, [8] = 2, [15] = 0x11}};
static const struct soft_gid v6_dst = {{0x20, 0x01, 0x0d, 0xb8, [15] = 0x22}};

static void fill(uint8_t *bytes, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(seed >> 24);
	}
}

static size_t ip_header(bool v4, uint16_t id, bool df, size_t len, uint8_t *p)
{
	size_t total = (v4 ? 28 : 8) + len;

	memset(p, 0xff, 40);
	if (v4) {
		p[0] = 0x45;
		p[2] = (uint8_t)(total >> 8);
		p[3] = (uint8_t)total;
		p[4] = (uint8_t)(id >> 8);
		p[5] = (uint8_t)id;
		p[6] = df ? 0x40 : 0;
		p[7] = 0;
		p[9] = 17;
		memcpy(p + 12, v4_src.raw + 12, 4);
		memcpy(p + 16, v4_dst.raw + 12, 4);
		return 20;
	}
	p[0] = 0x6f;
	p[4] = (uint8_t)(total >> 8);
	p[5] = (uint8_t)total;
	p[6] = 17;
	memcpy(p + 8, v6_src.raw, 16);
	memcpy(p + 24, v6_dst.raw, 16);
	return 40;
}

/* Writes the ICRC that such a sender would, behind bytes[len - 4]. */
static void seal(bool v4, uint16_t id, bool df, uint16_t sport, uint8_t *bytes, size_t len)
{
	uint8_t all[8 + 48], class = bytes[4];
	size_t n = 8 + ip_header(v4, id, df, len, all + 8);
	uint32_t sum;

	memset(all, 0xff, 8);
	all[n++] = (uint8_t)(sport >> 8);
	all[n++] = (uint8_t)sport;
	all[n++] = 4791 >> 8;
	all[n++] = 4791 & 0xff;
	all[n++] = (uint8_t)((len + 8) >> 8);
	all[n++] = (uint8_t)(len + 8);
	all[n++] = 0xff;
	all[n++] = 0xff;
	bytes[4] = 0xff;
	sum = (uint32_t)crc32(crc32(0, all, (uInt)n), bytes, (uInt)len - 4);
	bytes[4] = class;
	for (int i = 0; i < 4; i++)
		bytes[len - 4 + i] = (uint8_t)(sum >> 8 * i);
}

static struct soft_icrc_flow flow_of(bool v4, uint16_t sport)
{
	struct soft_icrc_flow flow;

	soft_icrc_flow_init(&flow, v4 ? &v4_src : &v6_src, v4 ? &v4_dst : &v6_dst, sport);
	assert_int_equal(flow.ipv4, v4);
	return flow;
}

/* A sender's way: headers, then payload, then the four bytes. */
static void sends_what_is_expected(void **state)
{
	static const size_t lens[] = {16, 20, 32, 36, 56, 1040, 4112, 4124, 4140};
	uint8_t bytes[4140], out[4];

	for (int v4 = 0; v4 < 2; v4++) {
		struct soft_icrc_flow flow = flow_of(v4, 0xc123);

		for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			size_t len = lens[i], headers = len >= 56 ? 40 : 12;
			uint32_t sum;

			fill(bytes, len, (uint32_t)len);
			seal(v4, 5, true, 0xc123, bytes, len);
			sum = soft_icrc_begin(&flow, 5, len, bytes, headers);
			sum = soft_crc32(sum, bytes + headers, len - headers - 4);
			soft_icrc_final(sum, out);
			assert_memory_equal(out, bytes + len - 4, 4);
			assert_true(soft_icrc_check(&flow, 5, bytes, len));
		}
	}
}

/* Every identification, DF or not, whatever the guess. */
static void solves_identification(void **state)
{
	struct soft_icrc_flow flow = flow_of(true, 0xffff);
	struct soft_icrc_id is;
	uint8_t bytes[60];

	fill(bytes, sizeof(bytes), 1);
	for (uint32_t id = 0; id < 65536; id++) {
		seal(true, (uint16_t)id, id % 3, 0xffff, bytes, sizeof(bytes));
		assert_true(soft_icrc_check(&flow, 0, bytes, sizeof(bytes)));
		assert_true(soft_icrc_solve(&flow, (uint16_t)(id * 77), bytes, sizeof(bytes), &is));
		assert_int_equal(is.id, id);
		assert_int_equal(is.df, id % 3 != 0);
	}
}

static void solves_at_every_length(void **state)
{
	struct soft_icrc_flow flow = flow_of(true, 0xc000);
	static uint8_t bytes[65507];

	fill(bytes, sizeof(bytes), 2);
	for (size_t len = 16; len <= sizeof(bytes); len += len < 5000 ? 1 : 997) {
		seal(true, 0xbeef, len & 1, 0xc000, bytes, len);
		assert_true(soft_icrc_check(&flow, 0, bytes, len));
		bytes[len - 4] ^= 1; /* seal() writes it anew for the next length */
		bytes[len - 1] ^= 0x55;
		assert_false(soft_icrc_check(&flow, 0xbeef, bytes, len));
	}
}

static void wrong_sums_are_refused(void **state)
{
	struct soft_icrc_flow v4 = flow_of(true, 0xc000), v6 = flow_of(false, 0xc000);
	uint8_t bytes[60];
	unsigned int accepted = 0;

	for (uint32_t i = 0; i < 1000000; i++) {
		fill(bytes, sizeof(bytes), i * 2654435761u);
		assert_false(soft_icrc_check(&v6, 0, bytes, sizeof(bytes)));
		accepted += soft_icrc_check(&v4, 0, bytes, sizeof(bytes));
	}
	print_message("IPv4: %u of 1000000 random sums accepted; 2^-15 of them: 31\n", accepted);
	assert_in_range(accepted, 10, 60);
}

static void flow_is_covered(void **state)
{
	uint8_t bytes[60];

	fill(bytes, sizeof(bytes), 3);
	for (int v4 = 0; v4 < 2; v4++) {
		struct soft_icrc_flow other;

		seal(v4, 0, true, 0xc000, bytes, sizeof(bytes));
		other = flow_of(v4, 0xc001);
		assert_false(soft_icrc_check(&other, 0, bytes, sizeof(bytes)));
		soft_icrc_flow_init(&other, v4 ? &v4_dst : &v6_dst, v4 ? &v4_src : &v6_src, 0xc000);
		assert_false(soft_icrc_check(&other, 0, bytes, sizeof(bytes)));
	}
}

static void short_and_long_are_refused(void **state)
{
	struct soft_icrc_flow v4 = flow_of(true, 1), v6 = flow_of(false, 1);

	for (size_t len = 0; len < 16; len++) {
		uint8_t *bytes = calloc(1, len ? len : 1);

		assert_non_null(bytes);
		assert_false(soft_icrc_check(&v4, 0, bytes, len));
		assert_false(soft_icrc_check(&v6, 0, bytes, len));
		free(bytes);
	}
	assert_false(soft_icrc_check(&v4, 0, NULL, 65508));
	assert_false(soft_icrc_check(&v6, 0, NULL, 65528));
	assert_false(soft_icrc_check(&v6, 0, NULL, SIZE_MAX));
}

/*
 * One bit of a packet turned over. Byte 4 of BTH is not covered; of the others IPv6 refuses all.
 * IPv4 accepts those whose place makes them look like another identification: one in 2^15 of the
 * places, and which ones is a property of the polynomial.
 */
static void flipped_bits(void **state)
{
	static uint8_t bytes[WRITE_BYTES];
	unsigned int accepted[2] = {0}, masked[2] = {0};

	for (int v4 = 0; v4 < 2; v4++) {
		struct soft_icrc_flow flow = flow_of(v4, 0xc000);

		fill(bytes, sizeof(bytes), 4);
		seal(v4, 0, true, 0xc000, bytes, sizeof(bytes));
		for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			if (soft_icrc_check(&flow, 0, bytes, sizeof(bytes))) {
				(*(bit / 8 == 4 ? &masked[v4] : &accepted[v4]))++;
				if (bit / 8 != 4)
					print_message("bit %zu of byte %zu\n", bit % 8, bit / 8);
			}
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
	print_message("accepted of %d flips: IPv4 %u, IPv6 %u\n", 8 * WRITE_BYTES - 8, accepted[1],
		      accepted[0]);
	assert_int_equal(masked[0], 8);
	assert_int_equal(masked[1], 8);
	assert_int_equal(accepted[0], 0);
	assert_true(accepted[1] <= 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends_what_is_expected),
		cmocka_unit_test(solves_identification),
		cmocka_unit_test(solves_at_every_length),
		cmocka_unit_test(wrong_sums_are_refused),
		cmocka_unit_test(flow_is_covered),
		cmocka_unit_test(short_and_long_are_refused),
		cmocka_unit_test(flipped_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
