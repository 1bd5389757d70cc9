/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways of computing CRC-32 that this architecture may have; meson.build picks the file.
 */
#include "soft/wire/crc32_way.h"

#include "base/banned.h"

const struct soft_crc32_way *const soft_crc32_ways[] = {
	&soft_crc32_by_pmull,
	&soft_crc32_by_table,
	NULL,
};
