/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device's own group decides, not the command line. "No group" is believed only where the
 * groups could be listed and, on a machine that has groups, none of them lists the device: a link
 * that is missing must not look like a device that nothing translates.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "node/pci_attributes.h"
#include "node/pci_tree.h"
#include "base/banned.h"

static const char GROUPS[] = "/sys/kernel/iommu_groups";

static int group_number(const char *name)
{
	uint64_t value;

	return pp_parse_u64(name, 0, INT32_MAX, &value) ? PP_UNREADABLE : (int)value;
}

/* -1: there is no link. */
static int read_group(struct pp_source *src, const struct pp_pci_dev *d)
{
	char path[PP_PATH_MAX], target[PP_PATH_MAX];
	const char *slash;
	int r;

	if (pp_path_join(d->path, "iommu_group", path))
		return PP_UNREADABLE;
	r = pp_source_link(src, path, target, sizeof(target));
	if (r)
		return r == -ENOENT && d->class_code ? -1 : PP_UNREADABLE;
	slash = strrchr(target, '/');
	return group_number(slash ? slash + 1 : target);
}

/* Functions without a link: does a group list them? */
static void search_groups(struct pp_source *src, struct pp_pci *pci, const struct pp_names *groups)
{
	char path[PP_PATH_MAX];
	bool readable = true;
	struct pp_bdf bdf;
	int found;

	for (size_t g = 0; g < groups->n; g++) {
		struct pp_names PP_CLEANUP(pp_names_done) members = {0};

		(void)snprintf(path, sizeof(path), "%s/%.32s/devices", GROUPS, groups->name[g]);
		if (pp_source_list(src, path, &members))
			readable = false;
		for (size_t i = 0; i < members.n; i++) {
			if (!pp_pci_parse_name(members.name[i], strlen(members.name[i]), &bdf))
				continue;
			found = pp_pci_find(pci, &bdf);
			if (found >= 0 && pci->dev[found].iommu_group == -1)
				pci->dev[found].iommu_group = group_number(groups->name[g]);
		}
	}
	for (unsigned int i = 0; i < pci->n && !readable; i++)
		if (pci->dev[i].iommu_group == -1)
			pci->dev[i].iommu_group = PP_UNREADABLE;
}

static int by_group(const void *a, const void *b)
{
	const struct pp_pci_dev *x = *(struct pp_pci_dev *const *)a;
	const struct pp_pci_dev *y = *(struct pp_pci_dev *const *)b;

	return (x->iommu_group > y->iommu_group) - (x->iommu_group < y->iommu_group);
}

static void read_types(struct pp_source *src, struct pp_arena *a, struct pp_pci *pci)
{
	struct pp_pci_dev **order = pp_arena_array(a, pci->n, sizeof(struct pp_pci_dev *)), *d;
	const char *type = NULL;
	char path[96], text[32];
	int last = -1;

	if (!order)
		return;
	pp_pci_foreach (pci, d)
		order[d - pci->dev] = d;
	qsort(order, pci->n, sizeof(*order), by_group);
	for (unsigned int i = 0; i < pci->n; i++) {
		d = order[i];
		if (d->iommu_group < 0)
			continue;
		if (d->iommu_group != last) {
			last = d->iommu_group;
			(void)snprintf(path, sizeof(path), "%s/%d/type", GROUPS, last);
			type = NULL;
			if (!pp_source_text(src, path, text, sizeof(text)) && *text)
				type = pp_arena_str(a, text);
		}
		d->iommu_type = type;
	}
}

void pp_pci_iommu(struct pp_source *src, struct pp_arena *a, struct pp_pci *pci)
{
	struct pp_names PP_CLEANUP(pp_names_done) groups = {0};
	bool search = false;
	struct pp_pci_dev *d;

	pci->iommu_groups_known = !pp_source_list(src, GROUPS, &groups);
	pci->n_iommu_groups = (unsigned int)groups.n;
	pp_pci_foreach (pci, d) {
		d->iommu_group = read_group(src, d);
		if (d->iommu_group == -1 && !pci->iommu_groups_known)
			d->iommu_group = PP_UNREADABLE;
		search |= d->iommu_group == -1 && (pp_pci_is_gpu(d) || pp_pci_is_hca(d));
	}
	if (search && groups.n)
		search_groups(src, pci, &groups);
	read_types(src, a, pci);
}
