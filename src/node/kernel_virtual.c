/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is this a virtual machine, and whose? x86 says it by a CPU flag; what the firmware says of the
 * maker gives the kind, and on other architectures is all there is. A cloud's name alone does not
 * tell its virtual machines from its bare metal.
 */
#include <stdio.h>
#include <string.h>

#include "node/collect_kernel.h"
#include "base/banned.h"

enum { MAX_CPUINFO = 1 << 20, WORD = 128 };

static const char CPUINFO[] = "/proc/cpuinfo";
static const char DMI[] = "/sys/class/dmi/id";

/* Both parts must occur (NULL: any). @certain: no bare metal carries these names. */
static const struct {
	const char *vendor, *product, *kind;
	bool certain;
} makers[] = {
	{"Amazon EC2", NULL, "amazon", false},
	{"Google", "Google Compute Engine", "google", false},
	{"Microsoft Corporation", "Virtual Machine", "hyperv", true},
	{"VMware", NULL, "vmware", true},
	{"innotek GmbH", NULL, "virtualbox", true},
	{"Oracle Corporation", "VirtualBox", "virtualbox", true},
	{"Xen", NULL, "xen", true},
	{"Parallels", NULL, "parallels", true},
	{"OpenStack", NULL, "kvm", true},
	{"Red Hat", "KVM", "kvm", true},
	{"QEMU", NULL, "kvm", true},
	{NULL, "KVM", "kvm", true},
	{"Alibaba Cloud", NULL, "alibaba", false},
	{"Tencent Cloud", NULL, "tencent", false},
	{"DigitalOcean", NULL, "digitalocean", true},
	{"Nutanix", "AHV", "nutanix", true},
};

enum flag { FLAG_UNKNOWN, FLAG_NO, FLAG_YES };

/* The first "flags" line of x86; other architectures have none. */
static enum pp_scan_step keep_flags(void *arg, const char *line, size_t len)
{
	enum flag *flag = arg;
	const char *word = line;

	if (strncmp(line, "flags", 5) != 0 || len + 1 >= PP_SCAN_PIECE)
		return PP_SCAN_DROP;
	*flag = FLAG_NO;
	while ((word = strstr(word, " hypervisor")) != NULL) {
		word += strlen(" hypervisor");
		if (*word == ' ' || *word == '\0')
			*flag = FLAG_YES;
	}
	return PP_SCAN_LAST;
}

static enum flag hypervisor_flag(struct pp_node *n)
{
	enum flag flag = FLAG_UNKNOWN;
	const struct pp_scan scan = {
		.separator = '\n', .max = MAX_CPUINFO, .filter = keep_flags, .arg = &flag};

	return pp_source_scan(n->src, CPUINFO, &scan) ? FLAG_UNKNOWN : flag;
}

static bool dmi(struct pp_node *n, const char *name, char text[WORD])
{
	char dir[PP_PATH_MAX], path[PP_PATH_MAX];

	text[0] = '\0';
	return !pp_source_real(n->src, DMI, dir) && !pp_path_join(dir, name, path) &&
	       !pp_source_text(n->src, path, text, WORD) && text[0];
}

static bool fits(const char *part, const char *text)
{
	return !part || strstr(text, part) != NULL;
}

/* Xen is a hypervisor for its first domain too, which is no guest. */
static bool xen_guest(struct pp_node *n)
{
	char text[WORD];

	return !pp_source_text(n->src, "/sys/hypervisor/type", text, sizeof(text)) &&
	       !strcmp(text, "xen") &&
	       (pp_source_text(n->src, "/proc/xen/capabilities", text, sizeof(text)) ||
		!strstr(text, "control_d"));
}

void pp_kernel_virtual_collect(struct pp_node *n)
{
	enum flag flag = hypervisor_flag(n);
	char vendor[WORD], product[WORD];
	bool named = dmi(n, "sys_vendor", vendor), certain = false;
	const char *kind = NULL;

	named = dmi(n, "product_name", product) || named;
	for (size_t i = 0; named && !kind && i < PP_ARRAY_LEN(makers); i++) {
		if (!fits(makers[i].vendor, vendor) || !fits(makers[i].product, product))
			continue;
		kind = makers[i].kind;
		certain = makers[i].certain;
	}
	if (xen_guest(n))
		pp_fact_str(&n->facts, n->self, PP_F_VIRTUAL_MACHINE, "xen",
			    "/sys/hypervisor/type");
	else if (flag == FLAG_NO)
		pp_fact_str(&n->facts, n->self, PP_F_VIRTUAL_MACHINE, "none", CPUINFO);
	else if (flag == FLAG_YES)
		pp_fact_str(&n->facts, n->self, PP_F_VIRTUAL_MACHINE, kind ? kind : "other",
			    kind ? DMI : CPUINFO);
	else if (kind && (certain || !strstr(product, "metal")))
		pp_fact_str(&n->facts, n->self, PP_F_VIRTUAL_MACHINE, kind, DMI);
	else if (kind)
		pp_fact_str(&n->facts, n->self, PP_F_VIRTUAL_MACHINE, "none", DMI);
	else
		pp_fact_unknown(&n->facts, n->self, PP_F_VIRTUAL_MACHINE, CPUINFO,
				"%s has no flags line, and the firmware's names %s", CPUINFO,
				named ? "tell no maker that is known here" : "cannot be read");
}
