/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Surfaces: the places where the kernel (or the software device) shows something of a memory
 * region. Each is asked by itself, and what it could not show is a fact of its own: a verdict that
 * lacks a surface names it, why it is missing, and how to get it. Never a version number decides
 * whether a surface is there.
 */
#ifndef PP_TRACE_SURFACE_H
#define PP_TRACE_SURFACE_H

#include <stdbool.h>

enum pp_surface {
	PP_SURFACE_RESOURCES, /* RDMA netlink: which regions there are, whose, how long */
	PP_SURFACE_KEYS, /* the same: their keys, for CAP_NET_ADMIN in the first user namespace */
	PP_SURFACE_PROCESSES,  /* /proc: threads, VmPin, descriptors, namespaces */
	PP_SURFACE_FDINFO,     /* /proc/PID/fdinfo of dma-buf descriptors */
	PP_SURFACE_BUFINFO,    /* debugfs: dma-buf objects and the devices attached to them */
	PP_SURFACE_PEERMEM,    /* nvidia_peermem's reference count, memory_peers' counters */
	PP_SURFACE_SYMBOLS,    /* /proc/kallsyms: what can be probed at all */
	PP_SURFACE_BTF,	       /* layouts of kernel structures, for the probes */
	PP_SURFACE_SELF_PROBE, /* B: a kprobe that our own netlink dump triggers, one event a region
				*/
	PP_SURFACE_LIVE_PROBE, /* A: kprobes on the registration's way, while it happens */
	PP_SURFACE_TRACEPOINTS, /* events dma_buf:*, where the kernel has them */
	PP_SURFACE_LIBRARY,	/* uprobes on libibverbs: what the program asked for */
	PP_SURFACE_SOFTWARE,	/* the software device's own registry; simulated */
	PP_SURFACES
};

enum pp_surface_state {
	PP_SURFACE_UNASKED, /* nobody wanted it, or the recording does not hold it */
	PP_SURFACE_READ,    /* whole */
	PP_SURFACE_CUT,	   /* read, but not whole: lost events, a full list, processes unreadable */
	PP_SURFACE_ABSENT, /* this kernel or machine has no such thing */
	PP_SURFACE_REFUSED, /* privilege, lockdown, a namespace */
	PP_SURFACE_STUCK,   /* did not answer in time */
};

struct pp_surface_report {
	enum pp_surface_state state;
	char why[192]; /* one line; "" when read whole */
};

const char *pp_surface_name(enum pp_surface s); /* "bufinfo", "self-probe" */
const char *pp_surface_state_name(enum pp_surface_state s);
/* What to do to have it: "run as root", "mount -t debugfs none /sys/kernel/debug". Never NULL. */
const char *pp_surface_how(enum pp_surface s, enum pp_surface_state state);

#endif
