/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows by number or key. Numbers are of one hca: of events that do not name theirs a row is found
 * only when no other hca has the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/table_parts.h"
#include "base/banned.h"

static int order(uint32_t a, const char *a_hca, uint32_t b, const char *b_hca)
{
	if (a != b)
		return a < b ? -1 : 1;
	return strcmp(a_hca, b_hca);
}

static int by_entry(const void *a, const void *b)
{
	const struct pp_join_entry *x = a, *y = b;
	int r = order(x->key, x->hca, y->key, y->hca);

	return r ? r : x->row < y->row ? -1 : x->row > y->row;
}

static int make(struct pp_join *j, struct pp_join_index *x, bool keys)
{
	const struct pp_trace_table *t = j->t;

	x->n = 0;
	if (!x->entry)
		x->entry = pp_arena_array(t->arena, j->cap + 1, sizeof(*x->entry));
	if (!x->entry)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++) {
		const struct pp_region *r = &t->region[i];

		if (r->gone || !(keys ? r->has_keys : r->has_mrn))
			continue;
		x->entry[x->n++] = (struct pp_join_entry){keys ? r->lkey : r->mrn, r->hca, i};
	}
	qsort(x->entry, x->n, sizeof(*x->entry), by_entry);
	return 0;
}

int pp_join_index(struct pp_join *j)
{
	return make(j, &j->by_mrn, false) || make(j, &j->by_lkey, true) ? -ENOMEM : 0;
}

static struct pp_region *find(const struct pp_join *j, const struct pp_join_index *x,
			      const char *hca, uint32_t key)
{
	size_t low = 0, high = x->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (order(x->entry[mid].key, x->entry[mid].hca, key, hca) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == x->n || x->entry[low].key != key)
		return NULL;
	if (*hca && strcmp(x->entry[low].hca, hca) != 0)
		return NULL;
	if (!*hca && low + 1 < x->n && x->entry[low + 1].key == key)
		return NULL;
	return &j->t->region[x->entry[low].row];
}

struct pp_region *pp_join_by_mrn(const struct pp_join *j, const char *hca, uint32_t mrn)
{
	return find(j, &j->by_mrn, hca, mrn);
}

struct pp_region *pp_join_by_lkey(const struct pp_join *j, const char *hca, uint32_t lkey)
{
	return find(j, &j->by_lkey, hca, lkey);
}
