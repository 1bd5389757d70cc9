/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath soft --sysfs DIR: a made /sys that names the software devices, for programs that read
 * /sys/class/infiniband, and in which their counters are kept.
 */
#ifndef PP_CLI_SOFT_SYSFS_H
#define PP_CLI_SOFT_SYSFS_H

#include "cli/verb.h"
#include "soft/config/config.h"

/*
 * Makes DIR when it is not there (--beside and --replay say where in a machine), else takes it as
 * it is, if it was made for these devices. Sets PEERPATH_SOFT_SYSFS. 0 or an exit code after one
 * line on stderr; a DIR that could not be made whole is not there.
 */
int pp_soft_sysfs(const struct pp_args *args, const struct soft_config *devices);

#endif
