/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The RoCE v2 packets of a capture (classic pcap, Ethernet, IPv4), for tests of soft/wire.
 */
#ifndef PP_TESTS_SOFT_PCAP_H
#define PP_TESTS_SOFT_PCAP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct soft_pcap {
	uint8_t *bytes;
	size_t len, at;
};

struct soft_pcap_packet {
	const uint8_t *ip; /* IPv4 header */
	const uint8_t *udp;
	const uint8_t *payload; /* of UDP */
	size_t payload_bytes;
};

static inline uint32_t soft_pcap_word(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

/* False: not there. @file is a path below the shared folder. */
static inline bool soft_pcap_open(const char *file, struct soft_pcap *ret)
{
	const char *shared = getenv("PEERPATH_SHARED");
	const char *tests = getenv("PP_TEST_DIR");
	char path[4096];
	long size;
	FILE *f;

	if (shared)
		(void)snprintf(path, sizeof(path), "%s/%s", shared, file);
	else
		(void)snprintf(path, sizeof(path), "%s/../../../shared/%s", tests ? tests : ".",
			       file);
	f = fopen(path, "rb");
	if (!f)
		return false;
	(void)fseek(f, 0, SEEK_END);
	size = ftell(f);
	rewind(f);
	*ret = (struct soft_pcap){.bytes = malloc((size_t)size), .len = (size_t)size, .at = 24};
	if (!ret->bytes || fread(ret->bytes, 1, ret->len, f) != ret->len || ret->len < 24 ||
	    soft_pcap_word(ret->bytes) != 0xa1b2c3d4 || soft_pcap_word(ret->bytes + 20) != 1)
		abort();
	(void)fclose(f);
	return true;
}

/* The next packet to UDP port 4791; false at the end. */
static inline bool soft_pcap_next(struct soft_pcap *pcap, struct soft_pcap_packet *ret)
{
	while (pcap->at + 16 <= pcap->len) {
		const uint8_t *ip = pcap->bytes + pcap->at + 16 + 14;
		size_t captured = soft_pcap_word(pcap->bytes + pcap->at + 8);
		size_t header, udp_len;

		pcap->at += 16 + captured;
		if (pcap->at > pcap->len || captured < 14 + 20 + 8 || ip[-2] != 8 || ip[-1] != 0 ||
		    ip[0] >> 4 != 4 || ip[9] != 17)
			continue;
		header = (size_t)(ip[0] & 15) * 4;
		ret->ip = ip;
		ret->udp = ip + header;
		udp_len = (size_t)ret->udp[4] << 8 | ret->udp[5];
		if ((ret->udp[2] << 8 | ret->udp[3]) != 4791 || udp_len < 8 ||
		    14 + header + udp_len > captured)
			continue;
		ret->payload = ret->udp + 8;
		ret->payload_bytes = udp_len - 8;
		return true;
	}
	return false;
}

/* For main(): is it there? Says so where it is not; 77 then. */
static inline int soft_pcap_missing(const char *file)
{
	struct soft_pcap pcap;

	if (soft_pcap_open(file, &pcap)) {
		free(pcap.bytes);
		return 0;
	}
	(void)printf("no %s in the shared folder\n", file);
	return 77;
}

#endif
