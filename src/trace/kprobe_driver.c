/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drivers, and what their structure of a region says of its memory: by BTF, which a driver has or
 * has not. Both kinds of probes read it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "node/source.h"
#include "trace/kprobe_parts.h"
#include "base/banned.h"

enum { EXPRESSION = 512 };

static const char CORE[] = "ib_core";

void pp_kprobe_drivers_find(struct pp_btf *btf, struct pp_kprobe_drivers *ret)
{
	struct pp_kprobe_drivers d = {.n = 0};
	struct pp_btf_region region;
	struct pp_source *source;
	struct pp_names names;
	struct pp_error err;

	*ret = d;
	if (pp_source_live(&source, &err))
		return;
	if (!pp_source_list(source, "/sys/module/ib_core/holders", &names)) {
		d.whole = true;
		for (size_t i = 0; i < names.n; i++) {
			struct pp_btf_file *of = pp_btf_of(btf, names.name[i]);

			d.efa |= !strcmp(names.name[i], "efa");
			d.whole &= of != NULL;
			if (pp_btf_region(of, &region))
				continue;
			if (d.n < PP_KPROBE_DRIVERS && strlen(names.name[i]) < sizeof(d.name[0]))
				(void)snprintf(d.name[d.n++], sizeof(d.name[0]), "%s",
					       names.name[i]);
			else
				d.whole = false;
		}
		pp_names_done(&names);
	}
	pp_source_free(source);
	*ret = d;
}

void pp_kprobe_owner(struct pp_kprobe_writer *w)
{
	static const struct pp_kprobe_field owner[] = {
		{"owner", "res", "ib_mr", "res", "device->ops.owner->name"}, {NULL}};

	pp_kprobe_fields(w, owner);
}

/* Of struct ib_umem, and of the ib_umem_dmabuf that one of a DMA-BUF is a part of. */
static const struct {
	const char *name, *type, *path;
	bool buffer; /* lies behind pointers that host memory does not have */
} umem_fields[] = {
	{"isdmabuf", "ib_umem", "is_dmabuf", false},
	{"isodp", "ib_umem", "is_odp", false},
	{"ispeer", "ib_umem", "is_peer", false}, /* of the peer-memory patch alone */
	{"exp", "ib_umem_dmabuf", "attach->dmabuf->exp_name", true},
	{"size", "ib_umem_dmabuf", "attach->dmabuf->size", true},
	{"ino", "ib_umem_dmabuf", "attach->dmabuf->file->f_inode->i_ino", true},
	{"dev", "ib_umem_dmabuf", "attach->dev->kobj.name", true},
	{"sgt", "ib_umem_dmabuf", "sgt", true},
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

/* The expression of a pointer to a umem in the region's structure; -ENOENT: it is not known. */
static int umem_at(struct pp_kprobe_writer *w, const char *driver, const char *path,
		   char ret[EXPRESSION])
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
	r = pp_btf_fetch(btf, region.type, -(outer + inner), path ? path : region.umem, base, ret,
			 EXPRESSION);
	if (!r)
		ret[strcspn(ret, ":")] = '\0'; /* its type: it is the base of others */
	return r;
}

static bool write_umem(struct pp_kprobe_writer *w, const char *driver, const char *prefix,
		       const char *path, bool whole)
{
	char umem[EXPRESSION], expression[EXPRESSION];
	bool known = false;

	if (umem_at(w, driver, path, umem))
		return false;
	pp_kprobe_write(w, " %sumem=%s:x64", prefix, umem);
	for (size_t i = 0; i < PP_ARRAY_LEN(umem_fields); i++) {
		if ((umem_fields[i].buffer && !whole) ||
		    fetch(w->btf, driver, umem_fields[i].type, umem_fields[i].path, umem,
			  expression))
			continue;
		pp_kprobe_write(w, " %s%s=%s", prefix, umem_fields[i].name, expression);
		known |= !strcmp(umem_fields[i].name, "isdmabuf");
	}
	return known;
}

bool pp_kprobe_umem(struct pp_kprobe_writer *w, const char *driver, bool whole)
{
	bool known = write_umem(w, driver, "", NULL, whole);

	/* mlx5's data-direct region has no umem of its own: its inner region has it */
	(void)write_umem(w, driver, "dd", "dd_crossed_mr->umem", whole);
	return known;
}
