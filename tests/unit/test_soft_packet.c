/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets against bytes written down from the specification's header figures, against the opcode
 * table of the specification. Linux's rdma_rxe is test_soft_rxe.c's part.
 */
#include "unit.h"

#include <errno.h>

#include "soft/wire/packet.h"

/* What the specification's table of opcodes says each carries; 0: not spoken here. */
static const struct {
	uint8_t opcode;
	const char *name;
	uint8_t header_bytes;
	bool payload;
} spoken[] = {
	{0x00, "RC_SEND_FIRST", 12, true},
	{0x01, "RC_SEND_MIDDLE", 12, true},
	{0x02, "RC_SEND_LAST", 12, true},
	{0x03, "RC_SEND_LAST_IMM", 16, true},
	{0x04, "RC_SEND_ONLY", 12, true},
	{0x05, "RC_SEND_ONLY_IMM", 16, true},
	{0x06, "RC_WRITE_FIRST", 28, true},
	{0x07, "RC_WRITE_MIDDLE", 12, true},
	{0x08, "RC_WRITE_LAST", 12, true},
	{0x09, "RC_WRITE_LAST_IMM", 16, true},
	{0x0a, "RC_WRITE_ONLY", 28, true},
	{0x0b, "RC_WRITE_ONLY_IMM", 32, true},
	{0x0c, "RC_READ_REQUEST", 28, false},
	{0x0d, "RC_READ_RESPONSE_FIRST", 16, true},
	{0x0e, "RC_READ_RESPONSE_MIDDLE", 12, true},
	{0x0f, "RC_READ_RESPONSE_LAST", 16, true},
	{0x10, "RC_READ_RESPONSE_ONLY", 16, true},
	{0x11, "RC_ACKNOWLEDGE", 16, false},
	{0x12, "RC_ATOMIC_ACKNOWLEDGE", 24, false},
	{0x13, "RC_COMPARE_SWAP", 40, false},
	{0x14, "RC_FETCH_ADD", 40, false},
	{0x16, "RC_SEND_LAST_INVALIDATE", 16, true},
	{0x17, "RC_SEND_ONLY_INVALIDATE", 16, true},
	{0x20, "UC_SEND_FIRST", 12, true},
	{0x21, "UC_SEND_MIDDLE", 12, true},
	{0x22, "UC_SEND_LAST", 12, true},
	{0x23, "UC_SEND_LAST_IMM", 16, true},
	{0x24, "UC_SEND_ONLY", 12, true},
	{0x25, "UC_SEND_ONLY_IMM", 16, true},
	{0x26, "UC_WRITE_FIRST", 28, true},
	{0x27, "UC_WRITE_MIDDLE", 12, true},
	{0x28, "UC_WRITE_LAST", 12, true},
	{0x29, "UC_WRITE_LAST_IMM", 16, true},
	{0x2a, "UC_WRITE_ONLY", 28, true},
	{0x2b, "UC_WRITE_ONLY_IMM", 32, true},
	{0x64, "UD_SEND_ONLY", 20, true},
	{0x65, "UD_SEND_ONLY_IMM", 24, true},
	{0x81, "CNP", 28, false},
};

static void opcode_table(void **state)
{
	size_t next = 0;

	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		const struct soft_opcode *op = soft_opcode_find((uint8_t)opcode);

		if (next < sizeof(spoken) / sizeof(spoken[0]) && spoken[next].opcode == opcode) {
			assert_string_equal(op->name, spoken[next].name);
			assert_int_equal(op->header_bytes, spoken[next].header_bytes);
			assert_int_equal(!!(op->flags & SOFT_HAS_PAYLOAD), spoken[next].payload);
			assert_true(op->header_bytes <= SOFT_HEADER_MAX);
			next++;
		} else {
			assert_null(op->name);
		}
	}
	assert_int_equal(next, sizeof(spoken) / sizeof(spoken[0]));
}

/* BTH of a WRITE_ONLY_IMM, solicited, 3 bytes of pad, ack asked for, FECN; RETH; ImmDt; "Q". */
static const uint8_t write_only_imm[] = {
	0x0b, 0xb0, 0xff, 0xff, 0x80, 0x12, 0x34, 0x56, 0x80, 0xab, 0xcd, 0xef, /* BTH */
	0x00, 0x00, 0x7f, 0x12, 0x34, 0x56, 0x78, 0x90,				/* VA */
	0xde, 0xad, 0xbe, 0xef, 0x00, 0x00, 0x00, 0x01,				/* key, length */
	0x01, 0x02, 0x03, 0x04,							/* ImmDt */
	'Q',  0x00, 0x00, 0x00, 0xc0, 0xc1, 0xc2, 0xc3,				/* pad, ICRC */
};

static void decodes_fields(void **state)
{
	struct soft_packet p;

	assert_int_equal(soft_packet_decode(write_only_imm, sizeof(write_only_imm), &p), 0);
	assert_int_equal(p.opcode, SOFT_RC | SOFT_WRITE_ONLY_IMM);
	assert_true(p.solicited && p.ack_request && p.fecn);
	assert_false(p.migrated || p.becn);
	assert_int_equal(p.pad, 3);
	assert_int_equal(p.pkey, 0xffff);
	assert_int_equal(p.dest_qp, 0x123456);
	assert_int_equal(p.psn, 0xabcdef);
	assert_int_equal(p.va, 0x00007f1234567890);
	assert_int_equal(p.rkey, 0xdeadbeef);
	assert_int_equal(p.length, 1);
	assert_memory_equal(&p.imm_be, "\1\2\3\4", 4);
	assert_int_equal(p.payload_bytes, 1);
	assert_ptr_equal(p.payload, write_only_imm + 32);
}

static void decodes_atomics_and_acks(void **state)
{
	static const uint8_t swap[] = {
		0x13, 0x40, 0xff, 0xff, 0x40, 0,    0,	  0x11, 0x80, 0,    0,	  7, /* BTH */
		0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0,    0,    0,	  9, /* VA, key */
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, /* swap */
		0x25, 0x26, 0x27, 0x28, 0,    0,    0,	  0,
	};
	static const uint8_t ack[] = {
		0x12, 0x40, 0xff, 0xff, 0,    0,    0,	  0x11, 0,    0,    0, 7, 0x1f, 0x00,
		0x00, 0x2a, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0, 0, 0,	0,
	};
	static const uint8_t ud[] = {
		0x65, 0x00, 0x80, 0x01, 0, 0, 0, 0x01, 0, 0, 0, 3, /* BTH */
		0x80, 0x01, 0x00, 0x00, 0, 0, 1, 2,    9, 8, 7, 6, /* DETH, ImmDt */
		'd',  'a',  't',  'a',	0, 0, 0, 0,
	};
	struct soft_packet p;

	assert_int_equal(soft_packet_decode(swap, sizeof(swap), &p), 0);
	assert_int_equal(p.va, 0x0102030405060708);
	assert_int_equal(p.rkey, 9);
	assert_int_equal(p.swap_add, 0x1112131415161718);
	assert_int_equal(p.compare, 0x2122232425262728);
	assert_true(p.migrated && p.becn && !p.fecn && !p.solicited);
	assert_null(p.payload);

	assert_int_equal(soft_packet_decode(ack, sizeof(ack), &p), 0);
	assert_int_equal(p.syndrome, SOFT_AETH_ACK);
	assert_int_equal(p.msn, 42);
	assert_int_equal(p.original, 0x3132333435363738);

	assert_int_equal(soft_packet_decode(ud, sizeof(ud), &p), 0);
	assert_int_equal(p.pkey, 0x8001);
	assert_int_equal(p.qkey, 0x80010000);
	assert_int_equal(p.src_qp, 0x000102);
	assert_memory_equal(&p.imm_be, "\x9\x8\x7\x6", 4);
	assert_memory_equal(p.payload, "data", 4);
}

static void encodes_what_it_decodes(void **state)
{
	uint8_t out[SOFT_HEADER_MAX];
	struct soft_packet p;

	assert_int_equal(soft_packet_decode(write_only_imm, sizeof(write_only_imm), &p), 0);
	p.pad = 0; /* ignored: the payload's length says */
	assert_int_equal(soft_packet_encode(&p, out), 32);
	assert_memory_equal(out, write_only_imm, 32);
}

/* A packet of @len bytes, all zero but for opcode and pad count. */
static int shape(uint8_t opcode, unsigned int pad, size_t len)
{
	uint8_t *bytes = calloc(1, len ? len : 1); /* of its own: a sanitizer sees an overrun */
	struct soft_packet p = {.psn = 77};
	int err;

	assert_non_null(bytes);
	if (len > 0)
		bytes[0] = opcode;
	if (len > 1)
		bytes[1] = (uint8_t)(pad << 4);
	err = soft_packet_decode(bytes, len, &p);
	assert_int_equal(p.psn, err ? 77 : 0); /* written on success only */
	free(bytes);
	return err;
}

static void lengths_by_opcode(void **state)
{
	for (size_t i = 0; i < sizeof(spoken) / sizeof(spoken[0]); i++) {
		uint8_t opcode = spoken[i].opcode;
		size_t least = spoken[i].header_bytes + 4u;
		bool last = soft_opcode_find(opcode)->flags & SOFT_IS_LAST;

		for (size_t len = 0; len < least; len++)
			assert_int_equal(shape(opcode, 0, len), -EPROTO);
		assert_int_equal(shape(opcode, 0, least), 0);
		assert_int_equal(shape(opcode, 1, least), -EPROTO); /* pad of nothing */
		assert_int_equal(shape(opcode, 0, least + 1), -EPROTO);
		assert_int_equal(shape(opcode, 0, least + 4), spoken[i].payload ? 0 : -EPROTO);
		assert_int_equal(shape(opcode, 3, least + 4),
				 spoken[i].payload && last ? 0 : -EPROTO);
		assert_int_equal(shape(opcode, 0, least + 4096), spoken[i].payload ? 0 : -EPROTO);
		assert_int_equal(shape(opcode, 0, least + 4100), -EPROTO);
		assert_int_equal(shape(opcode, 3, least + 4100), -EPROTO);
		assert_int_equal(shape(opcode, 0, 65507), -EPROTO);
	}
}

static void refuses_unknown(void **state)
{
	static const uint8_t others[] = {0x15, 0x18, 0x1c, 0x1d, 0x2c,
					 0x36, 0x40, 0x60, 0xa0, 0xff};
	uint8_t bytes[28] = {0x04, 0x01}; /* transport version 1 */
	uint8_t out[SOFT_HEADER_MAX];
	struct soft_packet p;

	for (size_t i = 0; i < sizeof(others); i++)
		for (size_t len = 0; len < 80; len += 4)
			assert_int_equal(shape(others[i], 0, len), -EPROTO);
	assert_int_equal(soft_packet_decode(bytes, sizeof(bytes), &p), -EPROTO);
	bytes[1] = 0;
	assert_int_equal(soft_packet_decode(bytes, sizeof(bytes), &p), 0);
	p.opcode = 0xff;
	assert_int_equal(soft_packet_encode(&p, out), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opcode_table),
		cmocka_unit_test(decodes_fields),
		cmocka_unit_test(decodes_atomics_and_acks),
		cmocka_unit_test(encodes_what_it_decodes),
		cmocka_unit_test(lengths_by_opcode),
		cmocka_unit_test(refuses_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
