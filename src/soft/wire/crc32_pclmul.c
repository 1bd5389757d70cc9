/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32 by PCLMULQDQ, sixteen bytes a step.
 */
#include "soft/wire/crc32_x86.h"

#include "base/banned.h"

static bool usable(void)
{
	return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

static __attribute__((target("pclmul,sse4.1"))) uint32_t sum(uint32_t state, const void *bytes,
							     size_t len)
{
	return soft_x86_all(state, false, NULL, bytes, len);
}

static __attribute__((target("pclmul,sse4.1"))) uint32_t copy(uint32_t state, void *restrict to,
							      const void *restrict from, size_t len)
{
	return soft_x86_all(state, true, to, from, len);
}

const struct soft_crc32_way soft_crc32_by_pclmul = {"pclmul", usable, sum, copy};
