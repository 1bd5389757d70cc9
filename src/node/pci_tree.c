/* SPDX-License-Identifier: Apache-2.0 */
#include "node/pci_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "node/pci_walk.h"
#include "base/banned.h"

static const char DEVICES[] = "/sys/devices/";

bool pp_pci_parse_name(const char *name, size_t len, struct pp_bdf *ret)
{
	char text[PP_BDF_TEXT];

	if (!len || len >= sizeof(text))
		return false;
	memcpy(text, name, len);
	text[len] = '\0';
	return !pp_bdf_parse_kernel(text, ret);
}

/* Addresses at the end of a path, outermost first, and the length of what is before them. */
struct chain {
	struct pp_bdf bdf[PP_PCI_DEPTH + 1];
	int n;
	size_t prefix;
};

/* False when the path has no place in a tree. */
static bool parse_chain(const char *path, struct chain *ret)
{
	struct chain c = {.n = 0, .prefix = strlen(path)};
	struct pp_bdf one;
	const char *slash;

	while ((slash = memrchr(path, '/', c.prefix)) &&
	       pp_pci_parse_name(slash + 1, (size_t)(path + c.prefix - slash - 1), &one)) {
		for (int i = 0; i < c.n; i++)
			if (pp_bdf_equal(&c.bdf[i], &one))
				return false;
		if (c.n > PP_PCI_DEPTH)
			return false;
		c.bdf[c.n++] = one;
		c.prefix = (size_t)(slash - path);
	}
	/* What carries the first bridge is called pciDDDD:BB, wherever it hangs. */
	if (!c.n || !slash || strncmp(path, DEVICES, sizeof(DEVICES) - 1) != 0 ||
	    strncmp(slash, "/pci", 4) != 0)
		return false;
	for (int i = 0; i < c.n / 2; i++) {
		one = c.bdf[i];
		c.bdf[i] = c.bdf[c.n - 1 - i];
		c.bdf[c.n - 1 - i] = one;
	}
	*ret = c;
	return true;
}

static int by_bdf(const void *a, const void *b)
{
	return pp_bdf_compare(&((const struct pp_pci_seen *)a)->bdf,
			      &((const struct pp_pci_seen *)b)->bdf);
}

static const struct pp_pci_seen *find(const struct pp_pci_list *l, size_t n,
				      const struct pp_bdf *bdf)
{
	struct pp_pci_seen key = {.bdf = *bdf};

	return n ? bsearch(&key, l->seen, n, sizeof(key), by_bdf) : NULL;
}

static void sort_unique(struct pp_pci_list *l)
{
	size_t n = 0;

	if (!l->n)
		return;
	qsort(l->seen, l->n, sizeof(*l->seen), by_bdf);
	for (size_t i = 0; i < l->n; i++)
		if (!n || !pp_bdf_equal(&l->seen[n - 1].bdf, &l->seen[i].bdf))
			l->seen[n++] = l->seen[i];
	l->n = n;
}

/* Bridges that only paths name; one level up at a time, so the rounds are bounded by depth. */
static int add_bridges(struct pp_pci_list *l, struct pp_arena *a)
{
	struct chain c;
	const char *path;
	size_t n;
	int r;

	for (int round = 0; round <= PP_PCI_DEPTH; round++) {
		n = l->n;
		for (size_t i = 0; i < n; i++) {
			path = l->seen[i].path;
			if (!parse_chain(path, &c) || c.n < 2 || find(l, n, &c.bdf[c.n - 2]))
				continue;
			path = pp_arena_strn(a, path, (size_t)(strrchr(path, '/') - path));
			r = pp_pci_list_add(l, &c.bdf[c.n - 2], path);
			if (r)
				return r;
		}
		if (l->n == n)
			break;
		sort_unique(l);
	}
	return 0;
}

/* Is @child's path @parent's path and one name more? */
static bool is_below(const char *child, const char *parent)
{
	size_t len = strlen(parent);

	return !strncmp(child, parent, len) && child[len] == '/' && !strchr(child + len + 1, '/');
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Parents, and for functions directly on a host bridge the name of that bridge. */
static void place(struct pp_arena *a, struct pp_pci *pci, const char **roots)
{
	size_t skip = sizeof(DEVICES) - 1;
	struct pp_pci_dev *d;
	struct chain c;

	pp_pci_foreach (pci, d) {
		d->parent = -1;
		if (!parse_chain(d->path, &c) || !pp_bdf_equal(&c.bdf[c.n - 1], &d->bdf))
			continue;
		if (c.n == 1) {
			roots[d - pci->dev] = pp_arena_strn(a, d->path + skip, c.prefix - skip);
			continue;
		}
		d->parent = pp_pci_find(pci, &c.bdf[c.n - 2]);
		if (d->parent >= 0 && !is_below(d->path, pci->dev[d->parent].path))
			d->parent = -1;
	}
}

/* Numbers the host bridges in order of name and gives each function its own. */
static void number_bridges(struct pp_arena *a, struct pp_pci *pci, const char *const *roots)
{
	const char **names = pp_arena_array(a, pci->n, sizeof(*names)), **found;
	unsigned int n = 0, unique = 0;
	struct pp_pci_dev *d;
	int top;

	if (!names)
		return;
	for (unsigned int i = 0; i < pci->n; i++)
		if (roots[i])
			names[n++] = roots[i];
	qsort(names, n, sizeof(*names), by_text);
	for (unsigned int i = 0; i < n; i++)
		if (!unique || strcmp(names[unique - 1], names[i]) != 0)
			names[unique++] = names[i];
	pci->bridges = names;
	pci->n_bridges = unique;
	pp_pci_foreach (pci, d) {
		for (top = (int)(d - pci->dev); pci->dev[top].parent >= 0; d->depth++)
			top = pci->dev[top].parent;
		found = roots[top] ? bsearch(&roots[top], names, unique, sizeof(*names), by_text)
				   : NULL;
		d->host_bridge = found ? (int)(found - names) : -1;
	}
}

static void build(struct pp_arena *a, const struct pp_pci_list *l, struct pp_pci *pci)
{
	const char **roots = calloc(l->n, sizeof(*roots));

	pci->dev = pp_arena_array(a, l->n, sizeof(*pci->dev));
	if (roots && pci->dev) {
		pci->n = (unsigned int)l->n;
		for (size_t i = 0; i < l->n; i++)
			pci->dev[i] = (struct pp_pci_dev){
				.bdf = l->seen[i].bdf,
				.path = l->seen[i].path,
				.parent = -1,
				.host_bridge = -1,
				.numa = PP_UNREADABLE,
				.iommu_group = PP_UNREADABLE,
				.port_type = -1,
				.speed_mts = -1,
				.max_speed_mts = -1,
				.width = -1,
				.max_width = -1,
				.config_len = -1,
				.ats = -1,
				.is_virtual = -1,
				.physfn = -1,
			};
		place(a, pci, roots);
		number_bridges(a, pci, roots);
	}
	a->failed |= !roots;
	free(roots);
}

int pp_pci_tree(struct pp_source *src, struct pp_arena *a, struct pp_pci *ret)
{
	struct pp_pci_list PP_CLEANUP(pp_pci_list_done) list = {0};
	int r = pp_pci_walk(src, a, &list, &ret->why);

	if (r)
		return r;
	sort_unique(&list);
	r = add_bridges(&list, a);
	if (!r && list.n)
		build(a, &list, ret);
	return r;
}
