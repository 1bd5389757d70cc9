/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PCI tree and what is said of GPUs and hcas by PCI alone. Creates the GPU objects and the
 * hca objects of PCI functions, in order of address; other collectors add to them.
 */
#include <stdio.h>

#include "base/compiler.h"
#include "node/node.h"
#include "node/numa.h"
#include "node/pci_attributes.h"
#include "node/pci_tree.h"
#include "base/banned.h"

enum { MAX_ODD = 16 };

static void gpu_facts(struct pp_node *n, struct pp_object *o, const struct pp_pci_dev *d)
{
	struct pp_facts *f = &n->facts;

	if (d->driver_known)
		pp_fact_str(f, o, PP_F_GPU_DRIVER, d->driver ? d->driver : "none", d->path);
	else
		pp_fact_unknown(f, o, PP_F_GPU_DRIVER, d->path, "%s/driver could not be read",
				d->path);
	if (d->numa != PP_UNREADABLE)
		pp_fact_int(f, o, PP_F_GPU_NUMA, d->numa, d->path);
	else
		pp_fact_unknown(f, o, PP_F_GPU_NUMA, d->path, "%s/numa_node could not be read",
				d->path);
	if (d->local_cpus)
		pp_fact_str(f, o, PP_F_GPU_CPUS, d->local_cpus, d->path);
	else
		pp_fact_unknown(f, o, PP_F_GPU_CPUS, d->path, "%s/local_cpulist could not be read",
				d->path);
	if (d->largest_bar)
		pp_fact_int(f, o, PP_F_GPU_BAR_LARGEST, (int64_t)d->largest_bar, d->path);
	else
		pp_fact_unknown(f, o, PP_F_GPU_BAR_LARGEST, d->path,
				"%s/resource could not be read, or shows no prefetchable region",
				d->path);
	if (pp_pci_iommu_type(&n->pci, d))
		pp_fact_str(f, o, PP_F_GPU_IOMMU, pp_pci_iommu_type(&n->pci, d), d->path);
	else
		pp_fact_unknown(f, o, PP_F_GPU_IOMMU, d->path, "%s", pp_pci_iommu_why(&n->pci, d));
}

static void add_objects(struct pp_node *n)
{
	struct pp_pci_dev *d;
	struct pp_object *o;
	char id[PP_BDF_TEXT];

	pp_pci_foreach (&n->pci, d) {
		if (!pp_pci_is_gpu(d) && !pp_pci_is_hca(d))
			continue;
		o = pp_object_add(&n->facts, pp_pci_is_gpu(d) ? PP_GPU : PP_HCA,
				  pp_bdf_format(&d->bdf, id));
		if (!o)
			return;
		o->pci = (int)(d - n->pci.dev);
		if (o->kind == PP_GPU)
			gpu_facts(n, o, d);
	}
}

static void iommu_facts(struct pp_node *n)
{
	struct pp_names PP_CLEANUP(pp_names_done) units = {0};
	static const char GROUPS[] = "/sys/kernel/iommu_groups", UNITS[] = "/sys/class/iommu";
	int r;

	if (n->pci.iommu_groups_known)
		pp_fact_bool(&n->facts, n->self, PP_F_IOMMU_ACTIVE, n->pci.n_iommu_groups > 0,
			     GROUPS);
	else
		pp_fact_unknown(&n->facts, n->self, PP_F_IOMMU_ACTIVE, GROUPS,
				"%s could not be listed", GROUPS);
	r = pp_source_list(n->src, UNITS, &units);
	if (r)
		pp_fact_unknown(&n->facts, n->self, PP_F_IOMMU_UNITS, UNITS, "%s: %s", UNITS,
				pp_source_why(r));
	else
		pp_fact_list(&n->facts, n->self, PP_F_IOMMU_UNITS, (const char *const *)units.name,
			     units.n, UNITS);
}

/* Functions that are listed but unusable: counted by the tree, named here. */
static void odd_facts(struct pp_node *n)
{
	const char *odd[MAX_ODD + 1];
	char id[PP_BDF_TEXT];
	struct pp_pci_dev *d;
	unsigned int n_odd = 0;

	pp_pci_foreach (&n->pci, d) {
		if (n_odd == MAX_ODD || (d->class_code && d->host_bridge >= 0))
			continue;
		odd[n_odd++] = pp_arena_printf(
			&n->arena, "%s: %s", pp_bdf_format(&d->bdf, id),
			!d->class_code ? "class could not be read"
				       : "no place in the tree follows from its path");
	}
	if (n->pci.unreadable > n_odd)
		odd[n_odd++] =
			pp_arena_printf(&n->arena, "and %u more", n->pci.unreadable - MAX_ODD);
	pp_fact_list(&n->facts, n->self, PP_F_PCI_ODD, odd, n_odd, "/sys/bus/pci/devices");
}

static void set_gpu_count(struct pp_node *n)
{
	const struct pp_pci_dev *d = pp_pci_nameless(&n->pci);
	char id[PP_BDF_TEXT];

	if (d)
		pp_fact_unknown(&n->facts, n->self, PP_F_N_GPUS, d->path,
				"what %s is could not be read", pp_bdf_format(&d->bdf, id));
	else
		pp_fact_int(&n->facts, n->self, PP_F_N_GPUS, n->facts.count[PP_GPU],
			    "/sys/bus/pci/devices");
}

void pp_collect_pci(struct pp_node *n)
{
	if (pp_pci_tree(n->src, &n->arena, &n->pci)) {
		n->arena.failed = true;
		return;
	}
	pp_pci_attributes(n->src, &n->arena, &n->pci);
	pp_pci_iommu(n->src, &n->arena, &n->pci);
	pp_numa_collect(n->src, &n->arena, &n->pci);
	iommu_facts(n);
	if (n->pci.why) {
		pp_fact_unknown(&n->facts, n->self, PP_F_N_GPUS, NULL, "%s", n->pci.why);
		pp_fact_unknown(&n->facts, n->self, PP_F_PCI_FUNCTIONS, NULL, "%s", n->pci.why);
		pp_fact_unknown(&n->facts, n->self, PP_F_PCI_ODD, NULL, "%s", n->pci.why);
		return;
	}
	add_objects(n);
	odd_facts(n);
	pp_fact_int(&n->facts, n->self, PP_F_PCI_FUNCTIONS, n->pci.n, "/sys/bus/pci/devices");
	set_gpu_count(n);
}
