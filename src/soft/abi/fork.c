/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fork protection is for memory that a device pins; this one reads it with the processor, so that a
 * parent keeps its pages whatever a child does. Nothing needs to be prepared.
 */
#include "soft/abi/export.h"

#include "base/banned.h"

int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}
