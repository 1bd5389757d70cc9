/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link leads to a GPU, to a switch, or to something else. Links to a GPU are counted for that
 * pair. Switches join all GPUs that have links to them, so that a pair has the smaller number of
 * the two (NV18 between H200s). A GPU with one link of which this cannot be said has an unknown
 * row: a number that may be too small is no number.
 */
#include "node/nvlink.h"

#include <string.h>

#include "node/nvml.h"
#include "base/banned.h"

/* A matrix of this many GPUs has 2 MiB; a machine that claims more gets none. */
enum { MAX_GPUS = 1024 };

enum { FABRIC_COMPLETED = 3, CLASS_BRIDGE_OTHER = 0x0680, VENDOR_NVIDIA = 0x10de };

enum remote { TO_GPU, TO_SWITCH, TO_OTHER, TO_UNKNOWN };

struct links {
	bool known; /* the state of every link */
	bool row;   /* and where every active one leads */
	int active, inactive, to_switch;
};

/* Position of the GPU among the GPU objects, -1 when it is none of them. */
static int gpu_at(const struct pp_node *n, const struct pp_bdf *bdf)
{
	const struct pp_object *o = NULL;
	char id[PP_BDF_TEXT];

	(void)pp_bdf_format(bdf, id);
	for (int i = 0; (o = pp_object_next(&n->facts, PP_GPU, o)); i++)
		if (!strcmp(o->id, id))
			return i;
	return -1;
}

static bool is_switch(const struct pp_node *n, const struct pp_bdf *bdf)
{
	int i = pp_pci_find(&n->pci, bdf);

	return i >= 0 && n->pci.dev[i].vendor == VENDOR_NVIDIA &&
	       n->pci.dev[i].class_code >> 8 == CLASS_BRIDGE_OTHER;
}

/*
 * Drivers before R510 do not say what stands at the other end, and guests may not be told: then
 * the PCI function there tells, or that the GPU is registered with an NVSwitch fabric.
 */
static enum remote remote_of(const struct pp_node *n, const json_t *gpu, const json_t *link,
			     int *ret_gpu)
{
	const char *kind = pp_answer_str(link, "remote"), *at = pp_answer_str(link, "remote_bdf");
	int64_t fabric = 0;
	struct pp_bdf bdf;
	bool placed = at && !pp_bdf_parse(at, &bdf);

	kind = kind ? kind : "unknown";
	if (!strcmp(kind, "switch"))
		return TO_SWITCH;
	if (!strcmp(kind, "npu"))
		return TO_OTHER;
	*ret_gpu = placed ? gpu_at(n, &bdf) : -1;
	if (*ret_gpu >= 0)
		return TO_GPU;
	if (!strcmp(kind, "gpu"))
		return placed ? TO_OTHER : TO_UNKNOWN; /* a GPU that is not visible here */
	if (placed && is_switch(n, &bdf))
		return TO_SWITCH;
	(void)pp_answer_i64(gpu, "fabric_state", &fabric);
	return fabric == FABRIC_COMPLETED ? TO_SWITCH : TO_UNKNOWN;
}

/* One GPU's links into its row. */
static struct links count(const struct pp_node *n, const json_t *gpu, int16_t *row)
{
	const json_t *list = json_object_get(gpu, "links"), *link;
	struct links l = {.known = json_is_array(list) && !json_object_get(gpu, "links_error")};
	int peer = -1;
	bool active;

	l.row = l.known;
	for (size_t i = 0; i < json_array_size(list) && i < PP_NVML_LINKS; i++) {
		link = json_array_get(list, i);
		if (pp_answer_bool(link, "active", &active)) {
			l.known = l.row = false;
			continue;
		}
		l.active += active;
		l.inactive += !active;
		if (!active)
			continue;
		switch (remote_of(n, gpu, link, &peer)) {
		case TO_GPU:
			row[peer]++;
			break;
		case TO_SWITCH:
			l.to_switch++;
			break;
		case TO_UNKNOWN:
			l.row = false;
			break;
		case TO_OTHER:
			break;
		}
	}
	return l;
}

static void set_facts(struct pp_node *n, struct pp_object *o, const json_t *gpu, const char *why,
		      const struct links *l)
{
	static const char source[] = "nvmlDeviceGetNvLinkState";
	const char *error = pp_answer_str(gpu, "links_error");

	if (l->known) {
		pp_fact_int(&n->facts, o, PP_F_GPU_NVLINKS, l->active, source);
		pp_fact_int(&n->facts, o, PP_F_GPU_NVLINKS_DOWN, l->inactive, source);
		return;
	}
	if (!error)
		error = !gpu ? why
			: json_is_array(json_object_get(gpu, "links"))
				? "the state of a link could not be read"
				: "its answer does not hold it";
	pp_fact_unknown(&n->facts, o, PP_F_GPU_NVLINKS, source, "%s", error);
	pp_fact_unknown(&n->facts, o, PP_F_GPU_NVLINKS_DOWN, source, "%s", error);
}

/* What rows alone cannot say: pairs through switches, and pairs of which nothing is known. */
static void join(int16_t *matrix, const struct links *l, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int j = 0; j < n; j++) {
			int16_t *cell = &matrix[(size_t)i * n + j];
			int both =
				l[i].to_switch < l[j].to_switch ? l[i].to_switch : l[j].to_switch;

			if (i == j)
				*cell = 0;
			else if (!l[i].row || (l[i].to_switch && !l[j].row))
				*cell = -1;
			else
				*cell = (int16_t)(*cell + both);
		}
	}
}

void pp_nvlink_fill(struct pp_node *n, const json_t *const *gpus, const char *const *why,
		    unsigned int n_gpus)
{
	struct pp_object *o = NULL;
	struct links *l;
	int16_t *matrix;

	if (!n_gpus || n_gpus > MAX_GPUS)
		return;
	matrix = pp_arena_array(&n->arena, (size_t)n_gpus * n_gpus, sizeof(*matrix));
	l = pp_arena_array(&n->arena, n_gpus, sizeof(*l));
	if (!matrix || !l)
		return;
	for (unsigned int i = 0; i < n_gpus; i++) {
		o = pp_object_next(&n->facts, PP_GPU, o);
		l[i] = count(n, gpus[i], matrix + (size_t)i * n_gpus);
		set_facts(n, o, gpus[i], why[i], &l[i]);
	}
	join(matrix, l, n_gpus);
	n->nvlinks = matrix;
	n->n_gpus = n_gpus;
}
