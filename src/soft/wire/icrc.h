/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariant CRC of RoCE v2: over eight bytes of ones, the IP and UDP headers with their
 * changing fields set to ones, BTH (byte 4 as ones), extended headers, payload and pad.
 *
 * IPv4 includes Identification and DF, which a UDP socket neither sets nor sees. Sending: an
 * unconnected socket with IP_MTU_DISCOVER=DO gives Identification 0, and 0, 1, 2.. inside one
 * UDP_SEGMENT train (measured; the link keeps to such sockets). Receiving: the identification is
 * guessed from the place in the train, else solved: it enters linearly, so that 15 of the 32 bits
 * still check (DF is free too); who knows how the sender numbers its packets checks the others
 * (engine/origin.h). IPv6 has no such field: its check is exact.
 */
#ifndef SOFT_WIRE_ICRC_H
#define SOFT_WIRE_ICRC_H

#include <stdbool.h>

#include "soft/wire/gid.h"

/* What does not change along a flow: both ends and the sender's UDP port. */
struct soft_icrc_flow {
	struct soft_gid src, dst;
	uint16_t sport; /* host order */
	bool ipv4;
	uint32_t state_prefix; /* implementation's: state after the part before the length */
};

void soft_icrc_flow_init(struct soft_icrc_flow *flow, const struct soft_gid *src,
			 const struct soft_gid *dst, uint16_t sport);

/*
 * State after the IP and UDP headers and the @header_bytes of BTH and extended headers. @udp_bytes
 * is the UDP payload, from BTH to ICRC included. @ip_id counts for IPv4 only. The caller goes on
 * with soft_crc32() over payload and pad, then soft_icrc_final().
 */
uint32_t soft_icrc_begin(const struct soft_icrc_flow *flow, uint16_t ip_id, size_t udp_bytes,
			 const uint8_t *header, size_t header_bytes);

/* The four bytes of the wire, to be stored as they are in memory order @ret[0..3]. */
void soft_icrc_final(uint32_t state, uint8_t ret[4]);

/*
 * Is the ICRC of a received UDP payload of @len bytes right? @guess: the identification to try
 * first, with DF set (place in its train). IPv4: any other identification, with DF set or clear, is
 * solved for and accepted. IPv6: exact. A wrong guess costs about 30 ns more than a right one.
 */
bool soft_icrc_check(const struct soft_icrc_flow *flow, uint16_t guess, const uint8_t *bytes,
		     size_t len);

/* The same, and what the IPv4 header must have held; of IPv6 @guess. */
struct soft_icrc_id {
	uint16_t id;
	bool df;
};
bool soft_icrc_solve(const struct soft_icrc_flow *flow, uint16_t guess, const uint8_t *bytes,
		     size_t len, struct soft_icrc_id *ret);

/* What soft_icrc_solve() said of a packet, kept. */
struct soft_icrc_verdict {
	bool right;
	struct soft_icrc_id id;
};

#endif
