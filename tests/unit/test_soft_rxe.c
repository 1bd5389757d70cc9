/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Linux's rdma_rxe (kernel 6.1, perftest between two guests) put on the wire, read by
 * soft/wire. The capture is not the project's: without it the test is skipped.
 */
#include "unit.h"

#include "soft/wire/crc32.h"
#include "soft/wire/icrc.h"
#include "soft/wire/packet.h"
#include "soft_pcap.h"

static const char capture[] = "data/wire/rxe-6.1-perftest.pcap";

static struct soft_pcap opened(void)
{
	struct soft_pcap pcap = {0};

	assert_true(soft_pcap_open(capture, &pcap));
	return pcap;
}

/* Opcodes of the capture, as another decoder counted them. */
static const struct {
	uint8_t opcode;
	unsigned int packets;
} counted[] = {
	{0x00, 20}, {0x01, 60}, {0x02, 20}, {0x06, 21}, {0x07, 99}, {0x08, 20}, {0x0c, 20},
	{0x0d, 20}, {0x0e, 60}, {0x0f, 20}, {0x11, 40}, {0x12, 20}, {0x14, 20}, {0x64, 20},
};

static void decodes_and_encodes_again(void **state)
{
	struct soft_pcap pcap = opened();
	struct soft_pcap_packet in;
	unsigned int kinds[256] = {0}, packets = 0;

	while (soft_pcap_next(&pcap, &in)) {
		uint8_t out[SOFT_HEADER_MAX];
		struct soft_packet p;
		size_t n;

		assert_int_equal(soft_packet_decode(in.payload, in.payload_bytes, &p), 0);
		n = soft_packet_encode(&p, out);
		assert_memory_equal(out, in.payload, n);
		assert_int_equal(n + p.payload_bytes + p.pad + 4, in.payload_bytes);
		kinds[p.opcode]++;
		packets++;
	}
	free(pcap.bytes);
	assert_int_equal(packets, 460);
	for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++)
		assert_int_equal(kinds[counted[i].opcode], counted[i].packets);
}

static struct soft_icrc_flow flow_of(const struct soft_pcap_packet *in)
{
	struct soft_gid src = {{[10] = 0xff, 0xff}}, dst = src;
	struct soft_icrc_flow flow;

	memcpy(src.raw + 12, in->ip + 12, 4);
	memcpy(dst.raw + 12, in->ip + 16, 4);
	soft_icrc_flow_init(&flow, &src, &dst, (uint16_t)(in->udp[0] << 8 | in->udp[1]));
	return flow;
}

/* rxe counts identifications up from a random start: 0 is a wrong guess, and is made up for. */
static void sums_are_right(void **state)
{
	struct soft_pcap pcap = opened();
	struct soft_pcap_packet in;
	unsigned int guessed = 0;

	while (soft_pcap_next(&pcap, &in)) {
		struct soft_icrc_flow flow = flow_of(&in);
		uint16_t id = (uint16_t)(in.ip[4] << 8 | in.ip[5]);
		uint8_t sum[4];

		assert_true(soft_icrc_check(&flow, 0, in.payload, in.payload_bytes));
		assert_true(soft_icrc_check(&flow, id, in.payload, in.payload_bytes));
		guessed += id == 0;

		/* The long way of a sender gives the very bytes. */
		soft_icrc_final(soft_crc32(soft_icrc_begin(&flow, id, in.payload_bytes, in.payload,
							   SOFT_BTH_BYTES),
					   in.payload + SOFT_BTH_BYTES,
					   in.payload_bytes - SOFT_BTH_BYTES - SOFT_ICRC_BYTES),
				sum);
		assert_memory_equal(sum, in.payload + in.payload_bytes - 4, 4);
	}
	free(pcap.bytes);
	assert_true(guessed < 4);
}

/*
 * One bit turned over: 15 bits still check, so about one place in 32768 goes unseen. The places
 * are the same in all packets, since what counts is the distance from the identification.
 */
static void flipped_bits_are_seen(void **state)
{
	static unsigned int unseen[8 * 1200];
	struct soft_pcap pcap = opened();
	unsigned int flips = 0, places = 0;
	struct soft_pcap_packet in;

	for (unsigned int n = 0; soft_pcap_next(&pcap, &in); n++) {
		struct soft_icrc_flow flow = flow_of(&in);
		uint8_t *bytes;

		if (n % 4) /* every fourth packet is enough, and quick under sanitizers */
			continue;
		bytes = malloc(in.payload_bytes);
		assert_non_null(bytes);
		memcpy(bytes, in.payload, in.payload_bytes);
		for (size_t bit = 0; bit < 8 * in.payload_bytes; bit++) {
			bool seen;

			if (bit / 8 == 4) /* FECN, BECN, reserved: not covered */
				continue;
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			seen = !soft_icrc_check(&flow, 0, bytes, in.payload_bytes);
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			flips++;
			assert_true(bit < 8 * 1200);
			unseen[bit] += !seen;
		}
		free(bytes);
	}
	free(pcap.bytes);
	for (unsigned int bit = 0; bit < 8 * 1200; bit++) {
		if (unseen[bit])
			print_message("bit %u of byte %u: unseen in %u packets\n", bit % 8, bit / 8,
				      unseen[bit]);
		places += unseen[bit] != 0;
	}
	assert_true(flips > 500000);
	assert_true(places <= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes_and_encodes_again),
		cmocka_unit_test(sums_are_right),
		cmocka_unit_test(flipped_bits_are_seen),
	};
	int missing = soft_pcap_missing(capture);

	return missing ? missing : cmocka_run_group_tests(tests, NULL, NULL);
}
