/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attachments of buffers to hcas, and who has a descriptor of the buffer still open.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/table_parts.h"
#include "base/banned.h"

struct name {
	const char *name;
	const struct pp_trace_hca *of;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->name, ((const struct name *)b)->name);
}

static int by_hca(const void *a, const void *b)
{
	const struct pp_attachment *x = a, *y = b;

	if (x->of != y->of)
		return x->of < y->of ? -1 : 1;
	return x->holder < y->holder ? -1 : x->holder > y->holder;
}

struct holder {
	uint64_t inode;
	const struct pp_process *process;
};

static int by_inode(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;

	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

/* Descriptors of buffers, by inode. -ENOMEM. */
static int find_holders(const struct pp_processes *p, struct holder **ret, size_t *ret_n)
{
	struct holder *h;
	size_t n = 0;

	for (size_t i = 0; p && i < p->n; i++)
		n += p->item[i].n_buffers;
	h = calloc(n + 1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; p && i < p->n; i++)
		for (size_t k = 0; k < p->item[i].n_buffers; k++)
			if (p->item[i].buffer[k].inode)
				h[n++] = (struct holder){p->item[i].buffer[k].inode, &p->item[i]};
	qsort(h, n, sizeof(*h), by_inode);
	*ret = h;
	*ret_n = n;
	return 0;
}

static const struct pp_process *holder_of(const struct holder *h, size_t n, uint64_t inode)
{
	size_t low = 0, high = n;

	while (inode && low < high) {
		size_t mid = low + (high - low) / 2;

		if (h[mid].inode < inode)
			low = mid + 1;
		else
			high = mid;
	}
	if (!inode || low == n || h[low].inode != inode)
		return NULL;
	for (size_t i = low; i < n && h[i].inode == inode; i++)
		if (h[i].process != h[low].process)
			return NULL;
	return h[low].process;
}

/* Names of hcas' functions, by name. NULL without memory. */
static struct name *find_names(const struct pp_trace_input *in, size_t *ret_n)
{
	struct name *name = calloc(3 * in->n_hcas + 1, sizeof(*name));

	*ret_n = 0;
	for (size_t i = 0; name && i < in->n_hcas; i++) {
		const struct pp_trace_hca *h = &in->hca[i];
		const char *const own[] = {h->bdf, h->parent, h->data_direct};

		for (size_t k = 0; k < PP_ARRAY_LEN(own); k++)
			if (*own[k])
				name[(*ret_n)++] = (struct name){own[k], h};
	}
	if (name)
		qsort(name, *ret_n, sizeof(*name), by_name);
	return name;
}

int pp_attachments_find(const struct pp_trace_input *in, struct pp_attachment **ret, size_t *ret_n)
{
	struct holder *PP_AUTO_FREE holders = NULL;
	struct name *PP_AUTO_FREE names = NULL;
	struct pp_attachment *item = calloc(in->buffers->n_attached + 1, sizeof(*item));
	size_t n_holders = 0, n_names = 0, n = 0;

	names = find_names(in, &n_names);
	if (!item || !names || find_holders(in->processes, &holders, &n_holders)) {
		free(item);
		return -ENOMEM;
	}
	for (size_t i = 0; i < in->buffers->n; i++) {
		const struct pp_buffer *b = &in->buffers->item[i];
		const struct pp_process *by = holder_of(holders, n_holders, b->inode);

		for (uint32_t k = 0; n_names && k < b->n_attached; k++) {
			const char *device = in->buffers->attached[b->first + k];
			const struct name key = {device, NULL},
					  *of = bsearch(&key, names, n_names, sizeof(key), by_name);
			bool direct;

			if (of && pp_join_importer(of->of, device, &direct))
				item[n++] = (struct pp_attachment){of->of, b, by, device, direct};
		}
	}
	qsort(item, n, sizeof(*item), by_hca);
	*ret = item;
	*ret_n = n;
	return 0;
}
