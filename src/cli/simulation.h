/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A verb on the software device: a child executes itself as `peerpath soft --sysfs DIR -- peerpath
 * VERB` does any other program, with a made /sys of its own, so that devices, ports and counters
 * are found as a NIC's are. Only --simulate leads here.
 */
#ifndef PP_CLI_SIMULATION_H
#define PP_CLI_SIMULATION_H

#include <stdbool.h>

#include "cli/verb.h"

/* Has this process been executed so? */
bool pp_simulation_inside(void);
/* Runs the verb in a child, and puts away what was made for it. Returns its exit code. */
int pp_simulation_enter(const struct pp_args *args);
/* In that child: from now on signals come. Nothing outside of a simulation. */
void pp_simulation_settle(void);
/* Removes the made /sys, since the parent may have been killed. Nothing outside of a simulation. */
void pp_simulation_leave(void);
/* In a child, before it executes what must see the machine as it is. */
void pp_simulation_forget(void);

#endif
