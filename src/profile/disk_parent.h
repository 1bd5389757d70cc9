/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to profile/disk*.c.
 */
#ifndef PP_PROFILE_DISK_PARENT_H
#define PP_PROFILE_DISK_PARENT_H

#include "profile/disk.h"

/* The directory of @path, a descriptor that the caller closes, and the last name. Negative errno.
 */
int pp_disk_parent(const struct pp_disk *d, const char *path, const char **ret_name);

#endif
