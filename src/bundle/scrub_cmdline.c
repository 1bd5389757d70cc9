/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/scrub_cmdline.h"

#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

/* Beginnings of names; a name ends at '=' or '.', or goes on with '_'. */
static const char *const kept[] = {
	"acpi",	       "amd",	  "apparmor",	 "cgroup",  "cpuidle",	 "crashkernel",
	"debugfs",     "default", "efi",	 "gdrdrv",  "hugepages", "hugepagesz",
	"ib",	       "idle",	  "intel",	 "iommu",   "ipoib",	 "irqaffinity",
	"isolcpus",    "kvm",	  "lockdown",	 "maxcpus", "mem",	 "memmap",
	"mitigations", "mlx4",	  "mlx5",	 "module",  "modprobe",	 "movable",
	"nohz",	       "nokaslr", "nomodeset",	 "noiommu", "nosmt",	 "nouveau",
	"numa",	       "nvidia",  "pci",	 "pcie",    "processor", "quiet",
	"rcu",	       "rdma",	  "ro",		 "rw",	    "security",	 "selinux",
	"swiotlb",     "tsc",	  "transparent", "vfio",    "virtio",
};

static bool is_kept(const char *word, size_t len)
{
	size_t name = 0;

	while (name < len && !strchr("=._-", word[name]))
		name++;
	for (size_t i = 0; i < PP_ARRAY_LEN(kept); i++)
		if (strlen(kept[i]) == name && !strncmp(kept[i], word, name))
			return true;
	return false;
}

size_t pp_scrub_cmdline(const char *text, size_t len, struct pp_buf *out)
{
	size_t dropped = 0, n, begin = out->len;
	bool init = false; /* behind "--": arguments of init */

	for (size_t i = 0; i < len; i += n) {
		for (n = 0; i + n < len && !strchr(" \t\n", text[i + n]);)
			n++;
		if (!n) {
			n = 1;
			continue;
		}
		init |= n == 2 && !strncmp(text + i, "--", 2);
		if (init || !is_kept(text + i, n)) {
			dropped++;
			continue;
		}
		if (out->len > begin)
			pp_buf_char(out, ' ');
		pp_buf_add(out, text + i, n);
	}
	pp_buf_char(out, '\n');
	return dropped;
}
