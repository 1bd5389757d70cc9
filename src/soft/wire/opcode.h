/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BTH opcodes and what each carries (InfiniBand Architecture Specification, volume 1, chapter 9:
 * transport in the top three bits, operation in the low five).
 */
#ifndef SOFT_WIRE_OPCODE_H
#define SOFT_WIRE_OPCODE_H

#include <stdint.h>

enum soft_transport { SOFT_RC = 0x00, SOFT_UC = 0x20, SOFT_RD = 0x40, SOFT_UD = 0x60 };

/* The operation alone; an opcode is transport | operation. */
enum soft_operation {
	SOFT_SEND_FIRST = 0x00,
	SOFT_SEND_MIDDLE = 0x01,
	SOFT_SEND_LAST = 0x02,
	SOFT_SEND_LAST_IMM = 0x03,
	SOFT_SEND_ONLY = 0x04,
	SOFT_SEND_ONLY_IMM = 0x05,
	SOFT_WRITE_FIRST = 0x06,
	SOFT_WRITE_MIDDLE = 0x07,
	SOFT_WRITE_LAST = 0x08,
	SOFT_WRITE_LAST_IMM = 0x09,
	SOFT_WRITE_ONLY = 0x0a,
	SOFT_WRITE_ONLY_IMM = 0x0b,
	SOFT_READ_REQUEST = 0x0c,
	SOFT_READ_RESPONSE_FIRST = 0x0d,
	SOFT_READ_RESPONSE_MIDDLE = 0x0e,
	SOFT_READ_RESPONSE_LAST = 0x0f,
	SOFT_READ_RESPONSE_ONLY = 0x10,
	SOFT_ACKNOWLEDGE = 0x11,
	SOFT_ATOMIC_ACKNOWLEDGE = 0x12,
	SOFT_COMPARE_SWAP = 0x13,
	SOFT_FETCH_ADD = 0x14,
	SOFT_SEND_LAST_INVALIDATE = 0x16,
	SOFT_SEND_ONLY_INVALIDATE = 0x17,
};
#define SOFT_CNP 0x81 /* RoCE v2 congestion notification: a whole opcode */

/* What an opcode carries and where it stands in its message. */
enum {
	SOFT_HAS_RETH = 1 << 0,
	SOFT_HAS_AETH = 1 << 1,
	SOFT_HAS_ATOMIC = 1 << 2,     /* AtomicETH */
	SOFT_HAS_ATOMIC_ACK = 1 << 3, /* AtomicAckETH */
	SOFT_HAS_IMM = 1 << 4,
	SOFT_HAS_IETH = 1 << 5,
	SOFT_HAS_DETH = 1 << 6,
	SOFT_HAS_PAYLOAD = 1 << 7, /* may carry payload; others must not */
	SOFT_IS_FIRST = 1 << 8,	   /* FIRST or ONLY */
	SOFT_IS_LAST = 1 << 9,	   /* LAST or ONLY */
	SOFT_IS_RESPONSE = 1 << 10,
	SOFT_IS_SEND = 1 << 11,
	SOFT_IS_WRITE = 1 << 12,
	SOFT_IS_READ = 1 << 13,
};

struct soft_opcode {
	const char *name; /* "RC_SEND_FIRST"; NULL: no such opcode here */
	uint16_t flags;
	uint8_t header_bytes; /* BTH and extended headers */
};

/* Never NULL; an opcode that this device does not speak has a NULL name. */
const struct soft_opcode *soft_opcode_find(uint8_t opcode);

#endif
