/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Linux's rdma_rxe (kernel 6.1, perftest between two guests) put on the wire, read by
 * soft/wire. The capture is not the project's: without it the test is skipped.
 */
#include "unit.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes_and_encodes_again),
	};
	struct soft_pcap pcap;

	if (!soft_pcap_open(capture, &pcap)) {
		(void)printf("no %s in the shared folder\n", capture);
		return 77;
	}
	free(pcap.bytes);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
