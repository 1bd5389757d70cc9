/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of process*.c: texts of /proc.
 */
#ifndef PP_TRACE_PROCESS_PARTS_H
#define PP_TRACE_PROCESS_PARTS_H

#include "trace/process.h"

enum { PP_PID_MAX = 1 << 22 }; /* PID_MAX_LIMIT of the kernel's threads.h */

/* Field 22 of /proc/PID/stat: ticks from boot to its start. -EBADMSG. */
int pp_process_started(const char *stat, uint64_t *ret);
/* "pid:[4026531836]": the inode, 0 when it is no such link. */
uint64_t pp_process_ns(const char *link);
/* Path of the text of /proc/PID/cgroup: version 2's, else the longest of version 1; "" none. */
void pp_process_cgroup(const char *text, char *buf, size_t size);

/* One process into an array; @why its descriptors could not be read, NULL when they were. */
void pp_process_write(struct pp_json *j, const struct pp_process *p, const char *why);

#endif
