/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UCX compares the two sysfs paths. Where they part decides: at /sys/devices, at a host bridge
 * directly below it, or elsewhere, which UCX takes for near and free, be it a switch, a bridge or
 * a host bridge that sysfs hangs below a platform device.
 */
#include "node/choice.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

static const char root[] = "/sys/devices";

/* Length of the path of the last directory that holds both. */
static size_t common_parent(const char *a, const char *b)
{
	size_t parted = 0, i;

	for (i = 0; a[i] && a[i] == b[i]; i++)
		if (a[i] == '/')
			parted = i;
	if ((!a[i] && b[i] == '/') || (a[i] == '/' && !b[i]))
		parted = i;
	return parted;
}

/* "/sys/devices/pci0000:00" and nothing more in @len bytes. */
static bool is_host_bridge(const char *path, size_t len)
{
	const char *name = path + sizeof(root) - 1;
	size_t n, colon;

	if (len <= sizeof(root) - 1 || strncmp(name, "/pci", 4) != 0)
		return false;
	name += 4;
	n = len - sizeof(root) + 1 - 4;
	colon = strspn(name, "0123456789abcdef");
	return colon && colon < n && name[colon] == ':' &&
	       colon + 1 + strspn(name + colon + 1, "0123456789abcdef") == n;
}

static unsigned int slashes(const char *text)
{
	unsigned int n = 0;

	for (; *text; text++)
		n += *text == '/';
	return n;
}

/* Components that differ, counted on the longer side, as UCX counts them. */
static unsigned int path_distance(const char *a, const char *b)
{
	unsigned int left, right;
	size_t i = 0;

	while (a[i] && a[i] == b[i])
		i++;
	left = slashes(a + i);
	right = slashes(b + i);
	return (a[i] != b[i]) + (left > right ? left : right);
}

void pp_choice_ucx(struct pp_node *n, struct pp_object *pair)
{
	const struct pp_pci_dev *gpu = &n->pci.dev[pair->parent->pci];
	const struct pp_pci_dev *hca = &n->pci.dev[pair->peer->pci];
	size_t common = common_parent(gpu->path, hca->path);
	const char *text = "0 ns, no limit of bandwidth: below one bridge";
	char line[96];
	double mbytes;

	if (is_host_bridge(gpu->path, common)) {
		mbytes = 19200.0 / path_distance(gpu->path, hca->path);
		(void)snprintf(line, sizeof(line), "300 ns, %.0f MB/s: below one host bridge",
			       mbytes < 3500 ? mbytes : 3500.0);
		text = line;
	} else if (common == sizeof(root) - 1 && !strncmp(gpu->path, root, common)) {
		if (gpu->numa == PP_UNREADABLE || hca->numa == PP_UNREADABLE)
			return pp_fact_unknown(&n->facts, pair, PP_F_PAIR_UCX, NULL,
					       "numa_node of one of them could not be read");
		text = gpu->numa == hca->numa ? "300 ns, 17000 MB/s: one NUMA node"
					      : "500 ns, 220 MB/s: other NUMA nodes";
	}
	pp_fact_str(&n->facts, pair, PP_F_PAIR_UCX, text, NULL);
}
