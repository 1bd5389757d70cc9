/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A probe: a packet by which a link finds out which process sits at which place of the group of
 * sockets that share UDP 4791 (see steer.c). An acknowledge whose partition key is 0, which no
 * packet has; the filter reads the place to deliver it to out of DestQP:
 *
 *   BTH | 0x11 | . | PKey 0 | . | DestQP: slot that asks, 0, place | . | PSN: nonce |  AETH  ICRC
 *   byte  0      1   2      4     5                 6  7            8    9
 */
#ifndef SOFT_LINK_PROBE_H
#define SOFT_LINK_PROBE_H

#include "soft/wire/packet.h"

enum {
	SOFT_PROBE_BYTES = SOFT_BTH_BYTES + 4 + SOFT_ICRC_BYTES,
	/* Offsets, for the filter. */
	SOFT_PROBE_PKEY_AT = 2,
	SOFT_SLOT_AT = 5,
	SOFT_PROBE_PLACE_AT = 7,
};

struct soft_probe {
	uint32_t nonce; /* 24 bits, not 0 */
	uint8_t place;
};

static inline bool soft_probe_read(const uint8_t *bytes, size_t len, struct soft_probe *ret)
{
	if (len != SOFT_PROBE_BYTES || bytes[0] != SOFT_ACKNOWLEDGE || bytes[SOFT_PROBE_PKEY_AT] ||
	    bytes[SOFT_PROBE_PKEY_AT + 1])
		return false;
	ret->place = bytes[SOFT_PROBE_PLACE_AT];
	ret->nonce = (uint32_t)bytes[9] << 16 | (uint32_t)bytes[10] << 8 | bytes[11];
	return true;
}

#endif
