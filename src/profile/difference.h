/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two texts as a unified difference, as diff -u and patch(1) have it.
 */
#ifndef PP_PROFILE_DIFFERENCE_H
#define PP_PROFILE_DIFFERENCE_H

#include "base/buf.h"

/*
 * Adds nothing when they are equal. @old_name and @new_name stand in the head; a name NULL is
 * "/dev/null", for what does not exist. Beyond 4096 lines that differ in the middle the
 * difference is still right, but not the shortest.
 */
void pp_difference(const char *old_name, const char *old, const char *new_name, const char *new,
		   struct pp_buf *ret);

#endif
