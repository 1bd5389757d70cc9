/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A: the functions that a registration passes, with what they are given and what they return.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "trace/kprobe_parts.h"
#include "trace/symbol.h"
#include "base/banned.h"

static const struct pp_kprobe_field host_fields[] = {
	{"addr", "addr", NULL, NULL, NULL}, {"len", "size", NULL, NULL, NULL}, {NULL}};
static const struct pp_kprobe_field dmabuf_fields[] = {
	{"fd", "fd", NULL, NULL, NULL}, {"len", "size", NULL, NULL, NULL}, {NULL}};
static const struct pp_kprobe_field attach_fields[] = {
	{"exp", "dmabuf", "dma_buf", NULL, "exp_name"},
	{"size", "dmabuf", "dma_buf", NULL, "size"},
	{"ino", "dmabuf", "dma_buf", NULL, "file->f_inode->i_ino"},
	{"dev", "dev", "device", NULL, "kobj.name"},
	{NULL},
};
static const struct pp_kprobe_field no_fields[] = {{NULL}};

static const struct live {
	const char *symbol;
	enum pp_event_kind kind;
	const struct pp_kprobe_field *fields;
	const char *result; /* its type; NULL: no return probe */
} live[] = {
	{"ib_umem_get", PP_EVENT_HOST, host_fields, "x64"},
	{"ib_umem_get_va", PP_EVENT_HOST, host_fields, "x64"},
	{"ib_umem_get_peer", PP_EVENT_PEER, host_fields, "x64"},
	{"ib_peer_umem_get", PP_EVENT_PEER, no_fields, "x64"},
	{"ib_umem_dmabuf_get", PP_EVENT_DMABUF, dmabuf_fields, "x64"},
	{"ib_umem_dmabuf_get_pinned", PP_EVENT_DMABUF, dmabuf_fields, "x64"},
	{"ib_umem_dmabuf_get_pinned_with_dma_device", PP_EVENT_DMABUF, dmabuf_fields, "x64"},
	{"ib_umem_dmabuf_get_pinned_revocable_and_lock", PP_EVENT_DMABUF, dmabuf_fields, "x64"},
	{"dma_buf_dynamic_attach", PP_EVENT_ATTACH, attach_fields, "x64"},
	{"nvidia_p2p_get_pages", PP_EVENT_P2P, no_fields, "s32"},
	{"nvidia_p2p_get_pages_persistent", PP_EVENT_P2P, no_fields, "s32"},
	{"rdma_restrack_add", PP_EVENT_ADDED, pp_kprobe_entry, NULL},
	{"rdma_restrack_del", PP_EVENT_REMOVED, pp_kprobe_entry, NULL},
};

static void add_live(struct pp_kprobes *k, struct pp_kprobe_writer *w, const struct live *l,
		     const char *module)
{
	struct pp_kprobe *p = pp_kprobe_add(k, w, 'a', false, l->symbol, module);

	if (!p)
		return;
	p->kind = l->kind;
	p->by = PP_SURFACE_LIVE_PROBE;
	pp_kprobe_fields(w, l->fields);
	if (l->fields == pp_kprobe_entry)
		pp_kprobe_filter(p, w->btf);
	k->n += !w->full;
	p = l->result ? pp_kprobe_add(k, w, 'a', true, l->symbol, module) : NULL;
	if (!p)
		return;
	p->kind = l->kind;
	p->by = PP_SURFACE_LIVE_PROBE;
	pp_kprobe_write(w, " ret=$retval:%s", l->result);
	k->n += !w->full;
}

/* Which of the functions this kernel has now. */
static int look(struct pp_symbol symbols[PP_ARRAY_LEN(live)], struct pp_error *err)
{
	memset(symbols, 0, PP_ARRAY_LEN(live) * sizeof(*symbols));
	for (size_t i = 0; i < PP_ARRAY_LEN(live); i++)
		symbols[i].name = live[i].symbol;
	return pp_symbols_find(symbols, PP_ARRAY_LEN(live), err);
}

static bool is_watched(const struct pp_kprobes *k, const char *symbol)
{
	for (unsigned int i = 0; i < k->n; i++)
		if (k->item[i].by == PP_SURFACE_LIVE_PROBE && !strcmp(k->item[i].symbol, symbol))
			return true;
	return false;
}

const char *pp_kprobes_unwatched(const struct pp_kprobes *k)
{
	struct pp_symbol symbols[PP_ARRAY_LEN(live)];
	struct pp_error err;

	if (look(symbols, &err))
		return "/proc/kallsyms";
	for (size_t i = 0; i < PP_ARRAY_LEN(live); i++)
		if (symbols[i].found && !is_watched(k, live[i].symbol))
			return live[i].symbol;
	return NULL;
}

int pp_kprobes_live(struct pp_kprobes *k, const struct pp_tracefs *t, struct pp_btf *btf,
		    struct pp_error *err)
{
	struct pp_symbol symbols[PP_ARRAY_LEN(live)];
	struct pp_kprobe_writer w = {.tracefs = t, .btf = btf};
	unsigned int before = k->n;
	int r = look(symbols, err);

	if (r)
		return r;
	for (size_t i = 0; i < PP_ARRAY_LEN(live); i++)
		if (symbols[i].found)
			add_live(k, &w, &live[i], symbols[i].in);
	if (k->n == before)
		return pp_error_set(
			err, -ENOENT,
			"the kernel has none of the RDMA core's functions: is ib_uverbs loaded?");
	return 0;
}
