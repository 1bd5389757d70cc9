/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes and bandwidths against figures worked out from nccl-tests' published formulas, and payloads
 * against arithmetic of the processor.
 */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "nccl/collective.h"
#include "nccl/library.h"
#include "nccl/payload.h"

static void shapes(void **state)
{
	/* size, count, send and receive elements, by hand: count = bytes/4/n in multiples of 4 */
	static const struct {
		enum pp_collective c;
		uint64_t asked, ranks, bytes, count, send, receive;
	} rows[] = {
		{PP_NCCL_ALL_REDUCE, 1 << 20, 8, 1 << 20, 262144, 262144, 262144},
		{PP_NCCL_ALL_REDUCE, 10, 8, 8, 2, 2, 2},
		{PP_NCCL_SEND_RECV, 1 << 20, 3, 1 << 20, 262144, 262144, 262144},
		{PP_NCCL_ALL_GATHER, 1 << 20, 8, 1 << 20, 32768, 32768, 262144},
		{PP_NCCL_ALL_GATHER, 8, 2, 0, 0, 0, 0},
		{PP_NCCL_ALL_GATHER, 64, 3, 48, 4, 4, 12},
		{PP_NCCL_REDUCE_SCATTER, 1000, 2, 992, 124, 248, 124},
		{PP_NCCL_ALL_TO_ALL, 1000, 2, 992, 124, 248, 248},
	};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		struct pp_collective_shape s = pp_collective_shape(
			rows[i].c, PP_FLOAT, rows[i].asked, (unsigned int)rows[i].ranks);

		assert_int_equal(s.bytes, rows[i].bytes);
		assert_int_equal(s.count, rows[i].count);
		assert_int_equal(s.send, rows[i].send);
		assert_int_equal(s.receive, rows[i].receive);
	}
}

static void factors(void **state)
{
	(void)state;
	assert_true(pp_collective_factor(PP_NCCL_ALL_REDUCE, 2) == 1.0);
	assert_true(pp_collective_factor(PP_NCCL_ALL_REDUCE, 8) == 1.75);
	assert_true(pp_collective_factor(PP_NCCL_ALL_GATHER, 4) == 0.75);
	assert_true(pp_collective_factor(PP_NCCL_REDUCE_SCATTER, 8) == 0.875);
	assert_true(pp_collective_factor(PP_NCCL_ALL_TO_ALL, 2) == 0.5);
	assert_true(pp_collective_factor(PP_NCCL_SEND_RECV, 7) == 1.0);
}

static void words(void **state)
{
	enum pp_collective c;
	enum pp_element e;
	enum pp_reduction r;

	(void)state;
	assert_int_equal(pp_collective_parse("alltoall", &c), -EINVAL);
	for (unsigned int i = 0; i < PP_COLLECTIVES; i++) {
		assert_int_equal(pp_collective_parse(pp_collective_name(i), &c), 0);
		assert_int_equal(c, i);
	}
	/* ncclDataType_t and ncclRedOp_t of NCCL's header */
	assert_int_equal(pp_element_parse("bfloat16", &e), 0);
	assert_int_equal(pp_element_code(e), 9);
	assert_int_equal(pp_element_code(PP_INT8), 0);
	assert_int_equal(pp_element_code(PP_INT32), 2);
	assert_int_equal(pp_element_code(PP_HALF), 6);
	assert_int_equal(pp_element_code(PP_FLOAT), 7);
	assert_int_equal(pp_element_code(PP_DOUBLE), 8);
	assert_int_equal(pp_reduction_parse("avg", &r), 0);
	assert_int_equal(r, 4);
	assert_int_equal(pp_reduction_parse("max", &r), 0);
	assert_int_equal(r, 2);
}

static float half_to_float(uint16_t h)
{
	return (h & 0x7fff) ? ldexpf((float)((h & 1023) | 1024), (h >> 10 & 31) - 25) : 0;
}

static double read_element(enum pp_element e, const uint8_t *at)
{
	uint32_t bits = 0;
	uint16_t h;
	float f;
	double d;

	switch (e) {
	case PP_INT8:
		return (double)*at;
	case PP_HALF:
		memcpy(&h, at, 2);
		return (double)half_to_float(h);
	case PP_BFLOAT16:
		memcpy(&h, at, 2);
		bits = (uint32_t)h << 16;
		memcpy(&f, &bits, 4);
		return (double)f;
	case PP_INT32:
		memcpy(&bits, at, 4);
		return bits;
	case PP_FLOAT:
		memcpy(&f, at, 4);
		return (double)f;
	default:
		memcpy(&d, at, 8);
		return d;
	}
}

static double apply(enum pp_reduction r, double a, double b)
{
	switch (r) {
	case PP_SUM:
	case PP_AVG:
		return a + b;
	case PP_PROD:
		return a * b;
	case PP_MAX:
		return fmax(a, b);
	default:
		return fmin(a, b);
	}
}

/* The largest whole number below which all are there. */
static const double limits[PP_ELEMENTS] = {127, 2147483647, 2048, 16777216, 9007199254740992, 256};

static void one_payload(enum pp_element e, enum pp_reduction op, unsigned int ranks)
{
	struct pp_payload_kind k = {
		.element = e, .reduced = true, .reduction = op, .ranks = ranks, .salt = 7};
	struct pp_payload sum = {0}, own[8] = {{0}};
	unsigned int size = pp_element_size(e), differing = 0;

	assert_int_equal(pp_payload_reduced(&k, &sum), 0);
	for (unsigned int r = 0; r < ranks; r++)
		assert_int_equal(pp_payload_of_rank(&k, r, &own[r]), 0);
	for (unsigned int i = 0; i < PP_PAYLOAD_PERIOD; i++) {
		double v = read_element(e, own[0].table + i * size);

		for (unsigned int r = 1; r < ranks; r++)
			v = apply(op, v, read_element(e, own[r].table + i * size));
		assert_true(v <= limits[e]);
		v = op == PP_AVG ? v / ranks : v;
		assert_true(v == read_element(e, sum.table + i * size));
		assert_int_not_equal(
			sum.table[(i + 1) * size - 1] == 0xff && sum.table[i * size] == 0xff, 1);
		differing += v != read_element(e, own[0].table + i * size);
	}
	/* a rank's own part alone must not pass for the sum */
	if (op != PP_MAX && op != PP_MIN)
		assert_true(differing > PP_PAYLOAD_PERIOD / 4);
	pp_payload_done(&sum);
	for (unsigned int r = 0; r < ranks; r++)
		pp_payload_done(&own[r]);
}

static void payloads(void **state)
{
	(void)state;
	for (unsigned int e = 0; e < PP_ELEMENTS; e++)
		for (unsigned int op = 0; op < PP_REDUCTIONS; op++) {
			one_payload(e, op, 2);
			one_payload(e, op, 8);
		}
	one_payload(PP_BFLOAT16, PP_SUM, 7);
}

static void refusals(void **state)
{
	struct pp_payload_kind k = {
		.element = PP_BFLOAT16, .reduced = true, .reduction = PP_AVG, .ranks = 3};
	struct pp_error err = {0};

	(void)state;
	assert_int_equal(pp_payload_possible(&k, &err), -EOPNOTSUPP);
	k.ranks = 64;
	assert_int_equal(pp_payload_possible(&k, &err), -EOPNOTSUPP);
	k.ranks = 16;
	assert_int_equal(pp_payload_possible(&k, &err), 0);
}

static void finds_wrong(void **state)
{
	struct pp_payload_kind k = {.element = PP_FLOAT, .ranks = 2, .salt = 1};
	static float buffer[200000];
	struct pp_payload p = {0};
	uint64_t first = 0;
	float kept;

	(void)state;
	assert_int_equal(pp_payload_of_rank(&k, 1, &p), 0);
	pp_payload_write(&p, 12345, 200000, buffer);
	assert_int_equal(pp_payload_compare(&p, 12345, 200000, buffer, &first), 0);
	kept = buffer[150001];
	buffer[150001] = kept + 1;
	buffer[199999] = nanf("");
	assert_int_equal(pp_payload_compare(&p, 12345, 200000, buffer, &first), 2);
	assert_int_equal(first, 150001);
	/* a buffer that is off by a power of two is wrong nearly everywhere */
	pp_payload_write(&p, 12345, 200000, buffer);
	assert_true(pp_payload_compare(&p, 12345, 100000, buffer + 65536, &first) > 99000);
	k.salt = 2;
	pp_payload_done(&p);
	assert_int_equal(pp_payload_of_rank(&k, 1, &p), 0);
	assert_true(pp_payload_compare(&p, 12345, 200000, buffer, &first) > 199000);
	pp_payload_done(&p);
}

static void versions(void **state)
{
	unsigned int a, b, c;

	(void)state;
	/* NCCL's NCCL_VERSION(): x*1000 up to 2.8, x*10000 since */
	pp_nccl_version_split(22809, &a, &b, &c);
	assert_true(a == 2 && b == 28 && c == 9);
	pp_nccl_version_split(2708, &a, &b, &c);
	assert_true(a == 2 && b == 7 && c == 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes),   cmocka_unit_test(factors),
		cmocka_unit_test(words),    cmocka_unit_test(payloads),
		cmocka_unit_test(refusals), cmocka_unit_test(finds_wrong),
		cmocka_unit_test(versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
