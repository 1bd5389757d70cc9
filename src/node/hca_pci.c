/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two kinds of function carry no RDMA device of their own and lack nothing: one whose interface
 * belongs to the bond of another function's device (RoCE LAG), and one that was given to a guest
 * (vfio-pci), which is not listed.
 */
#include "node/hca_pci.h"

#include <errno.h>
#include <string.h>

#include "node/hca_driver.h"
#include "node/hca_verbs.h"
#include "base/banned.h"

enum { MAX_MISSING = 4096 };

/*
 * libibverbs lists a device when a provider took it, whatever the provider's file is called. That
 * it does not list one has other reasons too: no provider only where its file is missing besides.
 */
static void set_provider(struct pp_node *n, struct pp_object *o, const char *provider)
{
	const struct pp_fact *providers = pp_fact_get(n->self, PP_F_IBVERBS_PROVIDERS);
	const char *name = pp_fact_str_or(o, PP_F_HCA_NAME, NULL);
	bool found = false;
	int listed;

	if (!name) /* no RDMA device that could be listed: as its access, it does not apply */
		return;
	listed = pp_hca_listed(n, name);
	if (listed > 0)
		return pp_fact_bool(&n->facts, o, PP_F_HCA_PROVIDER, true, "ibv_get_device_list");
	for (size_t i = 0; providers && providers->known && providers->list[i]; i++)
		found |= !strcmp(providers->list[i], provider);
	if (listed == 0 && providers && providers->known && !found)
		return pp_fact_bool(&n->facts, o, PP_F_HCA_PROVIDER, false,
				    "ibv_get_device_list and libibverbs.providers");
	pp_fact_unknown(&n->facts, o, PP_F_HCA_PROVIDER, "ibv_get_device_list", "%s",
			listed < 0 ? "libibverbs.devices is unknown"
			: found	   ? "its provider is installed, and libibverbs does not list it"
				   : "libibverbs.providers is unknown");
}

static void set_driver_facts(struct pp_node *n, struct pp_object *o, const char *driver)
{
	const struct pp_hca_driver *d = pp_hca_driver_find(driver);
	const char *release = pp_fact_str_or(n->self, PP_F_KERNEL_RELEASE, NULL), *word;

	if (!d) {
		pp_fact_unknown(&n->facts, o, PP_F_HCA_KERNEL_DMABUF, NULL,
				"driver '%s' is not in the table", driver);
		pp_fact_unknown(&n->facts, o, PP_F_HCA_PROVIDER, NULL,
				"driver '%s' is not in the table", driver);
		return;
	}
	word = release || !d->dmabuf_since ? pp_hca_driver_dmabuf(d, release) : NULL;
	if (word)
		pp_fact_str(&n->facts, o, PP_F_HCA_KERNEL_DMABUF, word, "kernel.release");
	else
		pp_fact_unknown(&n->facts, o, PP_F_HCA_KERNEL_DMABUF, "kernel.release",
				"kernel.release is unknown");
	set_provider(n, o, d->provider);
}

static void set_no_driver(struct pp_node *n, struct pp_object *o, const char *path, const char *why)
{
	pp_fact_unknown(&n->facts, o, PP_F_HCA_KERNEL_DMABUF, path, "%s", why);
	pp_fact_unknown(&n->facts, o, PP_F_HCA_PROVIDER, path, "%s", why);
}

static void set_driver(struct pp_node *n, struct pp_object *o, const struct pp_pci_dev *d)
{
	if (!d->driver_known) {
		pp_fact_unknown(&n->facts, o, PP_F_HCA_DRIVER, d->path,
				"%s/driver could not be read", d->path);
		return set_no_driver(n, o, d->path, "its driver is unknown");
	}
	pp_fact_str(&n->facts, o, PP_F_HCA_DRIVER, d->driver ? d->driver : "none", d->path);
	if (d->driver)
		set_driver_facts(n, o, d->driver);
	else
		set_no_driver(n, o, d->path, "no driver is bound");
}

static void set_function(struct pp_node *n, struct pp_object *o, const struct pp_pci_dev *d)
{
	struct pp_facts *f = &n->facts;
	char text[PP_BDF_TEXT];

	/* No vendor has number 0, and no device of these vendors: it is what could not be read. */
	if (d->vendor && d->device)
		pp_fact_str(f, o, PP_F_HCA_VENDOR,
			    pp_arena_printf(&n->arena, "%04x:%04x", d->vendor, d->device), d->path);
	else
		pp_fact_unknown(f, o, PP_F_HCA_VENDOR, d->path,
				"%s/vendor or device could not be read", d->path);
	if (d->is_virtual >= 0)
		pp_fact_str(f, o, PP_F_HCA_FUNCTION, d->is_virtual ? "VF" : "PF", d->path);
	else
		pp_fact_unknown(f, o, PP_F_HCA_FUNCTION, d->path, "its physfn link is unreadable");
	if (d->physfn >= 0)
		pp_fact_str(f, o, PP_F_HCA_PHYSFN, pp_bdf_format(&n->pci.dev[d->physfn].bdf, text),
			    d->path);
	if (d->numa != PP_UNREADABLE)
		pp_fact_int(f, o, PP_F_HCA_NUMA, d->numa, d->path);
	else
		pp_fact_unknown(f, o, PP_F_HCA_NUMA, d->path, "numa_node could not be read");
	if (d->local_cpus)
		pp_fact_str(f, o, PP_F_HCA_CPUS, d->local_cpus, d->path);
	else
		pp_fact_unknown(f, o, PP_F_HCA_CPUS, d->path, "local_cpulist could not be read");
	if (pp_pci_iommu_type(&n->pci, d))
		pp_fact_str(f, o, PP_F_HCA_IOMMU, pp_pci_iommu_type(&n->pci, d), d->path);
	else
		pp_fact_unknown(f, o, PP_F_HCA_IOMMU, d->path, "%s", pp_pci_iommu_why(&n->pci, d));
	if (d->ats >= 0)
		pp_fact_bool(f, o, PP_F_HCA_ATS, d->ats > 0, d->path);
	else
		pp_fact_unknown(f, o, PP_F_HCA_ATS, d->path,
				"%d bytes of config space could be read%s",
				d->config_len < 0 ? 0 : d->config_len,
				d->config_len < 4096 ? "" : ", and they make no sense");
	set_driver(n, o, d);
}

void pp_hca_set_pci(struct pp_node *n)
{
	static const enum pp_fact_id ids[] = {
		PP_F_HCA_VENDOR, PP_F_HCA_FUNCTION,	 PP_F_HCA_NUMA,
		PP_F_HCA_CPUS,	 PP_F_HCA_IOMMU,	 PP_F_HCA_ATS,
		PP_F_HCA_DRIVER, PP_F_HCA_KERNEL_DMABUF, PP_F_HCA_PROVIDER};
	struct pp_object *o = NULL;

	while ((o = pp_object_next(&n->facts, PP_HCA, o))) {
		if (o->pci >= 0 && (unsigned int)o->pci < n->pci.n)
			set_function(n, o, &n->pci.dev[o->pci]);
		else if (strncmp(o->id, "virtual/", 8) != 0)
			for (size_t i = 0; i < PP_ARRAY_LEN(ids); i++)
				pp_fact_unknown(&n->facts, o, ids[i], NULL, "%s",
						n->pci.why ? n->pci.why
							   : "its PCI function is not in the tree");
	}
}

void pp_hca_set_software_driver(struct pp_hca *h)
{
	char path[PP_PATH_MAX], parent[PP_NETDEV_NAME];

	/* rxe shows the interface it sits on as "parent"; no other software device does. */
	if (pp_path_join(h->dir, "parent", path) ||
	    pp_source_text(h->node->src, path, parent, sizeof(parent))) {
		pp_fact_unknown(&h->node->facts, h->object, PP_F_HCA_DRIVER, h->dir,
				"sysfs does not name the driver of a software device");
		return set_no_driver(h->node, h->object, h->dir, "its driver is unknown");
	}
	pp_fact_str(&h->node->facts, h->object, PP_F_HCA_DRIVER, "rdma_rxe", path);
	set_driver_facts(h->node, h->object, "rdma_rxe");
}

/* The device whose bond carries this function's interface; NULL none. */
static const struct pp_object *bond_device(struct pp_node *n, const struct pp_object *function)
{
	char mine[PP_NETDEV_NAME], its[PP_NETDEV_NAME];
	const struct pp_object *o = NULL;

	if (function->pci < 0 || (unsigned int)function->pci >= n->pci.n ||
	    pp_hca_bond_master(n, n->pci.dev[function->pci].path, mine))
		return NULL;
	while ((o = pp_object_next(&n->facts, PP_HCA, o)))
		if (pp_fact_is(o, PP_F_HCA_BOND) && o->pci >= 0 &&
		    (unsigned int)o->pci < n->pci.n &&
		    !pp_hca_bond_master(n, n->pci.dev[o->pci].path, its) && !strcmp(mine, its))
			return o;
	return NULL;
}

void pp_hca_set_missing(struct pp_node *n, const char *why)
{
	const struct pp_pci_dev *nameless = pp_pci_nameless(&n->pci);
	const struct pp_object *bond;
	const char *missing[MAX_MISSING];
	char id[PP_BDF_TEXT];
	struct pp_object *o = NULL;
	size_t count = 0;

	while ((o = pp_object_next(&n->facts, PP_HCA, o))) {
		if (pp_fact_get(o, PP_F_HCA_NAME))
			continue;
		if (*why) {
			pp_fact_unknown(&n->facts, o, PP_F_HCA_HAS_DEVICE, NULL, "%s", why);
			continue;
		}
		bond = bond_device(n, o);
		pp_fact_bool(&n->facts, o, PP_F_HCA_HAS_DEVICE, false, "/sys/class/infiniband");
		if (bond)
			pp_fact_str(&n->facts, o, PP_F_HCA_BOND_DEVICE, bond->id, "bonding/mode");
		else if (strcmp(pp_fact_str_or(o, PP_F_HCA_DRIVER, ""), "vfio-pci") != 0 &&
			 count < MAX_MISSING)
			missing[count++] = o->id;
	}
	if (*why || n->pci.why)
		pp_fact_unknown(&n->facts, n->self, PP_F_RDMA_FUNCTIONS_WITHOUT, NULL, "%s",
				*why ? why : n->pci.why);
	else if (nameless && !count)
		pp_fact_unknown(&n->facts, n->self, PP_F_RDMA_FUNCTIONS_WITHOUT, nameless->path,
				"what %s is could not be read", pp_bdf_format(&nameless->bdf, id));
	else
		pp_fact_list(&n->facts, n->self, PP_F_RDMA_FUNCTIONS_WITHOUT, missing, count,
			     "/sys/class/infiniband");
}
