/* SPDX-License-Identifier: Apache-2.0 */
#include "node/nccl_draft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

static const struct {
	const char *name, *text;
} odds[PP_NCCL_ODDS] = {
	[PP_NCCL_ODD_VERSION] =
		{"version", "the version of the file is not 1: NCCL refuses it (RCCL writes 2)"},
	[PP_NCCL_ODD_BUSID] = {"busid", "no PCI address of 12 characters, as NCCL needs it"},
	[PP_NCCL_ODD_DUPLICATE] = {"duplicate-busid", "the address of a device stands twice"},
	[PP_NCCL_ODD_ABSENT] = {"absent",
				"class, speed or width is not in the file: NCCL takes it from the "
				"machine it runs on, here it counts as a switch, 8 GT/s, 16 lanes"},
	[PP_NCCL_ODD_SPEED] = {"speed-unknown",
			       "NCCL does not know this word for a speed and counts 8 GT/s"},
	[PP_NCCL_ODD_WIDTH] = {"width-zero", "width 0: NCCL counts 16 lanes"},
	[PP_NCCL_ODD_SLOW_SWITCH] =
		{"slow-switch", "a switch of 2.5 GT/s x1, as virtual switches show themselves: "
				"NCCL believes it and gives every path through it 0.2 GB/s; write "
				"the real speed and width into the file"},
	[PP_NCCL_ODD_NIC_ON_CPU] =
		{"nic-on-cpu", "a NIC without a place on the PCI bus: it is PHB or SYS to every "
			       "GPU, so never used for GPUDirect RDMA by default"},
	[PP_NCCL_ODD_NUMA] = {"no-numa-node", "a CPU without a NUMA number"},
	[PP_NCCL_ODD_MISPLACED] = {"misplaced",
				   "a PCI device outside of any CPU, or below a GPU or a NIC: NCCL "
				   "does not see it"},
};

const char *pp_nccl_odd_text(enum pp_nccl_odd o)
{
	return odds[o].text;
}

const char *pp_nccl_odd_name(enum pp_nccl_odd o)
{
	return odds[o].name;
}

void pp_nccl_odd_add(struct pp_nccl_xml *x, enum pp_nccl_odd o, const char *whom)
{
	if (!x->odd[o]++)
		x->odd_first[o] = whom;
}

/* NCCL compares the whole word with its table; MT/s, -1 for another word. */
static int speed_of(const char *text)
{
	static const struct {
		const char *word;
		int mts;
	} words[] = {
		{"2.5 GT/s", 2500},	   {"5 GT/s", 5000},	      {"8 GT/s", 8000},
		{"16 GT/s", 16000},	   {"32 GT/s", 32000},	      {"2.5 GT/s PCIe", 2500},
		{"5.0 GT/s PCIe", 5000},   {"8.0 GT/s PCIe", 8000},   {"16.0 GT/s PCIe", 16000},
		{"32.0 GT/s PCIe", 32000}, {"64.0 GT/s PCIe", 64000},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(words); i++)
		if (!strcmp(text, words[i].word))
			return words[i].mts;
	return -1;
}

static void decide_kind(struct pp_nccl_draft *d)
{
	unsigned int base = d->class_code >> 16;

	if (d->has_gpu || base == 0x03 || base == 0x12)
		d->node.kind = PP_NCCL_GPU;
	else if (d->has_nic || (base == 0x02 && !d->has_pci))
		d->node.kind = PP_NCCL_NIC;
	if (d->node.kind == PP_NCCL_NIC && !d->node.nets)
		d->node.net_gbytes = PP_NCCL_UNLIMITED;
}

static void decide_link(struct pp_nccl_xml *x, struct pp_nccl_draft *d)
{
	int mts = d->speed ? speed_of(d->speed) : -1;

	d->node.link_gbytes = pp_nccl_link(mts, d->width > 0 ? (unsigned int)d->width : 0);
	if (!d->speed || d->width < 0 || !d->class_code)
		pp_nccl_odd_add(x, PP_NCCL_ODD_ABSENT, d->node.id);
	if (d->speed && mts < 0)
		pp_nccl_odd_add(x, PP_NCCL_ODD_SPEED, *d->speed ? d->speed : d->node.id);
	if (!d->width)
		pp_nccl_odd_add(x, PP_NCCL_ODD_WIDTH, d->node.id);
	if (d->node.kind == PP_NCCL_SWITCH && mts == 2500 && d->width == 1)
		pp_nccl_odd_add(x, PP_NCCL_ODD_SLOW_SWITCH, d->node.id);
}

static int by_id(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int find_duplicates(struct pp_nccl_xml *x, const struct pp_nccl_draft *d, unsigned int n)
{
	const char **ids = pp_arena_array(&x->graph.arena, n, sizeof(*ids));
	unsigned int count = 0;

	if (!ids)
		return -ENOMEM;
	for (unsigned int i = 0; i < n; i++)
		if (d[i].is_pci && *d[i].node.id)
			ids[count++] = d[i].node.id;
	qsort(ids, count, sizeof(*ids), by_id);
	for (unsigned int i = 1; i < count; i++)
		if (!strcmp(ids[i - 1], ids[i]))
			pp_nccl_odd_add(x, PP_NCCL_ODD_DUPLICATE, ids[i]);
	return 0;
}

/* Puts one draft into the graph; @place holds the vertices of the drafts before it. */
static int place_one(struct pp_nccl_xml *x, struct pp_nccl_draft *d, const int *place)
{
	int parent = d->node.parent < 0 ? -1 : place[d->node.parent];

	if (d->is_pci) {
		decide_kind(d);
		if (parent < 0 || x->graph.node[parent].kind > PP_NCCL_SWITCH) {
			pp_nccl_odd_add(x, PP_NCCL_ODD_MISPLACED, d->node.id);
			return -1;
		}
		decide_link(x, d);
	}
	d->node.parent = parent;
	return pp_nccl_graph_add(&x->graph, &d->node);
}

int pp_nccl_drafts_build(struct pp_nccl_xml *x, struct pp_nccl_draft *d, unsigned int n)
{
	int *place = pp_arena_array(&x->graph.arena, n, sizeof(*place));

	if (!place || find_duplicates(x, d, n))
		return -ENOMEM;
	for (unsigned int i = 0; i < n; i++) {
		place[i] = place_one(x, &d[i], place);
		if (place[i] < -1)
			return place[i];
	}
	return pp_nccl_graph_finish(&x->graph);
}
