/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packet sequence numbers: 24 bits, compared in a circle.
 */
#ifndef SOFT_WIRE_PSN_H
#define SOFT_WIRE_PSN_H

#include <stdint.h>

#define SOFT_PSN_MASK 0xffffffu

static inline uint32_t soft_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & SOFT_PSN_MASK;
}

/* @a - @b as a signed distance, -2^23 .. 2^23-1. */
static inline int32_t soft_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

#endif
