/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records: what is written is read; what a hostile writer can write is refused. The headers in them
 * are those of the wire, so that of every opcode is compared with what the packet decoder reads.
 */
#include "unit.h"

#include <errno.h>

#include "soft/copy/source.h"
#include "soft/lane/record.h"
#include "soft/wire/icrc.h"

static const struct soft_record_route route = {
	.src = {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}},
	.dst = {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}},
	.traffic_class = 0x63,
};

static _Alignas(64) uint8_t memory[2 * SOFT_RECORD_PAYLOAD_MAX];

static struct soft_packet full_packet(uint8_t opcode)
{
	return (struct soft_packet){
		.opcode = opcode,
		.solicited = true,
		.ack_request = true,
		.migrated = true,
		.pkey = 0x8001,
		.dest_qp = 0x123456,
		.psn = 0xfffffe,
		.va = 0x1122334455667788,
		.rkey = 0xa0b0c0d0,
		.length = 0x7fff0001,
		.swap_add = 0x0102030405060708,
		.compare = 0x1112131415161718,
		.original = 0x2122232425262728,
		.syndrome = 0x1f,
		.msn = 0x00aabb,
		.imm_be = 0x99887766,
		.invalidate_rkey = 0x55443322,
		.qkey = 0x11111111,
		.src_qp = 0x654321,
	};
}

/* The wire's decoder is the outside source: both must read the same fields. */
static void test_headers_are_the_wires(void **state)
{
	static struct soft_record_read read;
	unsigned int known = 0;

	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		struct soft_packet p = full_packet((uint8_t)opcode), wire = {0};
		uint8_t bytes[SOFT_HEADER_MAX + SOFT_ICRC_BYTES] = {0};
		size_t len;

		if (!soft_opcode_find((uint8_t)opcode)->name)
			continue;
		known++;
		len = soft_packet_encode(&p, bytes);
		assert_int_equal(soft_packet_decode(bytes, len + SOFT_ICRC_BYTES, &wire), 0);
		soft_record_write(memory, &route, &p, NULL, 0);
		assert_int_equal(soft_record_read(memory, sizeof(memory), &read),
				 soft_record_bytes(0, 0));
		assert_int_equal(read.packet.packets, 1);
		read.packet.packets = 0;
		assert_memory_equal(&read.packet, &wire, sizeof(wire));
		assert_memory_equal(&read.record.src, &route.src, sizeof(route.src));
		assert_memory_equal(&read.record.dst, &route.dst, sizeof(route.dst));
		assert_int_equal(read.record.traffic_class, route.traffic_class);
	}
	assert_true(known > 20);
}

static void test_payload_and_pieces(void **state)
{
	static struct soft_record_read read;
	static uint8_t a[100], b[4097];
	struct iovec pieces[] = {{a, sizeof(a)}, {b, sizeof(b)}};
	struct soft_packet p = full_packet(SOFT_WRITE_ONLY);
	uint64_t token = 42;

	memset(a, 1, sizeof(a));
	memset(b, 2, sizeof(b));
	p.payload_bytes = sizeof(a) + sizeof(b);
	p.packets = 2;
	soft_record_write(memory, &route, &p, pieces, 2);
	assert_int_equal(soft_record_read(memory, sizeof(memory), &read),
			 soft_record_bytes(p.payload_bytes, 0));
	assert_memory_equal(read.packet.payload, a, sizeof(a));
	assert_memory_equal(read.packet.payload + sizeof(a), b, sizeof(b));
	assert_int_equal(read.packet.payload_bytes, p.payload_bytes);
	assert_int_equal(read.packet.packets, 2);
	assert_int_equal(read.record.num_pieces, 0);

	soft_record_refer(memory, &route, &p, pieces, 2, NULL, &token, 77);
	assert_int_equal(soft_record_read(memory, sizeof(memory), &read), soft_record_bytes(0, 2));
	assert_null(read.packet.payload);
	assert_int_equal(read.record.num_pieces, 2);
	assert_int_equal(read.pieces[1].addr, (uintptr_t)b);
	assert_int_equal(read.pieces[1].len, sizeof(b));
	assert_int_equal(read.record.token_at, (uintptr_t)&token);
	assert_int_equal(read.record.token, 77);
	assert_int_equal(read.pieces[0].export, 0);

	p.direct = &(struct soft_direct){
		.export = 0x301, .unit = 9, .generation = 5, .offset = UINT64_C(1) << 40};
	soft_record_lend(memory, &route, &p);
	assert_int_equal(soft_record_read(memory, sizeof(memory), &read), soft_record_bytes(0, 1));
	assert_null(read.packet.payload);
	assert_int_equal(read.record.num_pieces, 1);
	assert_int_equal(read.pieces[0].len, p.payload_bytes);
	assert_int_equal(read.pieces[0].addr, UINT64_C(1) << 40);
	assert_int_equal(read.pieces[0].export, 0x301);
	assert_int_equal(read.pieces[0].unit, 9);
	assert_int_equal(read.pieces[0].generation, 5);
}

static void test_skip(void **state)
{
	static struct soft_record_read read;

	soft_record_skip(memory, 64);
	assert_int_equal(soft_record_read(memory, 64, &read), 64);
	soft_record_skip(memory, 4096);
	assert_int_equal(soft_record_read(memory, 8192, &read), 4096);
	assert_int_equal(soft_record_read(memory, 4032, &read), -EPROTO);
	soft_record_skip(memory, 0);
	assert_int_equal(soft_record_read(memory, 64, &read), -EPROTO);
	soft_record_skip(memory, 100);
	assert_int_equal(soft_record_read(memory, 256, &read), -EPROTO);
}

/* One field is wrong. */
static void damage(size_t at, uint64_t value, size_t width, bool pieces)
{
	static struct soft_record_read read;
	static uint8_t bytes[1000];
	struct iovec two[] = {{bytes, 500}, {bytes, 500}};
	struct soft_packet p = full_packet(SOFT_WRITE_ONLY);
	uint64_t token = 1;
	size_t len;

	p.payload_bytes = sizeof(bytes);
	if (pieces)
		soft_record_refer(memory, &route, &p, two, 2, NULL, &token, 1);
	else
		soft_record_write(memory, &route, &p, two, 2);
	len = soft_record_bytes(pieces ? 0 : sizeof(bytes), pieces ? 2 : 0);
	assert_int_equal(soft_record_read(memory, len, &read), len);
	memcpy(memory + at, &value, width);
	if (soft_record_read(memory, len, &read) != -EPROTO)
		fail_msg("%llu at %zu is taken", (unsigned long long)value, at);
}

#define AT(field)		     offsetof(struct soft_record, field)
#define WIDTH(field)		     sizeof(((struct soft_record *)NULL)->field)
#define DAMAGE(field, value, pieces) damage(AT(field), value, WIDTH(field), pieces)

static void test_hostile_records(void **state)
{
	const size_t piece = sizeof(struct soft_record);

	/* What is lent stands alone. */
	damage(piece + offsetof(struct soft_record_piece, export), 1, 4, true);
	DAMAGE(bytes, 0, false);
	DAMAGE(bytes, 64, false);
	DAMAGE(bytes, UINT32_MAX, false);
	DAMAGE(bytes, 4096, false);
	DAMAGE(kind, 2, false);
	DAMAGE(payload_bytes, 999 + 64, false);
	DAMAGE(payload_bytes, UINT32_MAX, false);
	DAMAGE(payload_bytes, SOFT_RECORD_PAYLOAD_MAX + 1, true);
	DAMAGE(packets, 0, false);
	DAMAGE(packets, UINT32_MAX, false);
	DAMAGE(header_bytes, 0, false);
	DAMAGE(header_bytes, 12, false);
	DAMAGE(header_bytes, 255, false);
	DAMAGE(num_pieces, 255, false);
	DAMAGE(num_pieces, 0, true);
	DAMAGE(num_pieces, 1, true);
	DAMAGE(num_pieces, 34, true);
	damage(AT(header), SOFT_ACKNOWLEDGE, 1, false);
	damage(AT(header), 0xff, 1, false);
	damage(AT(header) + 1, 0x0f, 1, false);
	damage(piece, UINT64_MAX - 1, 8, true);
	damage(piece + 8, 0, 8, true);
	damage(piece + 8, UINT64_MAX, 8, true);
	damage(piece + 8, 501, 8, true);
	damage(piece + 8, UINT64_MAX - 499, 8, true);
}

static void test_short(void **state)
{
	static struct soft_record_read read;
	struct soft_packet p = full_packet(SOFT_ACKNOWLEDGE);

	soft_record_write(memory, &route, &p, NULL, 0);
	assert_int_equal(soft_record_read(memory, 0, &read), -EPROTO);
	assert_int_equal(soft_record_read(memory, 63, &read), -EPROTO);
	assert_int_equal(soft_record_read(memory, 64, &read), -EPROTO);
	assert_int_equal(soft_record_read(memory, 128, &read), 128);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_headers_are_the_wires),
		cmocka_unit_test(test_payload_and_pieces),
		cmocka_unit_test(test_skip),
		cmocka_unit_test(test_hostile_records),
		cmocka_unit_test(test_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
