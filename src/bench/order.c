/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/order.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int group(const struct pp_bench_cell *a, const struct pp_bench_cell *b)
{
	int r = compare(a->together, b->together);

	r = r ? r : compare(a->measure, b->measure);
	r = r ? r : compare(a->op, b->op);
	return r ? r : compare(a->qps, b->qps);
}

static int row(const struct pp_bench_cell *a, const struct pp_bench_cell *b)
{
	int r = group(a, b);

	r = r ? r : compare(a->size, b->size);
	return r ? r : compare(a->depth, b->depth);
}

static int order(const void *a, const void *b)
{
	const struct pp_bench_cell *x = *(const struct pp_bench_cell *const *)a;
	const struct pp_bench_cell *y = *(const struct pp_bench_cell *const *)b;
	int r = row(x, y);

	return r ? r : compare(x->rung, y->rung);
}

int pp_bench_order(const struct pp_bench_pair *pair, const struct pp_bench_cell ***ret)
{
	const struct pp_bench_cell **list = calloc((size_t)pair->n_cells + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (unsigned int i = 0; i < pair->n_cells; i++)
		list[i] = &pair->cells[i];
	if (pair->n_cells)
		qsort(list, pair->n_cells, sizeof(*list), order);
	*ret = list;
	return 0;
}

bool pp_bench_same_group(const struct pp_bench_cell *a, const struct pp_bench_cell *b)
{
	return !group(a, b);
}

bool pp_bench_same_row(const struct pp_bench_cell *a, const struct pp_bench_cell *b)
{
	return !row(a, b);
}
