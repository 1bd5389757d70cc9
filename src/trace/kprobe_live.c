/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A: registrations as they happen. Every probe costs the one who registers, so there are as few as
 * tell the path:
 *
 *   by umem    where BTF shows the regions of all drivers: a region's memory is read when the
 * region is added, so that host memory passes no probe but that one and the one of its end. A
 *              DMA-BUF passes one more, which knows the buffer; or the kernel's own event.
 *   by calls   else: what the calls return says which kind of memory it was. Their entries are not
 *              probed where they say nothing more.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "trace/kprobe_parts.h"
#include "trace/symbol.h"
#include "base/banned.h"

static const char CORE[] = "ib_core", ADD[] = "rdma_restrack_add", DEL[] = "rdma_restrack_del",
		  ATTACH[] = "dma_buf_dynamic_attach", KERNEL[] = "vmlinux", SYSTEM[] = "dma_buf";

static const struct pp_kprobe_field dmabuf_fields[] = {
	{"fd", "fd", NULL, NULL, NULL}, {"len", "size", NULL, NULL, NULL}, {NULL}};
static const struct pp_kprobe_field attach_fields[] = {
	{"exp", "dmabuf", "dma_buf", NULL, "exp_name"},
	{"size", "dmabuf", "dma_buf", NULL, "size"},
	{"ino", "dmabuf", "dma_buf", NULL, "file->f_inode->i_ino"},
	{"dev", "dev", "device", NULL, "kobj.name"},
	{NULL},
};
/* The end of a region is told by its address alone. */
static const struct pp_kprobe_field end_fields[] = {
	{"obj", "res", NULL, NULL, NULL},
	{"rtype", "res", "rdma_restrack_entry", NULL, "type"},
	{NULL},
};

static const struct live {
	const char *symbol;
	enum pp_event_kind kind;
	const struct pp_kprobe_field *fields; /* at its entry; NULL: the entry is not probed */
	const char *result;		      /* its type; NULL: the return is not probed */
} live[] = {
	{"ib_umem_get", PP_EVENT_HOST, NULL, "x64"},
	{"ib_umem_get_va", PP_EVENT_HOST, NULL, "x64"},
	{"ib_umem_get_peer", PP_EVENT_PEER, NULL, "x64"},
	{"ib_peer_umem_get", PP_EVENT_PEER, NULL, "x64"},
	{"ib_umem_dmabuf_get", PP_EVENT_DMABUF, dmabuf_fields, "x64"},
	{"ib_umem_dmabuf_get_pinned", PP_EVENT_DMABUF, dmabuf_fields, "x64"},
	{"ib_umem_dmabuf_get_pinned_with_dma_device", PP_EVENT_DMABUF, dmabuf_fields, "x64"},
	{"ib_umem_dmabuf_get_pinned_revocable_and_lock", PP_EVENT_DMABUF, dmabuf_fields, "x64"},
	{ATTACH, PP_EVENT_ATTACH, attach_fields, "x64"},
	{"nvidia_p2p_get_pages", PP_EVENT_P2P, NULL, "s32"},
	{"nvidia_p2p_get_pages_persistent", PP_EVENT_P2P, NULL, "s32"},
	{ADD, PP_EVENT_ADDED, pp_kprobe_entry, NULL},
	{DEL, PP_EVENT_REMOVED, end_fields, NULL},
};

static struct pp_kprobe *begin(struct pp_kprobes *k, struct pp_kprobe_writer *w, bool returns,
			       const char *symbol, enum pp_event_kind kind, const char *module)
{
	struct pp_kprobe *p = pp_kprobe_add(k, w, 'a', returns, symbol, module);

	if (p) {
		p->kind = kind;
		p->by = PP_SURFACE_LIVE_PROBE;
	}
	return p;
}

static void add_entry(struct pp_kprobes *k, struct pp_kprobe_writer *w, const char *symbol,
		      enum pp_event_kind kind, const struct pp_kprobe_field *fields,
		      const char *module)
{
	struct pp_kprobe *p = begin(k, w, /* returns= */ false, symbol, kind, module);

	if (!p)
		return;
	pp_kprobe_fields(w, fields);
	pp_kprobe_filter(p, w->btf);
	k->n += !w->full;
}

static void add_live(struct pp_kprobes *k, struct pp_kprobe_writer *w, const struct live *l,
		     const char *module)
{
	if (l->fields)
		add_entry(k, w, l->symbol, l->kind, l->fields, module);
	if (!l->result || !begin(k, w, /* returns= */ true, l->symbol, l->kind, module))
		return;
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

int pp_kprobes_points(struct pp_kprobes *k, const struct pp_tracefs *t, struct pp_error *err)
{
	struct pp_kprobe *p = k->n < PP_KPROBES ? &k->item[k->n] : NULL;

	if (!p || !pp_tracefs_has_event(t, SYSTEM, ATTACH))
		return pp_error_set(err, -ENOENT, "the kernel has no event %s:%s", SYSTEM, ATTACH);
	*p = (struct pp_kprobe){.suffix = 'a',
				.point = SYSTEM,
				.kind = PP_EVENT_ATTACH,
				.by = PP_SURFACE_TRACEPOINTS};
	(void)snprintf(p->event, sizeof(p->event), "%s", ATTACH);
	(void)snprintf(p->symbol, sizeof(p->symbol), "%s", ATTACH);
	k->n++;
	return 0;
}

static bool is_watched(const struct pp_kprobes *k, const char *symbol)
{
	for (unsigned int i = 0; i < k->n; i++)
		if (k->item[i].suffix == 'a' && !k->item[i].user &&
		    !strcmp(k->item[i].symbol, symbol))
			return true;
	return false;
}

static bool is_read(const struct pp_kprobe_drivers *d, const char *driver)
{
	for (unsigned int i = 0; i < d->n; i++)
		if (!strcmp(d->name[i], driver))
			return true;
	return false;
}

/* A driver that came since; or EFA, or one without BTF. */
static const char *unread(const struct pp_kprobes *k, struct pp_btf *btf)
{
	static struct pp_kprobe_drivers now; /* its names are told */

	pp_kprobe_drivers_find(btf, &now);
	for (unsigned int i = 0; i < now.n; i++)
		if (!is_read(&k->drivers, now.name[i]))
			return now.name[i];
	if (now.efa)
		return "efa";
	return now.whole || !now.n ? NULL : "a driver without BTF";
}

const char *pp_kprobes_unwatched(const struct pp_kprobes *k, struct pp_btf *btf)
{
	struct pp_symbol symbols[PP_ARRAY_LEN(live)];
	struct pp_error err;

	if (k->by_umem)
		return unread(k, btf);
	if (look(symbols, &err))
		return "/proc/kallsyms";
	for (size_t i = 0; i < PP_ARRAY_LEN(live); i++)
		if (symbols[i].found && !is_watched(k, live[i].symbol))
			return live[i].symbol;
	return NULL;
}

/*
 * Does BTF know all that tells the path? EFA takes a GPU's memory without a umem; and where peer
 * clients can be, a umem has to say that it is one of theirs.
 */
static bool can_read(const struct pp_tracefs *t, struct pp_btf *btf,
		     const struct pp_kprobe_drivers *d)
{
	struct pp_btf_file *core = pp_btf_of(btf, CORE), *verbs = pp_btf_of(btf, "ib_uverbs");
	static const char PEERS[] = "ib_register_peer_memory_client";
	long offset;

	if (!d->whole || !d->n || d->efa || !core || !verbs || !pp_kprobe_argument(t, false, 1) ||
	    pp_btf_argument(core, ADD, "res") < 1 || pp_btf_argument(core, DEL, "res") < 1 ||
	    pp_btf_argument(pp_btf_of(btf, KERNEL), ATTACH, "dmabuf") < 1)
		return false;
	return !pp_btf_offset(verbs, "ib_umem", "is_peer", &offset) ||
	       (!pp_btf_has(core, PEERS) && !pp_btf_has(verbs, PEERS));
}

/* The region as one driver has it. */
static bool add_driver(struct pp_kprobes *k, struct pp_kprobe_writer *w, const char *driver)
{
	struct pp_kprobe *p =
		begin(k, w, /* returns= */ false, ADD, PP_EVENT_ADDED, /* module= */ CORE);

	if (!p)
		return false;
	(void)snprintf(p->module, sizeof(p->module), "%s", driver);
	pp_kprobe_fields(w, pp_kprobe_entry);
	pp_kprobe_owner(w); /* also where there is one driver: another may come */
	if (!pp_kprobe_umem(w, driver, /* whole= */ false) || w->full)
		return false;
	pp_kprobe_filter(p, w->btf);
	k->n++;
	return true;
}

static bool add_by_umem(struct pp_kprobes *k, struct pp_kprobe_writer *w)
{
	unsigned int before = k->n;

	pp_kprobe_drivers_find(w->btf, &k->drivers);
	if (!can_read(w->tracefs, w->btf, &k->drivers))
		return false;
	for (unsigned int i = 0; i < k->drivers.n; i++)
		if (!add_driver(k, w, k->drivers.name[i])) {
			k->n = before;
			return false;
		}
	add_entry(k, w, DEL, PP_EVENT_REMOVED, end_fields, CORE);
	if (!is_watched(k, ATTACH))
		add_entry(k, w, ATTACH, PP_EVENT_ATTACH, attach_fields, KERNEL);
	return true;
}

int pp_kprobes_live(struct pp_kprobes *k, const struct pp_tracefs *t, struct pp_btf *btf,
		    struct pp_error *err)
{
	struct pp_symbol symbols[PP_ARRAY_LEN(live)];
	struct pp_kprobe_writer w = {.tracefs = t, .btf = btf};
	unsigned int before = k->n;
	int r;

	k->by_umem = btf && add_by_umem(k, &w);
	if (k->by_umem)
		return 0;
	r = look(symbols, err);
	if (r)
		return r;
	for (size_t i = 0; i < PP_ARRAY_LEN(live); i++)
		if (symbols[i].found && !is_watched(k, live[i].symbol))
			add_live(k, &w, &live[i], symbols[i].in);
	if (k->n == before)
		return pp_error_set(
			err, -ENOENT,
			"the kernel has none of the RDMA core's functions: is ib_uverbs loaded?");
	return 0;
}
