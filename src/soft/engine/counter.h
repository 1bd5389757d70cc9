/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of a port by the kernel's names: the files of ports/1/hw_counters/ and
 * ports/1/counters/ of /sys/class/infiniband/DEVICE.
 *
 * Sources: Documentation/ABI/stable/sysfs-class-infiniband (counters/) and the names that mlx5 and
 * rxe give theirs (drivers/infiniband/hw/mlx5/counters.c, sw/rxe/rxe_hw_counters.c).
 */
#ifndef SOFT_ENGINE_COUNTER_H
#define SOFT_ENGINE_COUNTER_H

#include <stddef.h>
#include <stdint.h>

#include "soft/engine/engine.h"

enum soft_counter_dir { SOFT_HW_COUNTERS, SOFT_PORT_COUNTERS };

struct soft_counter {
	const char *name;
	enum soft_counter_dir dir;
};

enum { SOFT_COUNTERS_MAX = 64 };

extern const char *const soft_counter_dirs[]; /* by enum soft_counter_dir: a folder's name */

/* How many there are, and each; @index < soft_counter_count(). */
size_t soft_counter_count(void);
const struct soft_counter *soft_counter_at(size_t index);

/* Under the engine's lock. All values of @wire, in the same order. */
void soft_counter_read(const struct soft_wire *wire, uint64_t ret[SOFT_COUNTERS_MAX]);

#endif
