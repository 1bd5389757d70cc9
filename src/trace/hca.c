/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/hca.h"

#include <errno.h>
#include <string.h>

#include "base/bdf.h"
#include "base/compiler.h"
#include "base/banned.h"

static const char CLASS[] = "/sys/class/infiniband", UVERBS[] = "/sys/class/infiniband_verbs";
static const size_t LIMIT = (size_t)4 << 20;

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Last component of the link @dir/@name leads to; "" when there is none. */
static const char *link_end(struct pp_source *s, struct pp_arena *a, const char *dir,
			    const char *name)
{
	char path[PP_PATH_MAX], text[PP_PATH_MAX];

	if (pp_path_join(dir, name, path) || pp_source_link(s, path, text, sizeof(text)))
		return "";
	return pp_arena_str(a, last_part(text));
}

/* rxe shows the interface it sits on as "parent"; no other software device does. */
static const char *software_driver(struct pp_source *s, const char *dir)
{
	char path[PP_PATH_MAX], text[64];

	return !pp_path_join(dir, "parent", path) && !pp_source_text(s, path, text, sizeof(text))
		       ? "rdma_rxe"
		       : "";
}

static void read_one(struct pp_source *s, struct pp_arena *a, const char *name,
		     struct pp_trace_hca *h)
{
	char link[PP_PATH_MAX], dir[PP_PATH_MAX], device[PP_PATH_MAX];
	struct pp_bdf bdf;
	const char *parent;

	*h = (struct pp_trace_hca){.name = pp_arena_str(a, name),
				   .bdf = "",
				   .driver = "",
				   .data_direct = "",
				   .parent = "",
				   .uverbs = ""};
	if (pp_path_join(CLASS, name, link) || pp_source_real(s, link, dir))
		return;
	parent = link_end(s, a, dir, "device");
	if (*parent && !pp_bdf_parse_kernel(parent, &bdf))
		h->bdf = parent;
	else
		h->parent = parent;
	h->driver = *parent && !pp_path_join(dir, "device", device)
			    ? link_end(s, a, device, "driver")
			    : software_driver(s, dir);
}

static void name_uverbs(struct pp_source *s, struct pp_trace_hcas *h)
{
	char link[PP_PATH_MAX], dir[PP_PATH_MAX], path[PP_PATH_MAX], text[64];
	struct pp_names names;

	if (pp_source_list(s, UVERBS, &names))
		return;
	for (size_t i = 0; i < names.n && i < PP_TRACE_HCAS_MAX; i++) {
		if (pp_path_join(UVERBS, names.name[i], link) || pp_source_real(s, link, dir) ||
		    pp_path_join(dir, "ibdev", path) || pp_source_text(s, path, text, sizeof(text)))
			continue;
		for (size_t k = 0; k < h->n; k++)
			if (!strcmp(h->item[k].name, text))
				h->item[k].uverbs = pp_arena_str(&h->arena, names.name[i]);
	}
	pp_names_done(&names);
}

/*
 * mlx5's RDMA driver is itself bound to data-direct functions, and to no other PCI function. Which
 * hca such a function belongs to is in its vital product data alone: it is told only where there
 * is one of each.
 */
static void name_data_direct(struct pp_source *s, struct pp_trace_hcas *h)
{
	static const char *const drivers[] = {"/sys/bus/pci/drivers/mlx5_ib",
					      "/sys/bus/pci/drivers/mlx5_dd"};
	struct pp_trace_hca *only = NULL;
	size_t hcas = 0, functions = 0;
	char found[PP_BDF_TEXT] = "";
	struct pp_names names;
	struct pp_bdf bdf;

	for (size_t i = 0; i < h->n; i++) {
		if (strcmp(h->item[i].driver, "mlx5_core") != 0)
			continue;
		only = &h->item[i];
		hcas++;
	}
	for (size_t i = 0; hcas == 1 && i < PP_ARRAY_LEN(drivers); i++) {
		if (pp_source_list(s, drivers[i], &names))
			continue;
		for (size_t k = 0; k < names.n; k++) {
			if (pp_bdf_parse_kernel(names.name[k], &bdf))
				continue;
			(void)pp_bdf_format(&bdf, found);
			functions++;
		}
		pp_names_done(&names);
	}
	if (functions == 1)
		only->data_direct = pp_arena_str(&h->arena, found);
}

int pp_trace_hcas_read(struct pp_source *s, struct pp_trace_hcas *ret)
{
	struct pp_trace_hcas h = {.arena = PP_ARENA(LIMIT)};
	struct pp_names names;

	if (!pp_source_list(s, CLASS, &names)) {
		h.n = names.n < PP_TRACE_HCAS_MAX ? names.n : PP_TRACE_HCAS_MAX;
		h.item = pp_arena_array(&h.arena, h.n + 1, sizeof(*h.item));
		for (size_t i = 0; h.item && i < h.n; i++)
			read_one(s, &h.arena, names.name[i], &h.item[i]);
		pp_names_done(&names);
		if (h.item) {
			name_uverbs(s, &h);
			name_data_direct(s, &h);
		}
	}
	if (h.arena.failed) {
		pp_arena_done(&h.arena);
		return -ENOMEM;
	}
	*ret = h;
	return 0;
}

void pp_trace_hcas_done(struct pp_trace_hcas *h)
{
	pp_arena_done(&h->arena);
	*h = (struct pp_trace_hcas){0};
}
