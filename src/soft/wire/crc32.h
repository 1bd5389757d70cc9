/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32 (reflected polynomial 0xEDB88320) as the ICRC uses it: a running state without inversion.
 * By carry-less multiplication where the processor has it, chosen once at the first call; by tables
 * elsewhere. All ways give the same state.
 */
#ifndef SOFT_WIRE_CRC32_H
#define SOFT_WIRE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* State after @len more bytes. Reads each byte once, in ascending order. */
uint32_t soft_crc32(uint32_t state, const void *bytes, size_t len);

/* The same while copying: what is written is exactly what was summed, though @from may change. */
uint32_t soft_crc32_copy(uint32_t state, void *restrict to, const void *restrict from, size_t len);

/* Name of the way in use, for `soft show` and the benchmark: "vpclmul", "pclmul", "pmull", "table".
 */
const char *soft_crc32_way(void);

#endif
