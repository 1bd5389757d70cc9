/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `peerpath soft` preloads into the program that it runs: src/soft/preload.
 */
#ifndef PP_CLI_SOFT_PRELOAD_H
#define PP_CLI_SOFT_PRELOAD_H

#include "soft/config/config.h"

/*
 * Sets LD_PRELOAD and PEERPATH_SOFT_DEVICES for @program (as execvp() finds it); @dir is the
 * library's. Does nothing when the preloaded library is not there, or when @program brings a
 * sanitizer's runtime, which must be loaded first. -ENOMEM.
 */
int pp_soft_preload(const char *dir, const struct soft_config *devices, const char *program);

#endif
