/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of /proc about what a process may do. Pure.
 */
#ifndef PP_NODE_LIMITS_H
#define PP_NODE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

/* RLIMIT_MEMLOCK from the text of /proc/<pid>/limits, -1 unlimited. -ENOENT, -EBADMSG. */
int pp_limits_memlock(const char *text, int64_t *ret_soft, int64_t *ret_hard);

/* First word of "Key:\tvalue ..." in the text of /proc/<pid>/status, counted from 0. -ENOENT. */
int pp_limits_status_word(const char *text, const char *key, unsigned int index, char *buf,
			  size_t size);

/*
 * Path of the cgroup in the text of /proc/<pid>/cgroup: of the hierarchy that has @controller,
 * or of version 2 when @controller is "". -ENOENT, -ENAMETOOLONG.
 */
int pp_limits_cgroup(const char *text, const char *controller, char *buf, size_t size);

/* The container manager whose mark a cgroup path carries, NULL none. Static string. */
const char *pp_limits_cgroup_manager(const char *text);

#endif
