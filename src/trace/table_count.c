/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What follows from numbers. Attachments of buffers to an hca, and references of a peer client,
 * name no region; but when there are as many of them as regions that they can be of, each region
 * has one. That needs every region and every owner to be seen, and VmPin that leaves no room for
 * one of them to be pinned host memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/table_parts.h"
#include "base/banned.h"

struct count {
	struct pp_join *j;
	const struct pp_attachment *item; /* by hca, then holder */
	size_t n;
	struct pp_region **row; /* live ones, by hca, then process; those without an owner first */
	size_t n_rows;
	uint64_t *others; /* bytes a process that are known not to be by DMA-BUF */
};

static bool whole(const struct pp_trace_table *t, enum pp_surface s)
{
	return t->surface[s].state == PP_SURFACE_READ;
}

static int by_process(const void *a, const void *b)
{
	const struct pp_region *x = *(const struct pp_region *const *)a,
			       *y = *(const struct pp_region *const *)b;

	if (x->of != y->of)
		return x->of < y->of ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

/* Does a witness that suffices say that it is something else? */
static bool is_other(const struct pp_region *r, bool dmabuf)
{
	for (unsigned int i = 0; i < r->n_sightings; i++) {
		const struct pp_sighting *s = &r->sighting[i];
		bool says_dmabuf =
			s->says == PP_REGISTERED_DMABUF || s->says == PP_REGISTERED_DATA_DIRECT;

		if (s->sufficient && (dmabuf ? !says_dmabuf : s->says != PP_REGISTERED_PEERMEM))
			return true;
	}
	return false;
}

/* The drivers that set no length of a region by DMA-BUF, and one of every other. */
static bool no_length(const struct pp_region *r)
{
	return r->resource && r->resource->has_length && !r->resource->length && r->of &&
	       (!strcmp(r->of->driver, "irdma") || !strcmp(r->of->driver, "bnxt_re"));
}

static void hint(struct pp_join *j)
{
	static const struct pp_sighting s = {
		.by = PP_SURFACE_RESOURCES,
		.says = PP_REGISTERED_DMABUF,
		.raw = "mrlen 0: this driver sets no length of a region by DMA-BUF",
	};

	for (size_t i = 0; i < j->t->n; i++)
		if (no_length(&j->t->region[i]))
			pp_region_saw(&j->t->region[i], &s);
}

static bool fits(const struct pp_region *r, uint64_t largest)
{
	return !r->length || r->length <= largest;
}

/*
 * Could one of @row be pinned, beside the others of its process? Then numbers prove nothing. A
 * region that shows no length is no host memory.
 */
static bool pinned_too(const struct count *c, struct pp_region *const *row, size_t n)
{
	const struct pp_process *p = row[0]->process;
	uint64_t smallest = UINT64_MAX;

	if (!p || p->pinned_kb < 0)
		return true;
	for (size_t i = 0; i < n; i++)
		if (!no_length(row[i]) && row[i]->length < smallest)
			smallest = row[i]->length;
	if (smallest == UINT64_MAX)
		return false;
	return (uint64_t)p->pinned_kb * 1024 >= c->others[p - c->j->in->processes->item] + smallest;
}

/* Keeps at the front of @row what can be on one of the buffers; returns how many. */
static size_t candidates(struct pp_region *const *row, size_t n, const struct pp_attachment *a,
			 size_t n_attached, struct pp_region **ret)
{
	uint64_t largest = 0;
	size_t kept = 0;

	for (size_t i = 0; i < n_attached; i++)
		largest = a[i].buffer->size > largest ? a[i].buffer->size : largest;
	for (size_t i = 0; i < n; i++)
		if (!is_other(row[i], true) && fits(row[i], largest))
			ret[kept++] = row[i];
	return kept;
}

static bool counted_already(const struct pp_region *r)
{
	for (unsigned int i = 0; i < r->n_sightings; i++)
		if (r->sighting[i].by == PP_SURFACE_BUFINFO)
			return true;
	return false;
}

/* As many regions as attachments, all of one process: each has one. */
static void counted(struct count *c, struct pp_region *const *row, size_t n,
		    const struct pp_attachment *a, size_t n_attached, const char *how)
{
	struct pp_sighting s = {
		.by = PP_SURFACE_BUFINFO,
		.says = a->direct ? PP_REGISTERED_DATA_DIRECT : PP_REGISTERED_DMABUF,
		.sufficient = !pinned_too(c, row, n),
		.gpu = true,
	};
	bool one_buffer = true;

	for (size_t i = 0; i < n_attached; i++) {
		one_buffer &= a[i].buffer == a->buffer;
		s.gpu &= pp_exporter_is_nvidia(a[i].buffer->exporter);
	}
	s.raw = pp_arena_printf(c->j->t->arena, "%s size=%llu ino=%llu attached %s; %s",
				a->buffer->exporter, (unsigned long long)a->buffer->size,
				(unsigned long long)a->buffer->inode, a->device, how);
	for (size_t i = 0; i < n; i++) {
		struct pp_region *r = row[i];

		if (counted_already(r))
			continue;
		if (!r->exporter) {
			r->exporter = a->buffer->exporter;
			r->importer = a->device;
			r->buffer_inode = one_buffer ? a->buffer->inode : 0;
			r->buffer_size = one_buffer ? a->buffer->size : 0;
		}
		pp_region_saw(r, &s);
	}
}

static bool one_kind(const struct pp_attachment *a, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (a[i].direct != a->direct)
			return false;
	return true;
}

/* Regions of one hca, and the attachments that can be theirs alone. @rivals: others fit too. */
static int group(struct count *c, struct pp_region *const *row, size_t n,
		 const struct pp_attachment *a, size_t n_attached, bool rivals, const char *how)
{
	struct pp_region **PP_AUTO_FREE on = calloc(n + 1, sizeof(void *));
	const char *why;
	size_t n_on, end;

	if (!on)
		return -ENOMEM;
	n_on = candidates(row, n, a, n_attached, on);
	if (n_on == n_attached && !rivals && one_kind(a, n_attached)) {
		for (size_t i = 0; i < n_on; i = end) {
			for (end = i + 1; end < n_on && on[end]->process == on[i]->process; end++)
				;
			counted(c, on + i, end - i, a, n_attached, how);
		}
		return 0;
	}
	why = pp_arena_printf(c->j->t->arena,
			      "bufinfo shows %zu attachment%s for %zu regions%s: not which has one",
			      n_attached, n_attached == 1 ? "" : "s", n_on,
			      rivals ? " and others" : "");
	for (size_t i = 0; i < n_on; i++)
		on[i]->why = why;
	return 0;
}

/* One hca: each process that alone has descriptors of attached buffers; then all together. */
static int of_hca(struct count *c, struct pp_region *const *row, size_t n,
		  const struct pp_attachment *a, size_t n_attached)
{
	size_t first, end, from, to, unowned = 0;
	int r;

	while (unowned < n && !row[unowned]->process)
		unowned++;
	r = group(c, row, n, a, n_attached, false, "no other region could have it");
	for (first = 0, from = unowned; !r && first < n_attached; first = end) {
		for (end = first + 1; end < n_attached && a[end].holder == a[first].holder; end++)
			;
		for (; from < n && row[from]->process < a[first].holder; from++)
			;
		for (to = from; to < n && row[to]->process == a[first].holder; to++)
			;
		if (a[first].holder && to > from && whole(c->j->t, PP_SURFACE_FDINFO))
			r = group(c, row + from, to - from, a + first, end - first, unowned > 0,
				  "its process has the buffer open");
	}
	return r;
}

static int attachments(struct count *c)
{
	size_t i, end, from = 0, to;
	int r = 0;

	for (i = 0; !r && i < c->n; i = end) {
		for (end = i + 1; end < c->n && c->item[end].of == c->item[i].of; end++)
			;
		for (; from < c->n_rows && c->row[from]->of < c->item[i].of; from++)
			;
		for (to = from; to < c->n_rows && c->row[to]->of == c->item[i].of; to++)
			;
		if (to > from)
			r = of_hca(c, c->row + from, to - from, c->item + i, end - i);
		from = to;
	}
	return r;
}

/* VmPin is about what these regions are long, and a peer client has as many. */
static bool pinned_as(const struct count *c, const struct pp_process *p, uint64_t bytes)
{
	uint64_t pinned, most;

	if (!p || p->pinned_kb < 0)
		return false;
	pinned = (uint64_t)p->pinned_kb * 1024;
	/* Queues of the process are pinned too. */
	most = bytes + c->others[p - c->j->in->processes->item];
	return pinned >= bytes && pinned <= most + most / 4 + ((uint64_t)16 << 20);
}

static void peers(struct count *c)
{
	struct pp_join *j = c->j;
	const struct pp_process *of = NULL;
	struct pp_sighting s = {
		.by = PP_SURFACE_PEERMEM, .says = PP_REGISTERED_PEERMEM, .gpu = true};
	uint64_t bytes = 0;
	int64_t n = 0;

	for (size_t i = 0; i < c->n_rows; i++) {
		const struct pp_region *r = c->row[i];

		if (is_other(r, false))
			continue;
		if (!r->process || (of && of != r->process))
			return;
		of = r->process;
		bytes += r->length;
		n++;
	}
	if (j->t->peers <= 0 || n != j->t->peers)
		return;
	s.sufficient = pinned_as(c, of, bytes);
	s.raw = pp_arena_printf(j->t->arena, "%lld live regions of %s, as many as the process has",
				(long long)n,
				*j->in->peermem->module ? j->in->peermem->module : "peer clients");
	for (size_t i = 0; i < c->n_rows; i++)
		if (!is_other(c->row[i], false))
			pp_region_saw(c->row[i], &s);
}

static int find_rows(struct count *c)
{
	const struct pp_processes *p = c->j->in->processes;
	struct pp_trace_table *t = c->j->t;

	c->row = calloc(t->n + 1, sizeof(void *));
	c->others = calloc((p ? p->n : 0) + 1, sizeof(*c->others));
	if (!c->row || !c->others)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++) {
		struct pp_region *r = &t->region[i];

		if (r->gone || !r->resource)
			continue;
		c->row[c->n_rows++] = r;
		if (p && r->process && is_other(r, true))
			c->others[r->process - p->item] += r->length;
	}
	qsort(c->row, c->n_rows, sizeof(void *), by_process);
	return 0;
}

int pp_join_count(struct pp_join *j)
{
	const struct pp_trace_input *in = j->in;
	struct pp_trace_table *t = j->t;
	struct pp_attachment *PP_AUTO_FREE item = NULL;
	struct pp_region **PP_AUTO_FREE row = NULL;
	uint64_t *PP_AUTO_FREE others = NULL;
	struct count c = {.j = j};
	int r;

	hint(j);
	if (in->buffers && pp_attachments_find(in, &item, &c.n))
		return -ENOMEM;
	c.item = item;
	if (whole(t, PP_SURFACE_BUFINFO))
		t->attachments = (int64_t)c.n;
	if (whole(t, PP_SURFACE_PEERMEM) ||
	    t->surface[PP_SURFACE_PEERMEM].state == PP_SURFACE_ABSENT)
		t->peers = pp_join_no_peers(in) ? 0 : pp_peermem_live(in->peermem);
	r = find_rows(&c);
	row = c.row;
	others = c.others;
	if (r || !whole(t, PP_SURFACE_RESOURCES) || !whole(t, PP_SURFACE_PROCESSES))
		return r;
	if (whole(t, PP_SURFACE_BUFINFO))
		r = attachments(&c);
	if (!r)
		peers(&c);
	return r;
}
