/* SPDX-License-Identifier: Apache-2.0 */
/*
 * B: what a region is, read while the kernel fills our own dump. One probe a driver, all on the
 * same function: each reads every region as if it were that driver's, and the event names the
 * driver that owns it, by which the reader takes the right one. A driver without BTF has a probe
 * that reads no memory of its own.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "node/source.h"
#include "trace/kprobe_parts.h"
#include "trace/symbol.h"
#include "base/banned.h"

enum { DRIVERS = 32, EXPRESSION = 512 };

static const char FUNCTION[] = "fill_res_mr_entry", CORE[] = "ib_core";

static const struct pp_kprobe_field region_fields[] = {
	{"mrn", "res", "rdma_restrack_entry", NULL, "id"},
	{"owner", "res", "ib_mr", "res", "device->ops.owner->name"},
	{NULL},
};

/* Of struct ib_umem, and of the ib_umem_dmabuf that one of a DMA-BUF is a part of. */
static const struct {
	const char *name, *type, *path;
} umem_fields[] = {
	{"isdmabuf", "ib_umem", "is_dmabuf"},
	{"isodp", "ib_umem", "is_odp"},
	{"ispeer", "ib_umem", "is_peer"}, /* of the peer-memory patch alone */
	{"exp", "ib_umem_dmabuf", "attach->dmabuf->exp_name"},
	{"size", "ib_umem_dmabuf", "attach->dmabuf->size"},
	{"ino", "ib_umem_dmabuf", "attach->dmabuf->file->f_inode->i_ino"},
	{"dev", "ib_umem_dmabuf", "attach->dev->kobj.name"},
	{"sgt", "ib_umem_dmabuf", "sgt"},
};

/* Where ib_umem's layout is: any module that uses it, the driver's own first. */
static int fetch(struct pp_btf *b, const char *driver, const char *type, const char *path,
		 const char *base, char ret[EXPRESSION])
{
	const char *const modules[] = {driver, "ib_uverbs", "vmlinux"};
	int r = -ENOENT;

	for (size_t i = 0; i < PP_ARRAY_LEN(modules) && r; i++) {
		struct pp_btf_file *btf = pp_btf_of(b, modules[i]);
		long start = 0;

		if (!strcmp(type, "ib_umem_dmabuf") && pp_btf_offset(btf, type, "umem", &start))
			continue;
		r = pp_btf_fetch(btf, type, -start, path, base, ret, EXPRESSION);
	}
	return r;
}

/* The expression of the region's umem; -ENOENT: the driver's structure is not known. */
static int umem_of(struct pp_kprobe_writer *w, const char *driver, char ret[EXPRESSION])
{
	struct pp_btf_file *btf = pp_btf_of(w->btf, driver);
	const char *base = pp_kprobe_named(w, "res");
	struct pp_btf_region region;
	long outer, inner;
	int r;

	if (!base || pp_btf_region(btf, &region) ||
	    pp_btf_offset(btf, region.type, region.mr, &outer) ||
	    pp_btf_offset(pp_btf_of(w->btf, CORE), "ib_mr", "res", &inner))
		return -ENOENT;
	r = pp_btf_fetch(btf, region.type, -(outer + inner), region.umem, base, ret, EXPRESSION);
	if (!r)
		ret[strcspn(ret, ":")] = '\0'; /* its type: it is the base of others */
	return r;
}

static void write_umem(struct pp_kprobe_writer *w, const char *driver)
{
	char umem[EXPRESSION], expression[EXPRESSION];

	if (umem_of(w, driver, umem))
		return;
	pp_kprobe_write(w, " umem=%s:x64", umem);
	for (size_t i = 0; i < PP_ARRAY_LEN(umem_fields); i++)
		if (!fetch(w->btf, driver, umem_fields[i].type, umem_fields[i].path, umem,
			   expression))
			pp_kprobe_write(w, " %s=%s", umem_fields[i].name, expression);
}

static void add_driver(struct pp_kprobes *k, struct pp_kprobe_writer *w, const char *driver)
{
	struct pp_kprobe *p = pp_kprobe_add(k, w, 'b', false, FUNCTION, CORE);

	if (!p)
		return;
	p->kind = PP_EVENT_REGION;
	p->by = PP_SURFACE_SELF_PROBE;
	(void)snprintf(p->module, sizeof(p->module), "%s", driver);
	pp_kprobe_fields(w, pp_kprobe_entry);
	pp_kprobe_fields(w, region_fields);
	if (*driver)
		write_umem(w, driver);
	k->n += !w->full;
}

/* Modules that use the RDMA core and hold regions: drivers. */
static void add_drivers(struct pp_kprobes *k, struct pp_kprobe_writer *w)
{
	struct pp_btf_region region;
	struct pp_source *source;
	struct pp_names names;
	struct pp_error err;

	if (pp_source_live(&source, &err))
		return;
	if (!pp_source_list(source, "/sys/module/ib_core/holders", &names)) {
		for (size_t i = 0, n = 0; i < names.n && n < DRIVERS; i++) {
			if (pp_btf_region(pp_btf_of(w->btf, names.name[i]), &region))
				continue;
			add_driver(k, w, names.name[i]);
			n++;
		}
		pp_names_done(&names);
	}
	pp_source_free(source);
}

int pp_kprobes_self(struct pp_kprobes *k, const struct pp_tracefs *t, struct pp_btf *btf,
		    struct pp_error *err)
{
	struct pp_kprobe_writer w = {
		.tracefs = t, .btf = btf, .function = FUNCTION, .module = CORE};
	struct pp_symbol symbol = {.name = FUNCTION, .module = CORE};
	int r = pp_symbols_find(&symbol, 1, err);

	if (r)
		return r;
	if (!symbol.found)
		return pp_error_set(err, -ENOENT, "the kernel has no %s:%s", CORE, FUNCTION);
	if (!pp_btf_of(btf, CORE))
		return pp_error_set(err, -ENOENT,
				    "ib_core has no BTF (built outside the kernel's tree?)");
	if (!pp_kprobe_named(&w, "res"))
		return pp_error_set(err, -ENOENT, "BTF does not know %s of ib_core", FUNCTION);
	/* one that knows no driver: every region has an event, whatever its driver's BTF */
	add_driver(k, &w, "");
	add_drivers(k, &w);
	return 0;
}
