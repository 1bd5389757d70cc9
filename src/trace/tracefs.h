/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracefs: where it is, the private instances and the probes that a tracer puts there, and their
 * removal. Names carry their owner: "peerpath-PID-START-NS-a" (an instance), group
 * "peerpath_PID_START_NS" (probes, which are global), with the process's start time and the inode
 * of its PID namespace, so that a sweep knows whose they are and whether that tracer lives.
 */
#ifndef PP_TRACE_TRACEFS_H
#define PP_TRACE_TRACEFS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { PP_TRACEFS_PATH = 64, PP_TRACEFS_NAME = 64 };

struct pp_tracefs {
	char top[PP_TRACEFS_PATH];   /* "/sys/kernel/tracing" */
	char owner[PP_TRACEFS_NAME]; /* "PID-START-NS" of this process */
	char group[PP_TRACEFS_NAME]; /* "peerpath_PID_START_NS" */
	bool kprobes, uprobes;	     /* files kprobe_events and uprobe_events exist */
	bool arguments;		     /* README knows $arg<N> */
};

/*
 * Finds it. -ENOENT (none is mounted: not on this kernel, or not in this container), -EACCES (not
 * root); one line in @err.
 */
int pp_tracefs_open(struct pp_tracefs *ret, struct pp_error *err);

/* Has the kernel this tracepoint? */
bool pp_tracefs_has_event(const struct pp_tracefs *t, const char *group, const char *event);

/* Makes the instance @suffix ("a"): clock mono, no flags in its text, @buffer_kb a processor. */
int pp_tracefs_instance(const struct pp_tracefs *t, char suffix, unsigned int buffer_kb,
			struct pp_error *err);
/* Path of a file of that instance. */
void pp_tracefs_file(const struct pp_tracefs *t, char suffix, const char *file, char *ret,
		     size_t size);

/* Writes @text (without a line break) to a file of tracefs. Negative errno. */
int pp_tracefs_write(const char *path, const char *text);
/* Appends a definition to kprobe_events or uprobe_events. Negative errno. */
int pp_tracefs_define(const struct pp_tracefs *t, bool user, const char *definition);

/* Removes what @owner has put there (its own owner: t->owner). Negative errno of what stayed. */
int pp_tracefs_remove(const struct pp_tracefs *t, const char *owner);

/* Calls @each with the owner of everything that tracers have put there, each owner once or more. */
int pp_tracefs_owners(const struct pp_tracefs *t, void (*each)(void *arg, const char *owner),
		      void *arg);

#endif
