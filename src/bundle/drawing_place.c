/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coordinates. A NUMA node is a block, two blocks a row. Inside a block the tree grows to the
 * right: trunk, host bridge, switches, and all devices in one column at the right edge.
 *
 *   | trunk |  host  | line | switch | line | ... | device |
 */
#include "bundle/drawing.h"

#include <stdlib.h>

#include "bundle/drawing_shape.h"
#include "base/banned.h"

enum { MAX_DEPTH = 40 };

static bool is_leaf(const struct pp_item *i)
{
	return i->kind != PP_ITEM_HOST && i->kind != PP_ITEM_SWITCH;
}

/* Rails first, each GPU before its hca; then by address; counted boxes last. */
static int compare(const struct pp_item *a, const struct pp_item *b)
{
	unsigned int ra = (unsigned int)a->rail, rb = (unsigned int)b->rail; /* -1 is the largest */

	if (is_leaf(a) && is_leaf(b)) {
		if ((a->kind == PP_ITEM_GROUP) != (b->kind == PP_ITEM_GROUP))
			return a->kind == PP_ITEM_GROUP ? 1 : -1;
		if (ra != rb)
			return ra < rb ? -1 : 1;
		if (a->kind != b->kind)
			return a->kind < b->kind ? -1 : 1;
	}
	return a->pci < b->pci ? -1 : a->pci > b->pci;
}

static int item_height(const struct pp_item *i)
{
	if (!is_leaf(i))
		return PP_SHAPE_NODE_H;
	return PP_SHAPE_LEAF_H + (int)i->n_notes * PP_SHAPE_NOTE_H;
}

struct placer {
	struct pp_drawing *d;
	int *children; /* items, grouped by parent */
	int *first, *count;
	int roots, n_roots;
};

static int by_order(const void *a, const void *b, void *arg)
{
	const struct pp_drawing *d = arg;
	const struct pp_item *x = &d->items[*(const int *)a], *y = &d->items[*(const int *)b];

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return compare(x, y);
}

static bool group_children(struct placer *p)
{
	struct pp_drawing *d = p->d;

	p->children = pp_arena_array(&d->arena, d->n + 1, sizeof(*p->children));
	p->first = pp_arena_array(&d->arena, d->n + 1, sizeof(*p->first));
	p->count = pp_arena_array(&d->arena, d->n + 1, sizeof(*p->count));
	if (d->arena.failed)
		return false;
	for (unsigned int k = 0; k < d->n; k++)
		p->children[k] = (int)k;
	qsort_r(p->children, d->n, sizeof(*p->children), by_order, d);
	for (unsigned int k = 0; k < d->n; k++) {
		int parent = d->items[p->children[k]].parent;

		if (parent < 0) {
			p->n_roots++;
			continue;
		}
		if (!p->count[parent]++)
			p->first[parent] = (int)k;
	}
	return true;
}

static int place(struct placer *p, int item, int x, int y, int leaf_x)
{
	struct pp_item *i = &p->d->items[item];
	const struct pp_item *first, *last;
	int top = y, child;

	i->w = is_leaf(i) ? PP_SHAPE_LEAF_W : PP_SHAPE_NODE_W;
	i->h = item_height(i);
	i->x = is_leaf(i) ? leaf_x : x;
	if (!p->count[item] || i->level > MAX_DEPTH) {
		i->y = y;
		return y + i->h + PP_SHAPE_GAP;
	}
	for (int k = 0; k < p->count[item]; k++) {
		child = p->children[p->first[item] + k];
		y = place(p, child, x + PP_SHAPE_NODE_W + PP_SHAPE_LINE_W, y, leaf_x);
	}
	first = &p->d->items[p->children[p->first[item]]];
	last = &p->d->items[p->children[p->first[item] + p->count[item] - 1]];
	i->y = (first->y + first->h / 2 + last->y + last->h / 2) / 2 - i->h / 2;
	if (i->y < top)
		i->y = top;
	return y;
}

static int place_block(struct placer *p, int block, int x, int y, int leaf_x)
{
	struct pp_drawing *d = p->d;
	struct pp_block *b = &d->blocks[block];
	int bottom = y + PP_SHAPE_HEAD_H + PP_SHAPE_GAP;

	b->x = x;
	b->y = y;
	for (int k = 0; k < p->n_roots; k++) {
		int root = p->children[k];

		if (d->items[root].block == block)
			bottom = place(p, root, x + PP_SHAPE_TRUNK_W, bottom, x + leaf_x) +
				 PP_SHAPE_GAP / 2;
	}
	b->h = bottom - y;
	return b->h;
}

/* Blocks by NUMA node: find_block() made them in the order of the devices. */
static void sort_blocks(struct pp_drawing *d)
{
	for (unsigned int i = 1; i < d->n_blocks; i++)
		for (unsigned int k = i; k && d->blocks[k].numa < d->blocks[k - 1].numa; k--) {
			struct pp_block swap = d->blocks[k];

			d->blocks[k] = d->blocks[k - 1];
			d->blocks[k - 1] = swap;
			for (unsigned int n = 0; n < d->n; n++)
				if (d->items[n].block == (int)k)
					d->items[n].block = (int)k - 1;
				else if (d->items[n].block == (int)k - 1)
					d->items[n].block = (int)k;
		}
}

void pp_drawing_place(struct pp_drawing *d)
{
	struct placer p = {.d = d};
	int levels = 1, width, y = PP_SHAPE_TITLE_H, row = 0;

	sort_blocks(d);
	for (unsigned int k = 0; k < d->n; k++)
		if (d->items[k].level > levels)
			levels = d->items[k].level;
	width = PP_SHAPE_TRUNK_W + levels * (PP_SHAPE_NODE_W + PP_SHAPE_LINE_W) + PP_SHAPE_LEAF_W +
		PP_SHAPE_PAD;
	if (!group_children(&p))
		return;
	for (unsigned int b = 0; b < d->n_blocks; b++) {
		int h = place_block(&p, (int)b,
				    PP_SHAPE_PAD + (int)(b % 2) * (width + PP_SHAPE_GUTTER), y,
				    width - PP_SHAPE_LEAF_W - PP_SHAPE_PAD);

		d->blocks[b].w = width;
		row = h > row ? h : row;
		if (b % 2 == 1 || b + 1 == d->n_blocks) {
			d->blocks[b].h = d->blocks[b - b % 2].h = row;
			y += row + PP_SHAPE_GUTTER;
			row = 0;
		}
	}
	d->width = 2 * PP_SHAPE_PAD + (d->n_blocks > 1 ? 2 * width + PP_SHAPE_GUTTER : width);
	if (d->width < PP_SHAPE_MIN_W)
		d->width = PP_SHAPE_MIN_W;
	d->height = d->n_blocks ? y : y + PP_SHAPE_GUTTER / 2;
}
