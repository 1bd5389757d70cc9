/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/wiring.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "node/source.h"
#include "base/banned.h"

enum { CAPABILITY = 4, WORD = 4 }; /* capability register and, behind it, control */

static const enum pp_kind ends[] = {PP_GPU, PP_HCA};

static void mark(const struct pp_node *n, int i, bool *above)
{
	unsigned int steps = 0;

	for (i = i < 0 ? -1 : n->pci.dev[i].parent; i >= 0 && steps++ < n->pci.n;
	     i = n->pci.dev[i].parent)
		above[i] = true;
}

bool *pp_wiring_bridges(const struct pp_node *n, struct pp_arena *arena)
{
	bool *above = pp_arena_array(arena, n->pci.n ? n->pci.n : 1, sizeof(*above));

	for (size_t k = 0; above && k < PP_ARRAY_LEN(ends); k++) {
		struct pp_object *o = NULL;

		while ((o = pp_object_next(&n->facts, ends[k], o)))
			mark(n, o->pci, above);
	}
	return above;
}

static void add(struct pp_wiring *w, struct pp_arena *arena, const struct pp_pci_dev *d,
		unsigned int at)
{
	w->wire[w->n++] = (struct pp_wire){
		.path = pp_arena_str(arena, d->path),
		.at = at,
		.word = d->acs_cap | (uint32_t)d->acs_ctl << 16,
		.type = d->iommu_type ? pp_arena_str(arena, d->iommu_type) : NULL,
	};
}

int pp_wiring_learn(const struct pp_node *n, struct pp_arena *arena, struct pp_wiring *ret)
{
	struct pp_wiring w = {
		.wire = pp_arena_array(arena, (size_t)2 * n->pci.n + 1, sizeof(*w.wire))};
	bool *above = pp_wiring_bridges(n, arena);

	if (!above || !w.wire)
		return -ENOMEM;
	for (unsigned int i = 0; i < n->pci.n; i++)
		if (above[i] && n->pci.dev[i].acs_state == PP_ACS_KNOWN)
			add(&w, arena, &n->pci.dev[i], n->pci.dev[i].acs_at + CAPABILITY);
	for (size_t k = 0; k < PP_ARRAY_LEN(ends); k++) {
		struct pp_object *o = NULL;

		while ((o = pp_object_next(&n->facts, ends[k], o)))
			if (o->pci >= 0 && n->pci.dev[o->pci].iommu_type && w.n < 2 * n->pci.n)
				add(&w, arena, &n->pci.dev[o->pci], 0);
	}
	if (arena->failed)
		return -ENOMEM;
	*ret = w;
	return 0;
}

static bool sleeps(struct pp_source *s, const char *device)
{
	char path[PP_PATH_MAX], text[32];

	return !pp_path_join(device, "power/runtime_status", path) &&
	       !pp_source_text(s, path, text, sizeof(text)) && !strncmp(text, "suspend", 7);
}

static bool is_same(const struct pp_wire *w, struct pp_source *s)
{
	char path[PP_PATH_MAX], text[64];
	unsigned char bytes[WORD];
	size_t len = 0;

	if (!w->at)
		return !pp_path_join(w->path, "iommu_group/type", path) &&
		       !pp_source_text(s, path, text, sizeof(text)) && !strcmp(text, w->type);
	if (sleeps(s, w->path))
		return true;
	if (pp_path_join(w->path, "config", path) ||
	    pp_source_piece(s, path, w->at, bytes, sizeof(bytes), &len) || len != sizeof(bytes))
		return false;
	return (bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
		(uint32_t)bytes[3] << 24) == w->word;
}

bool pp_wiring_changed(const struct pp_wiring *w, struct pp_source *s)
{
	for (size_t i = 0; i < w->n; i++)
		if (!is_same(&w->wire[i], s))
			return true;
	return false;
}
