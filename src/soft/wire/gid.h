/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_gid: an end of the wire. RoCE v2 writes an IPv4 address as ::ffff:a.b.c.d; any other
 * GID is the IPv6 address itself (InfiniBand Architecture Specification, annex A17).
 */
#ifndef SOFT_WIRE_GID_H
#define SOFT_WIRE_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct soft_gid {
	uint8_t raw[16]; /* network order */
};

static inline bool soft_gid_is_ipv4(const struct soft_gid *gid)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid->raw, prefix, sizeof(prefix)) == 0;
}

static inline bool soft_gid_equal(const struct soft_gid *a, const struct soft_gid *b)
{
	return memcmp(a->raw, b->raw, sizeof(a->raw)) == 0;
}

#endif
