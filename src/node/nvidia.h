/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the NVIDIA kernel module says of itself below /proc/driver/nvidia and /sys/module/nvidia.
 */
#ifndef PP_NODE_NVIDIA_H
#define PP_NODE_NVIDIA_H

#include "node/node.h"

#define PP_NVIDIA_VERSION_FILE "/proc/driver/nvidia/version"

/* Does its version file show that it runs? */
bool pp_nvidia_speaks(struct pp_source *s);
/* Sets nvidia.version, nvidia.flavour and nvidia.param.*. */
void pp_nvidia_read(struct pp_node *n, bool not_loaded);

#endif
