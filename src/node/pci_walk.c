/* SPDX-License-Identifier: Apache-2.0 */
#include "node/pci_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "node/pci_tree.h"
#include "base/banned.h"

enum { MAX_FUNCTIONS = 65536, MAX_LISTINGS = 16384, BRIDGE_DEPTH = 6 };

static const char BUS[] = "/sys/bus/pci/devices";
static const char DEVICES[] = "/sys/devices";

void pp_pci_list_done(struct pp_pci_list *l)
{
	free(l->seen);
	*l = (struct pp_pci_list){0};
}

int pp_pci_list_add(struct pp_pci_list *l, const struct pp_bdf *bdf, const char *path)
{
	size_t cap = l->cap ? l->cap * 2 : 256;
	struct pp_pci_seen *grown;

	if (l->n == MAX_FUNCTIONS)
		return -EFBIG;
	if (l->n == l->cap) {
		grown = reallocarray(l->seen, cap, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		l->seen = grown;
		l->cap = cap;
	}
	l->seen[l->n++] = (struct pp_pci_seen){*bdf, path};
	return 0;
}

static int from_bus(struct pp_source *src, struct pp_arena *a, struct pp_pci_list *l)
{
	struct pp_names PP_CLEANUP(pp_names_done) names = {0};
	char link[PP_PATH_MAX], path[PP_PATH_MAX];
	struct pp_bdf bdf;
	int r = pp_source_list(src, BUS, &names);

	for (size_t i = 0; i < names.n && !r; i++) {
		if (!pp_pci_parse_name(names.name[i], strlen(names.name[i]), &bdf) ||
		    pp_path_join(BUS, names.name[i], link))
			continue;
		/* A link that cannot be read still says that the function exists. */
		if (pp_source_real(src, link, path))
			memcpy(path, link, strlen(link) + 1);
		r = pp_pci_list_add(l, &bdf, pp_arena_str(a, path));
	}
	return r;
}

/*
 * Below @dir: PCI functions where @in_pci, else host bridges ("pciDDDD:BB") down to @depth more
 * levels. @budget bounds the listings of a whole walk.
 */
static int descend(struct pp_source *src, struct pp_arena *a, struct pp_pci_list *l,
		   const char *dir, bool in_pci, int depth, int *budget)
{
	struct pp_names PP_CLEANUP(pp_names_done) names = {0};
	char path[PP_PATH_MAX];
	struct pp_bdf bdf;
	bool is_function, is_bridge;
	int r;

	if (depth <= 0 || *budget <= 0)
		return 0;
	--*budget;
	r = pp_source_list(src, dir, &names);
	if (r)
		return r == -ENOMEM ? r : 0;
	for (size_t i = 0; i < names.n && !r; i++) {
		is_function = pp_pci_parse_name(names.name[i], strlen(names.name[i]), &bdf);
		is_bridge = !strncmp(names.name[i], "pci", 3) && strchr(names.name[i], ':');
		if ((in_pci && !is_function && !is_bridge) ||
		    pp_path_join(dir, names.name[i], path))
			continue;
		if (in_pci && is_function)
			r = pp_pci_list_add(l, &bdf, pp_arena_str(a, path));
		if (!r && (in_pci || is_bridge))
			r = descend(src, a, l, path, true, in_pci ? depth - 1 : PP_PCI_DEPTH + 1,
				    budget);
		else if (!r && strcmp(names.name[i], "system") != 0 &&
			 strcmp(names.name[i], "virtual") != 0)
			r = descend(src, a, l, path, false, depth - 1, budget);
	}
	return r;
}

int pp_pci_walk(struct pp_source *src, struct pp_arena *a, struct pp_pci_list *l,
		const char **ret_why)
{
	struct pp_names names = {0};
	int budget = MAX_LISTINGS, bus = from_bus(src, a, l), r;

	*ret_why = NULL;
	if (bus == -ENOMEM || l->n)
		return bus;
	r = pp_source_list(src, DEVICES, &names);
	pp_names_done(&names);
	if (!r)
		r = descend(src, a, l, DEVICES, false, BRIDGE_DEPTH, &budget);
	if (bus && !l->n)
		*ret_why = pp_arena_printf(a, "%s: %s", BUS, pp_source_why(bus));
	return r == -ENOMEM || r == -EFBIG ? r : 0;
}
