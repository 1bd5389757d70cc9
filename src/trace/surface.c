/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/surface.h"

#include "base/compiler.h"
#include "base/banned.h"

/* What to do is by state: having a thing, being allowed to read it, reading it whole. */
struct surface_words {
	const char *name;
	const char *absent, *refused, *cut;
};

static const char AS_ROOT[] = "run as root in the machine's first namespaces";

static const struct surface_words words[PP_SURFACES] = {
	[PP_SURFACE_RESOURCES] = {"resources",
				  "a kernel with ib_core and an RDMA device: modprobe ib_uverbs",
				  AS_ROOT,
				  "look again while nothing registers, from the first PID and "
				  "network namespaces"},
	[PP_SURFACE_KEYS] = {"keys", "a kernel whose RDMA netlink shows keys",
			     "run with CAP_NET_ADMIN in the first user namespace",
			     "look again while nothing registers"},
	[PP_SURFACE_PROCESSES] = {"processes", "mount -t proc proc /proc", AS_ROOT,
				  "run as root in the first PID namespace (docker: --pid=host)"},
	[PP_SURFACE_FDINFO] = {"fdinfo",
			       "a kernel that tells of dma-buf descriptors (CONFIG_PROC_FS, "
			       "show_fdinfo)",
			       "run as the process's user or with CAP_SYS_PTRACE",
			       "run as root, or look at one process with --pid"},
	[PP_SURFACE_BUFINFO] = {"bufinfo",
				"mount -t debugfs none /sys/kernel/debug, on a kernel with "
				"CONFIG_DEBUG_FS and without debugfs=off",
				"run as root: debugfs is for root alone",
				"look again while no buffer comes or goes"},
	[PP_SURFACE_PEERMEM] = {"peermem",
				"nothing to read where no peer memory client is loaded: newer "
				"stacks use DMA-BUF",
				AS_ROOT, "a kernel with CONFIG_MODULE_UNLOAD counts references"},
	[PP_SURFACE_SYMBOLS] = {"symbols", "a kernel with CONFIG_KALLSYMS", AS_ROOT,
				"run as root, with kernel.kptr_restrict below 2"},
	[PP_SURFACE_BTF] = {"btf",
			    "a kernel and RDMA modules built with CONFIG_DEBUG_INFO_BTF (DKMS "
			    "drops it from modules)",
			    AS_ROOT, "rebuild the module with BTF"},
	[PP_SURFACE_SELF_PROBE] =
		{"self-probe",
		 "a kernel with CONFIG_KPROBE_EVENTS and BTF (/sys/kernel/btf), and "
		 "mount -t tracefs none /sys/kernel/tracing",
		 "run as root, without lockdown=confidentiality", "run again: events were lost"},
	[PP_SURFACE_LIVE_PROBE] = {"live-probe",
				   "a kernel with CONFIG_KPROBE_EVENTS, and mount -t tracefs none "
				   "/sys/kernel/tracing",
				   "run as root, without lockdown=confidentiality",
				   "start the program by it: peerpath trace -- CMD"},
	[PP_SURFACE_TRACEPOINTS] = {"tracepoints", "a kernel that has the events dma_buf:*",
				    "run as root, without lockdown=confidentiality",
				    "run again: events were lost"},
	[PP_SURFACE_LIBRARY] = {"library",
				"a kernel with CONFIG_UPROBE_EVENTS, and a program that loads "
				"libibverbs",
				"run as root, without lockdown=confidentiality",
				"start the program by it: peerpath trace -- CMD"},
	[PP_SURFACE_SOFTWARE] = {"software", "start the program with peerpath soft -- CMD",
				 "run as the user of the program",
				 "ask again while nothing registers"},
};

static const char *const states[] = {
	[PP_SURFACE_UNASKED] = "not asked", [PP_SURFACE_READ] = "read",
	[PP_SURFACE_CUT] = "not whole",	    [PP_SURFACE_ABSENT] = "absent",
	[PP_SURFACE_REFUSED] = "refused",   [PP_SURFACE_STUCK] = "no answer in time",
};

static bool known(enum pp_surface s)
{
	return (unsigned int)s < PP_SURFACES;
}

const char *pp_surface_name(enum pp_surface s)
{
	return known(s) ? words[s].name : "unknown";
}

const char *pp_surface_state_name(enum pp_surface_state s)
{
	return (unsigned int)s < PP_ARRAY_LEN(states) ? states[s] : "unknown";
}

const char *pp_surface_how(enum pp_surface s, enum pp_surface_state state)
{
	if (!known(s))
		return "";
	switch (state) {
	case PP_SURFACE_READ:
		return "";
	case PP_SURFACE_UNASKED:
		return s == PP_SURFACE_SELF_PROBE || s == PP_SURFACE_LIVE_PROBE
			       ? "run peerpath trace on the machine itself, without --no-probes"
			       : "run peerpath trace on the machine itself";
	case PP_SURFACE_STUCK:
		return "see the kernel log (dmesg) for a driver that hangs, then look again";
	case PP_SURFACE_ABSENT:
		return words[s].absent;
	case PP_SURFACE_REFUSED:
		return words[s].refused;
	case PP_SURFACE_CUT:
		return words[s].cut;
	}
	return "";
}
