/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which file a program gets when it asks for one of a device's.
 */
#ifndef SOFT_PRELOAD_PATH_H
#define SOFT_PRELOAD_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Is [name, name+len) one of PEERPATH_SOFT_DEVICES? @ret_gids: how many GIDs it has. */
bool soft_preload_ours(const char *name, size_t len, unsigned int *ret_gids);

/*
 * /dev/null for the device file of one of ours; with PEERPATH_SOFT_SYSFS=DIR what lies in DIR in
 * place of /sys/class/infiniband, /sys/class/infiniband_verbs and, where DIR has it, of PCI
 * devices; else @path. Keeps errno.
 */
const char *soft_preload_path(const char *path, char buf[PATH_MAX]);

/* The way back, for what realpath() answers: cuts DIR off, in place. */
void soft_preload_unpath(char *path);

#endif
