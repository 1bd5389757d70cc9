/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_board: the counters of a device as files that any tool can read, in a made /sys.
 *
 * A NIC counts for all its processes, and its counters outlive them. So each process has a row, by
 * its slot, in DIR/rows/DEVICE, which goes on where the slot's last owner stopped; the text
 * files DIR/sys/class/infiniband/DEVICE/ports/1/{hw_counters,counters}/NAME hold the sums. Whoever
 * changed its row writes them; a lock on the rows keeps two from doing so at once. What a killed
 * process counted in its last SOFT_BOARD_EVERY is lost.
 */
#ifndef SOFT_ENGINE_BOARD_H
#define SOFT_ENGINE_BOARD_H

#include "base/clock.h"
#include "soft/engine/engine.h"

/* Text is written at most so often, ns. */
#define SOFT_BOARD_EVERY ((pp_ns)100000000)

struct soft_board;

/* @dir was made by `peerpath soft --sysfs`. -ENOENT: it does not know @device. -errno. */
int soft_board_open(const char *dir, const char *device, unsigned int slot,
		    struct soft_board **ret);
void soft_board_close(struct soft_board *board); /* NULL is fine */

/*
 * Writes what @wire has counted since, if anything and if the last time is long enough ago
 * (@at_once: however long). Returns when to come again: 0, when something is counted.
 */
pp_ns soft_board_write(struct soft_board *board, const struct soft_wire *wire, pp_ns now,
		       bool at_once);

#endif
