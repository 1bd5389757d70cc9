/* SPDX-License-Identifier: Apache-2.0 */
/*
 * B: what a region is, read while the kernel fills our own dump. One probe a driver, all on the
 * same function: each reads every region as if it were that driver's, and the event names the
 * driver that owns it, by which the reader takes the right one. Of a driver without BTF any of them
 * tells that there is a region, and no more.
 *
 * /proc/kallsyms is not asked: BTF knows the function, and the kernel refuses one that it has not.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "trace/kprobe_parts.h"
#include "base/banned.h"

static const char FUNCTION[] = "fill_res_mr_entry", CORE[] = "ib_core";

static const struct pp_kprobe_field region_fields[] = {
	{"mrn", "res", "rdma_restrack_entry", NULL, "id"},
	{NULL},
};

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
	pp_kprobe_owner(w);
	if (*driver)
		(void)pp_kprobe_umem(w, driver, /* whole= */ true);
	k->n += !w->full;
}

int pp_kprobes_self(struct pp_kprobes *k, const struct pp_tracefs *t, struct pp_btf *btf,
		    struct pp_error *err)
{
	struct pp_kprobe_writer w = {
		.tracefs = t, .btf = btf, .function = FUNCTION, .module = CORE};
	struct pp_kprobe_drivers drivers;

	if (!pp_btf_of(btf, CORE))
		return pp_error_set(err, -ENOENT,
				    "ib_core has no BTF (built outside the kernel's tree?)");
	if (!pp_kprobe_named(&w, "res"))
		return pp_error_set(err, -ENOENT, "BTF does not know %s of ib_core", FUNCTION);
	pp_kprobe_drivers_find(btf, &drivers);
	for (unsigned int i = 0; i < drivers.n; i++)
		add_driver(k, &w, drivers.name[i]);
	/* one that knows no driver: every region has an event, whatever its driver's BTF */
	if (!drivers.n)
		add_driver(k, &w, "");
	return 0;
}
