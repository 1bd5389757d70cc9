/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of opcodes, as the specification's table of BTH opcodes has it (volume 1, 9.2.1), for
 * the transports and operations that the device speaks.
 *
 * Each operation is listed once with what it carries; a transport's row adds BTH and, for UD, DETH.
 */
#include "soft/wire/opcode.h"

#include "base/banned.h"

enum {
	RETH = SOFT_HAS_RETH,
	AETH = SOFT_HAS_AETH,
	ATOMIC = SOFT_HAS_ATOMIC,
	ATOMIC_ACK = SOFT_HAS_ATOMIC_ACK,
	IMM = SOFT_HAS_IMM,
	IETH = SOFT_HAS_IETH,
	DETH = SOFT_HAS_DETH,
	DATA = SOFT_HAS_PAYLOAD,
	FIRST = SOFT_IS_FIRST,
	LAST = SOFT_IS_LAST,
	ONLY = SOFT_IS_FIRST | SOFT_IS_LAST,
	SEND = SOFT_IS_SEND,
	WRITE = SOFT_IS_WRITE,
	READ = SOFT_IS_READ,
	RESPONSE = SOFT_IS_RESPONSE,
};

#define BYTES(flags)                                                                         \
	(12 + ((flags)&RETH ? 16 : 0) + ((flags)&AETH ? 4 : 0) + ((flags)&ATOMIC ? 28 : 0) + \
	 ((flags)&ATOMIC_ACK ? 8 : 0) + ((flags)&IMM ? 4 : 0) + ((flags)&IETH ? 4 : 0) +     \
	 ((flags)&DETH ? 8 : 0))

#define ROW(transport, operation, f) \
	[SOFT_##transport | SOFT_##operation] = {#transport "_" #operation, (f), BYTES(f)}

#define SEND_AND_WRITE(transport)                                                                  \
	ROW(transport, SEND_FIRST, SEND | DATA | FIRST), ROW(transport, SEND_MIDDLE, SEND | DATA), \
		ROW(transport, SEND_LAST, SEND | DATA | LAST),                                     \
		ROW(transport, SEND_LAST_IMM, SEND | DATA | LAST | IMM),                           \
		ROW(transport, SEND_ONLY, SEND | DATA | ONLY),                                     \
		ROW(transport, SEND_ONLY_IMM, SEND | DATA | ONLY | IMM),                           \
		ROW(transport, WRITE_FIRST, WRITE | DATA | FIRST | RETH),                          \
		ROW(transport, WRITE_MIDDLE, WRITE | DATA),                                        \
		ROW(transport, WRITE_LAST, WRITE | DATA | LAST),                                   \
		ROW(transport, WRITE_LAST_IMM, WRITE | DATA | LAST | IMM),                         \
		ROW(transport, WRITE_ONLY, WRITE | DATA | ONLY | RETH),                            \
		ROW(transport, WRITE_ONLY_IMM, WRITE | DATA | ONLY | RETH | IMM)

static const struct soft_opcode table[256] = {
	SEND_AND_WRITE(RC),
	ROW(RC, READ_REQUEST, READ | ONLY | RETH),
	ROW(RC, READ_RESPONSE_FIRST, READ | RESPONSE | DATA | FIRST | AETH),
	ROW(RC, READ_RESPONSE_MIDDLE, READ | RESPONSE | DATA),
	ROW(RC, READ_RESPONSE_LAST, READ | RESPONSE | DATA | LAST | AETH),
	ROW(RC, READ_RESPONSE_ONLY, READ | RESPONSE | DATA | ONLY | AETH),
	ROW(RC, ACKNOWLEDGE, RESPONSE | ONLY | AETH),
	ROW(RC, ATOMIC_ACKNOWLEDGE, RESPONSE | ONLY | AETH | ATOMIC_ACK),
	ROW(RC, COMPARE_SWAP, ONLY | ATOMIC),
	ROW(RC, FETCH_ADD, ONLY | ATOMIC),
	ROW(RC, SEND_LAST_INVALIDATE, SEND | DATA | LAST | IETH),
	ROW(RC, SEND_ONLY_INVALIDATE, SEND | DATA | ONLY | IETH),
	SEND_AND_WRITE(UC),
	ROW(UD, SEND_ONLY, SEND | DATA | ONLY | DETH),
	ROW(UD, SEND_ONLY_IMM, SEND | DATA | ONLY | DETH | IMM),
	/* 16 reserved bytes stand where an extended header would (annex A17.9.3). */
	[SOFT_CNP] = {"CNP", ONLY, 12 + 16},
};

const struct soft_opcode *soft_opcode_find(uint8_t opcode)
{
	return &table[opcode];
}
