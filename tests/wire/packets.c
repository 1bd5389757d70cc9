/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets of soft/wire for others to judge (judge.py).
 *
 *   packets write FILE    a capture with every opcode, over IPv4 and IPv6, in several lengths
 *   packets read          rows of hexadecimal IP packets on standard input: one line for each,
 *                         every field that the packet carries as soft/wire decodes it
 */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft/wire/crc32.h"
#include "soft/wire/icrc.h"
#include "soft/wire/packet.h"
#include "base/banned.h"

enum { IPV4_BYTES = 20, IPV6_BYTES = 40, UDP_BYTES = 8, PACKET_MAX = 9000, SPORT = 0xc0de };

static const struct soft_gid gids[2][2] = {
	{{{0xfd, 0, [15] = 1}}, {{0xfd, 0, [15] = 2}}},
	{{{[10] = 0xff, 0xff, 192, 0, 2, 1}}, {{[10] = 0xff, 0xff, 192, 0, 2, 2}}},
};

static void store16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* Sum of 16-bit words, as IP's checksums have it; not folded. */
static uint32_t words(uint32_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	return sum;
}

static uint16_t folded(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* @udp holds the payload already. Returns the whole length. */
static size_t put_ip_and_udp(bool ipv4, uint16_t id, uint8_t *ip, size_t payload)
{
	size_t header = ipv4 ? IPV4_BYTES : IPV6_BYTES, udp_len = UDP_BYTES + payload;
	const struct soft_gid *src = &gids[ipv4][0], *dst = &gids[ipv4][1];
	uint8_t *udp = ip + header;
	size_t addresses = ipv4 ? 8 : 32;

	memset(ip, 0, header);
	if (ipv4) {
		ip[0] = 0x45;
		ip[1] = 0x6a; /* neither class nor TTL may matter */
		store16(ip + 2, header + udp_len);
		store16(ip + 4, id);
		ip[6] = 0x40;
		ip[8] = 63;
		ip[9] = 17;
		memcpy(ip + 12, src->raw + 12, 4);
		memcpy(ip + 16, dst->raw + 12, 4);
		store16(ip + 10, folded(words(0, ip, header)));
	} else {
		ip[0] = 0x66;
		ip[1] = 0xa1;
		ip[3] = 0x99;
		store16(ip + 4, udp_len);
		ip[6] = 17;
		ip[7] = 63;
		memcpy(ip + 8, src->raw, 16);
		memcpy(ip + 24, dst->raw, 16);
	}
	store16(udp, SPORT);
	store16(udp + 2, SOFT_UDP_PORT);
	store16(udp + 4, udp_len);
	store16(udp + 6, 0);
	store16(udp + 6, folded(words(words(17 + (uint32_t)udp_len, udp - addresses, addresses),
				      udp, udp_len)));
	return header + udp_len;
}

static uint32_t noise(void)
{
	static uint32_t x = 2463534242;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x;
}

static struct soft_packet made(uint8_t opcode, uint32_t payload_bytes)
{
	uint64_t a = (uint64_t)noise() << 32 | noise(), b = (uint64_t)noise() << 32 | noise();

	return (struct soft_packet){
		.opcode = opcode,
		.solicited = noise() & 1,
		.migrated = noise() & 1,
		.ack_request = noise() & 1,
		.fecn = noise() & 1,
		.becn = noise() & 1,
		.pkey = 0xffff,
		.dest_qp = noise() & 0xfffffe, /* not 1: management, decoded otherwise */
		.psn = noise() & 0xffffff,
		.va = a,
		.rkey = noise(),
		.length = noise(),
		.swap_add = b,
		.compare = ~a,
		.original = ~b,
		.syndrome = SOFT_AETH_ACK,
		.msn = noise() & 0xffffff,
		.imm_be = noise(),
		.invalidate_rkey = noise(),
		.qkey = noise(),
		.src_qp = noise() & 0xffffff,
		.payload_bytes = payload_bytes,
	};
}

static bool write_packet(FILE *f, bool ipv4, uint16_t id, const struct soft_packet *p)
{
	static const uint8_t ethernet4[14] = {2, [6] = 2, [12] = 0x08, 0x00};
	static const uint8_t ethernet6[14] = {2, [6] = 2, [12] = 0x86, 0xdd};
	uint8_t ip[PACKET_MAX], *bth = ip + (ipv4 ? IPV4_BYTES : IPV6_BYTES) + UDP_BYTES;
	size_t header = soft_packet_encode(p, bth), pad = soft_packet_pad(p->payload_bytes);
	size_t payload = header + p->payload_bytes + pad + SOFT_ICRC_BYTES, len;
	uint8_t from[SOFT_MTU_MAX + 4] = {0};
	struct soft_icrc_flow flow;
	uint32_t record[4] = {0}, state;

	for (size_t i = 0; i < p->payload_bytes; i++)
		from[i] = (uint8_t)noise();
	if (p->payload_bytes)
		from[0] = 1; /* a large word and two zero bytes would be an Ethertype to tshark */
	soft_icrc_flow_init(&flow, &gids[ipv4][0], &gids[ipv4][1], SPORT);
	state = soft_icrc_begin(&flow, id, payload, bth, header);
	state = soft_crc32_copy(state, bth + header, from, p->payload_bytes + pad);
	soft_icrc_final(state, bth + payload - SOFT_ICRC_BYTES);
	len = put_ip_and_udp(ipv4, id, ip, payload);
	record[2] = record[3] = (uint32_t)(14 + len);
	return fwrite(record, sizeof(record), 1, f) == 1 &&
	       fwrite(ipv4 ? ethernet4 : ethernet6, 14, 1, f) == 1 && fwrite(ip, len, 1, f) == 1;
}

static int write_all(const char *path)
{
	static const uint32_t lens[] = {0, 1, 2, 3, 4, 256, 1021, 1024, 4096};
	static const uint32_t head[6] = {0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1};
	FILE *f = fopen(path, "wb");
	uint16_t id = 0;
	bool ok;

	if (!f)
		return 1;
	ok = fwrite(head, sizeof(head), 1, f) == 1;
	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		unsigned int flags = soft_opcode_find((uint8_t)opcode)->flags;

		if (!soft_opcode_find((uint8_t)opcode)->name)
			continue;
		for (size_t i = 0; i < (flags & SOFT_HAS_PAYLOAD ? 9 : 1); i++) {
			struct soft_packet p = made((uint8_t)opcode, lens[i]);

			if (!(flags & SOFT_IS_LAST) && soft_packet_pad(lens[i]))
				continue;
			ok = ok && write_packet(f, true, id++, &p) && write_packet(f, false, 0, &p);
		}
	}
	return fclose(f) || !ok;
}

static void print_fields(const struct soft_packet *p, unsigned int flags)
{
	(void)printf("op=%u se=%d m=%d pad=%u pkey=%u qp=%u a=%d psn=%u", p->opcode, p->solicited,
		     p->migrated, p->pad, p->pkey, p->dest_qp, p->ack_request, p->psn);
	if (flags & (SOFT_HAS_RETH | SOFT_HAS_ATOMIC))
		(void)printf(" va=%llu rkey=%u", (unsigned long long)p->va, p->rkey);
	if (flags & SOFT_HAS_RETH)
		(void)printf(" len=%u", p->length);
	if (flags & SOFT_HAS_ATOMIC)
		(void)printf(" swap=%llu cmp=%llu", (unsigned long long)p->swap_add,
			     (unsigned long long)p->compare);
	if (flags & SOFT_HAS_AETH)
		(void)printf(" syndrome=%u msn=%u", p->syndrome, p->msn);
	if (flags & SOFT_HAS_ATOMIC_ACK)
		(void)printf(" original=%llu", (unsigned long long)p->original);
	if (flags & SOFT_HAS_IMM)
		(void)printf(" imm=%u", ntohl(p->imm_be));
	if (flags & SOFT_HAS_IETH)
		(void)printf(" ieth=%u", p->invalidate_rkey);
	if (flags & SOFT_HAS_DETH)
		(void)printf(" qkey=%u srcqp=%u", p->qkey, p->src_qp);
	(void)printf(" payload=%u", p->payload_bytes);
}

/* A UDP payload of a capture, with its ends: judged as a receiver would that guesses 0. */
static void read_packet(const uint8_t *ip, size_t len)
{
	bool ipv4 = ip[0] >> 4 == 4;
	size_t header = (ipv4 ? IPV4_BYTES : IPV6_BYTES) + UDP_BYTES;
	struct soft_gid src = {{[10] = 0xff, 0xff}}, dst = src;
	struct soft_icrc_flow flow;
	struct soft_packet p;

	if (len <= header || soft_packet_decode(ip + header, len - header, &p)) {
		(void)printf("refused\n");
		return;
	}
	memcpy(ipv4 ? src.raw + 12 : src.raw, ip + (ipv4 ? 12 : 8), ipv4 ? 4 : 16);
	memcpy(ipv4 ? dst.raw + 12 : dst.raw, ip + (ipv4 ? 16 : 24), ipv4 ? 4 : 16);
	soft_icrc_flow_init(&flow, &src, &dst, (uint16_t)(ip[header - 8] << 8 | ip[header - 7]));
	print_fields(&p, soft_opcode_find(p.opcode)->flags);
	(void)printf(" icrc=%s\n",
		     soft_icrc_check(&flow, 0, ip + header, len - header) ? "right" : "wrong");
}

static int digit(int c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int read_all(void)
{
	static char line[2 * PACKET_MAX + 2];
	static uint8_t ip[PACKET_MAX];

	while (fgets(line, sizeof(line), stdin)) {
		size_t n = 0;

		for (; digit(line[2 * n]) >= 0 && digit(line[2 * n + 1]) >= 0; n++)
			ip[n] = (uint8_t)(digit(line[2 * n]) << 4 | digit(line[2 * n + 1]));
		read_packet(ip, n);
	}
	return ferror(stdin) ? 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "write") == 0)
		return write_all(argv[2]);
	if (argc == 2 && strcmp(argv[1], "read") == 0)
		return read_all();
	(void)fprintf(stderr, "usage: packets write FILE | read\n");
	return 64;
}
