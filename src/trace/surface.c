/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/surface.h"

#include "base/compiler.h"
#include "base/banned.h"

static const char *const names[PP_SURFACES] = {
	[PP_SURFACE_RESOURCES] = "resources",	  [PP_SURFACE_KEYS] = "keys",
	[PP_SURFACE_PROCESSES] = "processes",	  [PP_SURFACE_FDINFO] = "fdinfo",
	[PP_SURFACE_BUFINFO] = "bufinfo",	  [PP_SURFACE_PEERMEM] = "peermem",
	[PP_SURFACE_SYMBOLS] = "symbols",	  [PP_SURFACE_BTF] = "btf",
	[PP_SURFACE_SELF_PROBE] = "self-probe",	  [PP_SURFACE_LIVE_PROBE] = "live-probe",
	[PP_SURFACE_TRACEPOINTS] = "tracepoints", [PP_SURFACE_LIBRARY] = "library",
	[PP_SURFACE_SOFTWARE] = "software",
};

static const char *const states[] = {
	[PP_SURFACE_UNASKED] = "not asked", [PP_SURFACE_READ] = "read",
	[PP_SURFACE_CUT] = "not whole",	    [PP_SURFACE_ABSENT] = "absent",
	[PP_SURFACE_REFUSED] = "refused",   [PP_SURFACE_STUCK] = "no answer in time",
};

/* What brings it, by why it is not there. NULL: as for the state's neighbour, see how(). */
static const struct {
	const char *refused; /* also for what nobody asked for */
	const char *absent;
} ways[PP_SURFACES] = {
	[PP_SURFACE_RESOURCES] = {"run as root in the host's network namespace",
				  "modprobe ib_uverbs"},
	[PP_SURFACE_KEYS] = {"run as root in the host's user namespace",
			     "run as root in the host's user namespace"},
	[PP_SURFACE_PROCESSES] = {"run as root in the host's PID namespace (docker: --pid=host)",
				  "mount -t proc none /proc"},
	[PP_SURFACE_FDINFO] = {"run as root, or as the process's user", "a kernel of 5.3 or later"},
	[PP_SURFACE_BUFINFO] = {"run as root", "mount -t debugfs none /sys/kernel/debug"},
	[PP_SURFACE_PEERMEM] = {"mount -t sysfs none /sys", "modprobe nvidia_peermem"},
	[PP_SURFACE_SYMBOLS] = {"run as root", "mount -t proc none /proc"},
	[PP_SURFACE_BTF] = {"run as root",
			    "a kernel, and modules ib_core and ib_uverbs, built with BTF"},
	[PP_SURFACE_SELF_PROBE] = {"run as root: peerpath trace",
				   "a kernel with CONFIG_KPROBE_EVENTS and BTF"},
	[PP_SURFACE_LIVE_PROBE] = {"run as root, from the start: peerpath trace -- CMD",
				   "a kernel with CONFIG_KPROBE_EVENTS"},
	[PP_SURFACE_TRACEPOINTS] = {"run as root, from the start: peerpath trace -- CMD",
				    "a kernel with the events dma_buf:*"},
	[PP_SURFACE_LIBRARY] = {"run as root, from the start: peerpath trace -- CMD",
				"a kernel with CONFIG_UPROBE_EVENTS"},
	[PP_SURFACE_SOFTWARE] = {"run as the process's user",
				 "start one: peerpath soft -- ibv_devinfo"},
};

const char *pp_surface_name(enum pp_surface s)
{
	return names[s];
}

const char *pp_surface_state_name(enum pp_surface_state s)
{
	return states[s];
}

const char *pp_surface_how(enum pp_surface s, enum pp_surface_state state)
{
	switch (state) {
	case PP_SURFACE_ABSENT:
		return ways[s].absent;
	case PP_SURFACE_CUT:
	case PP_SURFACE_STUCK:
		return "run it again";
	default:
		return ways[s].refused;
	}
}
