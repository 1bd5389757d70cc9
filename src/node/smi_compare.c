/* SPDX-License-Identifier: Apache-2.0 */
#include "node/smi_compare.h"

#include <errno.h>
#include <string.h>

#include "node/distance.h"
#include "node/smi.h"
#include "base/banned.h"

enum { LISTED = 64 };

static const char name[] = "nvidia-smi topo -m";

struct comparison {
	struct pp_node *n;
	struct pp_smi smi;
	struct pp_object **object; /* of each column, NULL when it is not one of ours */
	int *gpu;		   /* place among the GPU objects, -1 */
	const char *diff[LISTED + 1];
	unsigned int compared, differ;
};

/* GPUs by NVML's index, which is what the tool counts by; NICs by their kernel name. */
static struct pp_object *identify(const struct pp_node *n, const struct pp_smi_dev *d, int *ret_gpu)
{
	enum pp_kind kind = d->is_gpu ? PP_GPU : PP_HCA;
	struct pp_object *o = NULL;

	*ret_gpu = -1;
	for (int i = 0; (o = pp_object_next(&n->facts, kind, o)); i++) {
		if (d->is_gpu ? pp_fact_int_or(o, PP_F_GPU_INDEX, -1) != d->index
			      : !d->named || strcmp(pp_fact_str_or(o, PP_F_HCA_NAME, ""), d->name))
			continue;
		*ret_gpu = d->is_gpu ? i : -1;
		return o->pci >= 0 ? o : NULL;
	}
	return NULL;
}

static void differ(struct comparison *c, unsigned int i, unsigned int j, const char *ours)
{
	char a[PP_SMI_CELL_TEXT], b[PP_SMI_CELL_TEXT];
	struct pp_smi_cell one = pp_smi_at(&c->smi, i, j), other = pp_smi_at(&c->smi, j, i);
	const char *back = pp_smi_cell_equal(one, other) ? "" : pp_smi_cell_text(other, b);

	if (c->differ++ < LISTED)
		c->diff[c->differ - 1] = pp_arena_printf(
			&c->n->arena, "%s and %s: nvidia-smi %s%s%s, here %s", c->object[i]->id,
			c->object[j]->id, pp_smi_cell_text(one, a), *back ? "/" : "", back, ours);
}

/* NV# hides the PCIe class of two GPUs, so their links are counted instead. */
static void compare_nvlinks(struct comparison *c, unsigned int i, unsigned int j)
{
	unsigned int gpus = c->n->n_gpus, a = (unsigned int)c->gpu[i], b = (unsigned int)c->gpu[j];
	int links;

	if (!c->n->nvlinks || c->gpu[i] < 0 || c->gpu[j] < 0 || a >= gpus || b >= gpus)
		return;
	links = c->n->nvlinks[a * gpus + b];
	if (links < 0)
		return;
	c->compared++;
	if (links != pp_smi_at(&c->smi, i, j).nvlinks ||
	    !pp_smi_cell_equal(pp_smi_at(&c->smi, i, j), pp_smi_at(&c->smi, j, i)))
		differ(c, i, j, pp_arena_printf(&c->n->arena, "%d NVLinks", links));
}

static void compare_pair(struct comparison *c, unsigned int i, unsigned int j)
{
	static const enum pp_distance of[] = {
		[PP_SMI_SELF] = PP_DISTANCE_X,	  [PP_SMI_PIX] = PP_DISTANCE_PIX,
		[PP_SMI_PXB] = PP_DISTANCE_PXB,	  [PP_SMI_PHB] = PP_DISTANCE_PHB,
		[PP_SMI_NODE] = PP_DISTANCE_NODE, [PP_SMI_SYS] = PP_DISTANCE_SYS,
	};
	struct pp_smi_cell one = pp_smi_at(&c->smi, i, j), other = pp_smi_at(&c->smi, j, i);
	enum pp_distance d;

	if (!c->object[i] || !c->object[j])
		return;
	if (one.class == PP_SMI_NV || other.class == PP_SMI_NV)
		return compare_nvlinks(c, i, j);
	d = pp_distance(&c->n->pci, c->object[i]->pci, c->object[j]->pci);
	if (d == PP_DISTANCE_UNKNOWN)
		return;
	c->compared++;
	/* Two RDMA devices of one function are X here; the tool calls them PIX. */
	if (d == PP_DISTANCE_X && i != j)
		d = PP_DISTANCE_PIX;
	if (of[one.class] != d || of[other.class] != d)
		differ(c, i, j, pp_distance_name(d));
}

static void set_result(struct comparison *c)
{
	struct pp_facts *f = &c->n->facts;
	unsigned int listed = c->differ < LISTED ? c->differ : LISTED;

	if (!c->compared && c->smi.n > 1)
		return pp_fact_unknown(f, c->n->self, PP_F_SMI_DIFFERENCES, name,
				       "none of its %u devices could be told by GPU index or name",
				       c->smi.n);
	if (c->differ > LISTED)
		c->diff[listed++] = pp_arena_printf(f->arena, "and %u more", c->differ - LISTED);
	pp_fact_list(f, c->n->self, PP_F_SMI_DIFFERENCES, c->diff, listed, name);
}

static int compare(struct pp_node *n, const char *text, struct pp_error *err)
{
	struct comparison c = {.n = n};
	int r = pp_smi_parse(name, text, strlen(text), &c.smi, err);

	if (r)
		return r;
	c.object = pp_arena_array(&c.smi.arena, c.smi.n, sizeof(struct pp_object *));
	c.gpu = pp_arena_array(&c.smi.arena, c.smi.n, sizeof(*c.gpu));
	if (!c.object || !c.gpu) {
		pp_smi_done(&c.smi);
		return pp_error_set(err, -ENOMEM, "out of memory");
	}
	for (unsigned int i = 0; i < c.smi.n; i++)
		c.object[i] = identify(n, &c.smi.dev[i], &c.gpu[i]);
	for (unsigned int i = 0; i < c.smi.n; i++)
		for (unsigned int j = i + 1; j < c.smi.n; j++)
			compare_pair(&c, i, j);
	set_result(&c);
	pp_smi_done(&c.smi);
	return 0;
}

/* Live, with the module absent, nvidia-smi would load it: examining a node must not change it. */
static bool would_load(const struct pp_node *n)
{
	const struct pp_fact *loaded = pp_fact_get(n->self, PP_F_NVIDIA_LOADED);

	return pp_source_may_ask(n->src) && loaded && loaded->known && !loaded->i64;
}

void pp_smi_ahead(struct pp_node *n)
{
	if (!would_load(n))
		pp_ask_ahead(n->src, &pp_smi_question);
}

void pp_smi_compare(struct pp_node *n)
{
	const char *path, *text, *why = NULL;
	struct pp_error err = {0};
	struct pp_answer a;

	if (would_load(n)) {
		why = "not run: the NVIDIA kernel module is not loaded, and nvidia-smi loads it";
		pp_fact_unknown(&n->facts, n->self, PP_F_NVIDIA_SMI, NULL, "%s", why);
		pp_fact_unknown(&n->facts, n->self, PP_F_SMI_DIFFERENCES, NULL, "%s", why);
		return;
	}
	if (pp_ask(n->src, &pp_smi_question, &a)) {
		n->arena.failed = true;
		return;
	}
	path = pp_answer_str(a.data, "path");
	text = pp_answer_str(a.data, "text");
	if (path)
		pp_fact_str(&n->facts, n->self, PP_F_NVIDIA_SMI, path, pp_smi_question.name);
	else
		pp_fact_unknown(&n->facts, n->self, PP_F_NVIDIA_SMI, pp_smi_question.name, "%s",
				a.answered ? "not in PATH of this process" : a.detail);
	if (!a.answered)
		why = a.detail;
	else if (!path)
		why = "nvidia-smi is not in PATH of this process";
	else if (n->pci.why)
		why = n->pci.why;
	else if (compare(n, text ? text : "", &err))
		why = err.text;
	if (why)
		pp_fact_unknown(&n->facts, n->self, PP_F_SMI_DIFFERENCES, name, "%s", why);
	pp_answer_done(&a);
}
