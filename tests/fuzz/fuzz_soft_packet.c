/* SPDX-License-Identifier: Apache-2.0 */
/* A datagram: the first byte says IPv4 or IPv6 and a guess, the rest is UDP's payload. */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/wire/crc32.h"
#include "soft/wire/icrc.h"
#include "soft/wire/packet.h"

/* What a sender leaves zero and a receiver ignores, in place. */
static void clear_reserved(uint8_t *bytes, const struct soft_opcode *op)
{
	bytes[4] &= 0xc0;
	bytes[8] &= 0x80;
	if (op->flags & SOFT_HAS_DETH)
		bytes[16] = 0;
	if (bytes[0] == SOFT_CNP)
		memset(bytes + SOFT_BTH_BYTES, 0, 16);
}

static void decode_and_encode(uint8_t *bytes, size_t size)
{
	uint8_t out[SOFT_HEADER_MAX];
	struct soft_packet p = {.psn = 0xffffffff};
	const struct soft_opcode *op;
	size_t n;

	if (soft_packet_decode(bytes, size, &p)) {
		assert(p.psn == 0xffffffff);
		return;
	}
	op = soft_opcode_find(p.opcode);
	assert(op->name && p.payload_bytes <= SOFT_MTU_MAX);
	assert(p.pad == soft_packet_pad(p.payload_bytes));
	assert(op->header_bytes + p.payload_bytes + p.pad + SOFT_ICRC_BYTES == size);
	assert(p.payload_bytes ? p.payload == bytes + op->header_bytes : !p.payload);
	n = soft_packet_encode(&p, out);
	assert(n == op->header_bytes);
	clear_reserved(bytes, op);
	assert(memcmp(out, bytes, n) == 0);
}

/* The sum that a sender writes is accepted, whatever the guess; another is not, over IPv6. */
static void check(const struct soft_icrc_flow *flow, uint16_t guess, uint8_t *bytes, size_t size)
{
	static const uint8_t other = 1;
	uint32_t state;

	(void)soft_icrc_check(flow, guess, bytes, size);
	if (size < SOFT_BTH_BYTES + SOFT_ICRC_BYTES || size > 65507)
		return;
	state = soft_icrc_begin(flow, 3, size, bytes, SOFT_BTH_BYTES);
	state = soft_crc32(state, bytes + SOFT_BTH_BYTES, size - SOFT_BTH_BYTES - SOFT_ICRC_BYTES);
	soft_icrc_final(state, bytes + size - SOFT_ICRC_BYTES);
	assert(soft_icrc_check(flow, guess, bytes, size));
	bytes[size - 1] ^= other;
	assert(flow->ipv4 || !soft_icrc_check(flow, guess, bytes, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct soft_gid gid = {{[10] = 0xff, 0xff, 10, 0, 0, 1}};
	struct soft_icrc_flow flow;
	uint8_t *bytes;

	if (size == 0)
		return 0;
	bytes = malloc(size); /* one less is used: malloc(0) would be no block */
	assert(bytes);
	memcpy(bytes + 1, data + 1, size - 1);
	if (data[0] & 1)
		gid.raw[0] = 0xfe;
	soft_icrc_flow_init(&flow, &gid, &gid, 0xc000);
	check(&flow, data[0] >> 1, bytes + 1, size - 1);
	decode_and_encode(bytes + 1, size - 1);
	free(bytes);
	return 0;
}
