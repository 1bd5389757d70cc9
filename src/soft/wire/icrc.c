/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariant CRC, and how an IPv4 identification that nobody can see is taken out of it.
 *
 * A CRC is linear: bits that differ between what was summed here and what the sender summed show
 * as their sum in the difference of both results, each bit as a power of x modulo P. The unknown
 * bits (Identification, DF) stand together, so the difference is u(x) * x^e, where e counts the
 * bits that follow them and u holds the unknown bits alone. x has an inverse modulo P: multiply
 * the difference by x^-e and the unknown bits can be read off; every other bit of the product has
 * to be zero. That is one multiplication, with a factor that depends on the length only, and 15
 * of 32 bits that still check (16 identification bits and DF are free).
 */
#include "soft/wire/icrc.h"

#include <assert.h>
#include <endian.h>
#include <stdatomic.h>
#include <string.h>

#include "soft/wire/crc32.h"
#include "soft/wire/packet.h"
#include "base/banned.h"

enum {
	PROTOCOL_UDP = 17,
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	IPV4_DF = 0x40,	       /* in byte 6 of the header */
	IPV4_AFTER_FLAGS = 13, /* bytes of the header behind that one */
	BTH_MASKED = 4,	       /* FECN, BECN and reserved bits: routers may change them */
	INVERSES = 64,
};

static void store16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/*
 * What is summed before the first field that differs within a flow. An IPv4 packet's two bytes are
 * left to be summed with the rest, which makes that a multiple of eight bytes.
 */
static const uint8_t ones[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t ipv6_start[] = {0x6f, 0xff, 0xff, 0xff};

void soft_icrc_flow_init(struct soft_icrc_flow *flow, const struct soft_gid *src,
			 const struct soft_gid *dst, uint16_t sport)
{
	uint32_t state = soft_crc32(0xffffffff, ones, sizeof(ones));

	*flow = (struct soft_icrc_flow){
		.src = *src,
		.dst = *dst,
		.sport = sport,
		.ipv4 = soft_gid_is_ipv4(src) && soft_gid_is_ipv4(dst),
	};
	flow->state_prefix = flow->ipv4 ? state : soft_crc32(state, ipv6_start, sizeof(ipv6_start));
}

/* Both return what they wrote. Fields that a router may change are ones. */
static size_t put_ipv4(const struct soft_icrc_flow *flow, uint16_t ip_id, size_t udp_bytes,
		       uint8_t *out)
{
	out[0] = 0x45;
	out[1] = 0xff; /* type of service */
	store16(out + 2, IPV4_BYTES + UDP_BYTES + udp_bytes);
	store16(out + 4, ip_id);
	out[6] = IPV4_DF;
	out[7] = 0;
	out[8] = 0xff; /* TTL */
	out[9] = PROTOCOL_UDP;
	memset(out + 10, 0xff, 2); /* checksum */
	memcpy(out + 12, flow->src.raw + 12, 4);
	memcpy(out + 16, flow->dst.raw + 12, 4);
	return IPV4_BYTES;
}

static size_t put_ipv6(const struct soft_icrc_flow *flow, size_t udp_bytes, uint8_t *out)
{
	store16(out, UDP_BYTES + udp_bytes);
	out[2] = PROTOCOL_UDP;
	out[3] = 0xff; /* hop limit */
	memcpy(out + 4, flow->src.raw, 16);
	memcpy(out + 20, flow->dst.raw, 16);
	return IPV6_BYTES - sizeof(ipv6_start);
}

uint32_t soft_icrc_begin(const struct soft_icrc_flow *flow, uint16_t ip_id, size_t udp_bytes,
			 const uint8_t *header, size_t header_bytes)
{
	uint8_t all[IPV6_BYTES + UDP_BYTES + SOFT_HEADER_MAX];
	size_t n =
		flow->ipv4 ? put_ipv4(flow, ip_id, udp_bytes, all) : put_ipv6(flow, udp_bytes, all);

	assert(header_bytes >= SOFT_BTH_BYTES && header_bytes <= SOFT_HEADER_MAX);
	store16(all + n, flow->sport);
	store16(all + n + 2, SOFT_UDP_PORT);
	store16(all + n + 4, UDP_BYTES + udp_bytes);
	memset(all + n + 6, 0xff, 2); /* checksum */
	n += UDP_BYTES;
	memcpy(all + n, header, header_bytes);
	all[n + BTH_MASKED] = 0xff;
	return soft_crc32(flow->state_prefix, all, n + header_bytes);
}

void soft_icrc_final(uint32_t state, uint8_t ret[4])
{
	state = htole32(~state);
	memcpy(ret, &state, 4);
}

/* a * b mod P; both reflected: bit 31 is the coefficient of x^0. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t sum = 0;

	for (int i = 0; i < 32; i++) {
		sum ^= b & -(a >> 31);
		a <<= 1;
		b = b >> 1 ^ (0xedb88320 & -(b & 1));
	}
	return sum;
}

/* x^(-8 * bytes) mod P, by the binary digits of @bytes. */
static uint32_t inverse_of(size_t bytes)
{
	/* x^-8: each division by x adds P when the coefficient of x^0 is set, and shifts. */
	uint32_t power = 0x80000000, result = 0x80000000;

	for (int i = 0; i < 8; i++)
		power = power >> 31 ? (power ^ 0xedb88320) << 1 | 1 : power << 1;
	for (; bytes; bytes >>= 1) {
		if (bytes & 1)
			result = multiply(result, power);
		power = multiply(power, power);
	}
	return result;
}

/*
 * The same, remembered: a flow has few lengths. An entry is length and factor in one atomic word,
 * so that threads may share it; 0 is no entry, since no packet has length 0.
 */
static uint32_t inverse(size_t bytes)
{
	static _Atomic uint64_t known[INVERSES];
	_Atomic uint64_t *slot = &known[bytes / 4 % INVERSES];
	uint64_t entry = atomic_load_explicit(slot, memory_order_relaxed);
	uint32_t factor;

	if (entry >> 32 == bytes)
		return (uint32_t)entry;
	factor = inverse_of(bytes);
	atomic_store_explicit(slot, (uint64_t)bytes << 32 | factor, memory_order_relaxed);
	return factor;
}

/*
 * Is @difference what some other identification, with DF or without, makes? @after: bytes that
 * were summed after the byte of flags. A message that ends with that byte would have left its
 * last four bytes, plain, times x^32 in the state; so divide by x^32 too, and they stand in the
 * word as they lie in memory: byte 3 the flags, bytes 1 and 2 the identification.
 */
static bool from_identification(uint32_t difference, size_t after, struct soft_icrc_id *id)
{
	const uint32_t unknown = (uint32_t)IPV4_DF << 24 | 0x00ffff00;
	uint32_t bits = multiply(difference, inverse(after + 4));

	if (bits & ~unknown)
		return false;
	id->id ^= (uint16_t)((bits & 0xff00) | (bits >> 16 & 0xff));
	id->df = !(bits >> 24);
	return true;
}

bool soft_icrc_check(const struct soft_icrc_flow *flow, uint16_t guess, const uint8_t *bytes,
		     size_t len)
{
	struct soft_icrc_id id;

	return soft_icrc_solve(flow, guess, bytes, len, &id);
}

bool soft_icrc_solve(const struct soft_icrc_flow *flow, uint16_t guess, const uint8_t *bytes,
		     size_t len, struct soft_icrc_id *ret)
{
	const size_t headers = UDP_BYTES + (flow->ipv4 ? IPV4_BYTES : 0);
	uint32_t state, sent;

	if (len < SOFT_BTH_BYTES + SOFT_ICRC_BYTES || len > UINT16_MAX - headers)
		return false;
	state = soft_icrc_begin(flow, guess, len, bytes, SOFT_BTH_BYTES);
	state = soft_crc32(state, bytes + SOFT_BTH_BYTES, len - SOFT_BTH_BYTES - SOFT_ICRC_BYTES);
	memcpy(&sent, bytes + len - SOFT_ICRC_BYTES, 4);
	state ^= ~le32toh(sent);
	*ret = (struct soft_icrc_id){.id = guess, .df = true};
	if (state == 0)
		return true;
	return flow->ipv4 &&
	       from_identification(state, IPV4_AFTER_FLAGS + UDP_BYTES + len - SOFT_ICRC_BYTES,
				   ret);
}
