/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/drawing_notes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "node/link.h"
#include "base/banned.h"

#define DOT " \xc2\xb7 "

static const char SMALL_BAR1[] = "BAR1 is smaller than its memory";

static void sentence(struct pp_drawing *d, bool fault, const char *text)
{
	if (fault && d->n_faults < d->cap_sentences)
		d->faults[d->n_faults++] = text;
	else if (!fault && d->n_unknowns < d->cap_sentences)
		d->unknowns[d->n_unknowns++] = text;
	else if (fault)
		d->n_more_faults++;
}

static void PP_PRINTF(2, 3) fault(struct pp_drawing *d, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sentence(d, true, pp_arena_str(&d->arena, text));
}

static void PP_PRINTF(2, 3) unknown(struct pp_drawing *d, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sentence(d, false, pp_arena_str(&d->arena, text));
}

static void note(struct pp_item *i, const char *text)
{
	if (i->n_notes < PP_ITEM_NOTES)
		i->notes[i->n_notes++] = text;
}

static const char *name_of(const struct pp_drawing *d, const struct pp_item *i, char *buf,
			   size_t size)
{
	char bdf[PP_BDF_TEXT];

	(void)snprintf(buf, size, "%s%s%s", pp_bdf_format(&d->node->pci.dev[i->pci].bdf, bdf),
		       i->object && i->object->name ? " " : "",
		       i->object && i->object->name ? i->object->name : "");
	return buf;
}

static int generation(int64_t mts)
{
	static const int speeds[] = {2500, 5000, 8000, 16000, 32000, 64000};

	for (size_t i = 0; i < PP_ARRAY_LEN(speeds); i++)
		if (mts == speeds[i])
			return (int)i + 1;
	return 0;
}

/* The line to the item: what both ends can do, or, in red, how far below that it runs. */
static void note_link(struct pp_drawing *d, struct pp_item *i, const struct pp_object *link)
{
	int64_t width = pp_fact_int_or(link, PP_F_LINK_WIDTH, -1),
		wide = pp_fact_int_or(link, PP_F_LINK_WIDTH_POSSIBLE, width);
	int64_t speed = pp_fact_int_or(link, PP_F_LINK_SPEED, -1),
		fast = pp_fact_int_or(link, PP_F_LINK_SPEED_POSSIBLE, speed);
	bool narrow = pp_fact_is(link, PP_F_LINK_NARROW), slow = pp_fact_is(link, PP_F_LINK_SLOW);
	struct pp_arena *a = &d->arena;
	char name[160];

	if (!link || wide < 0 || !generation(fast))
		return;
	if (!narrow && !slow) {
		i->link = pp_arena_printf(a, "Gen%d x%" PRId64, generation(fast), wide);
		return;
	}
	if (slow && narrow)
		i->link_fault = pp_arena_printf(a, "Gen%d x%" PRId64 " of Gen%d x%" PRId64,
						generation(speed), width, generation(fast), wide);
	else if (narrow)
		i->link_fault = pp_arena_printf(a, "Gen%d x%" PRId64 " of x%" PRId64,
						generation(fast), width, wide);
	else
		i->link_fault = pp_arena_printf(a, "Gen%d of Gen%d x%" PRId64, generation(speed),
						generation(fast), wide);
	fault(d, "link to %s runs %s", name_of(d, i, name, sizeof(name)), i->link_fault);
}

void pp_note_switch(struct pp_drawing *d, struct pp_item *i, const struct pp_object *link)
{
	const struct pp_pci_dev *dev = &d->node->pci.dev[i->pci];
	char bdf[PP_BDF_TEXT];

	i->title = pp_arena_printf(&d->arena, "%s",
				   pp_pci_port_kind(&d->node->pci, i->pci) == PP_PORT_UPSTREAM
					   ? "PCIe switch"
					   : "bridge");
	i->subtitle = pp_arena_str(&d->arena, pp_bdf_format(&dev->bdf, bdf));
	note_link(d, i, link);
}

void pp_note_gpu(struct pp_drawing *d, struct pp_item *i, const struct pp_object *link)
{
	const struct pp_object *o = i->object;
	int64_t index = pp_fact_int_or(o, PP_F_GPU_INDEX, -1);
	int64_t bar1 = pp_fact_int_or(o, PP_F_GPU_BAR1_TOTAL, 0) >> 20;
	const struct pp_fact *covers = pp_fact_get(o, PP_F_GPU_BAR1_COVERS);
	const char *product = pp_fact_str_or(o, PP_F_GPU_NAME, "");
	char bdf[PP_BDF_TEXT], number[24] = "";

	(void)pp_bdf_format(&d->node->pci.dev[i->pci].bdf, bdf);
	if (index >= 0)
		(void)snprintf(number, sizeof(number), " %" PRId64, index);
	i->title = pp_arena_printf(&d->arena, "GPU%s%s%s", number, *product ? DOT : "", product);
	if (bar1 > 0)
		i->subtitle = pp_arena_printf(&d->arena, "%s" DOT "BAR1 %" PRId64 " %s", bdf,
					      bar1 >= 1024 ? bar1 >> 10 : bar1,
					      bar1 >= 1024 ? "GiB" : "MiB");
	else
		i->subtitle = pp_arena_str(&d->arena, bdf);
	note_link(d, i, link);
	if (covers && covers->known && !covers->i64)
		note(i, SMALL_BAR1);
}

/* State and rate of an hca's ports. */
struct ports {
	unsigned int n, active;
	int64_t rate_mbps;
	const char *layer, *state;
};

static struct ports ports_of(const struct pp_drawing *d, const struct pp_object *hca)
{
	struct ports p = {0};
	const struct pp_object *o = NULL;
	const char *state;

	while ((o = pp_object_next(&d->node->facts, PP_PORT, o))) {
		if (o->parent != hca)
			continue;
		state = pp_fact_str_or(o, PP_F_PORT_STATE, "state unknown");
		p.n++;
		p.active += !strcmp(state, "ACTIVE");
		if (!p.state || strcmp(state, "ACTIVE") != 0)
			p.state = state;
		p.rate_mbps = pp_fact_int_or(o, PP_F_PORT_RATE, p.rate_mbps);
		p.layer = pp_fact_str_or(o, PP_F_PORT_LINK, p.layer);
	}
	return p;
}

static bool lacks_device(const struct pp_object *hca)
{
	const struct pp_fact *has = pp_fact_get(hca, PP_F_HCA_HAS_DEVICE);

	return has && has->known && !has->i64;
}

void pp_note_hca(struct pp_drawing *d, struct pp_item *i, const struct pp_object *link)
{
	const struct pp_object *o = i->object;
	struct ports p = ports_of(d, o);
	char bdf[PP_BDF_TEXT], name[160];

	(void)pp_bdf_format(&d->node->pci.dev[i->pci].bdf, bdf);
	i->title = pp_arena_printf(&d->arena, "%s", o->name ? o->name : "hca");
	if (p.rate_mbps > 0)
		i->title = pp_arena_printf(&d->arena, "%s" DOT "%" PRId64 " Gb/s %s", i->title,
					   p.rate_mbps / 1000, p.layer ? p.layer : "");
	i->subtitle = pp_arena_printf(&d->arena, "%s%s%s", bdf, p.state ? DOT : "",
				      p.state ? p.state : "");
	note_link(d, i, link);
	(void)name_of(d, i, name, sizeof(name));
	if (lacks_device(o)) {
		note(i, "no RDMA device");
		fault(d, "%s: the PCI function carries no RDMA device", name);
	} else if (p.n && p.active < p.n && strcmp(p.state, "state unknown") != 0) {
		note(i, pp_arena_printf(&d->arena, "port is %s", p.state));
		fault(d, "%s: port is %s", name, p.state);
	} else if (!p.n || p.active < p.n) {
		unknown(d, "%s: state of its ports", name);
	}
}

static struct pp_item *group_below(struct pp_drawing *d, int host)
{
	struct pp_item *i;

	for (unsigned int k = 0; k < d->n; k++)
		if (d->items[k].kind == PP_ITEM_GROUP && d->items[k].parent == host)
			return &d->items[k];
	if (d->n == d->cap)
		return NULL;
	i = &d->items[d->n++];
	*i = (struct pp_item){.kind = PP_ITEM_GROUP, .pci = -1, .parent = host, .port = -1};
	i->rail = -1;
	i->block = d->items[host].block;
	i->level = d->items[host].level + 1;
	return i;
}

void pp_note_group(struct pp_drawing *d, const struct pp_object *hca, int host)
{
	struct pp_item *i = host < 0 ? NULL : group_below(d, host);
	struct ports p = ports_of(d, hca);
	const char *name = hca->name ? hca->name : hca->id;

	if (!i)
		return;
	if (!i->count++)
		i->first = name;
	i->last = name;
	if (lacks_device(hca))
		i->without++;
	else if (p.active < p.n)
		i->down++;
}

static void finish_group(struct pp_drawing *d, struct pp_item *i)
{
	const char *host = d->items[i->parent].title;

	i->title =
		pp_arena_printf(&d->arena, "%u hca%s, no rail", i->count, i->count == 1 ? "" : "s");
	i->subtitle = i->count == 1 ? i->first
				    : pp_arena_printf(&d->arena, "%s ... %s", i->first, i->last);
	if (i->down) {
		note(i, pp_arena_printf(&d->arena, "%u without active port", i->down));
		fault(d, "%u of %u hcas under %s that are no rail have no active port", i->down,
		      i->count, host);
	}
	if (i->without) {
		note(i, pp_arena_printf(&d->arena, "%u without RDMA device", i->without));
		fault(d, "%u of %u hca functions under %s carry no RDMA device", i->without,
		      i->count, host);
	}
}

/* Marks the lines whose port redirects, on the way from @item up. */
static void mark_acs(struct pp_drawing *d, int item, const char *bridge, unsigned int rail)
{
	char bdf[PP_BDF_TEXT], bits[24];
	const struct pp_pci_dev *port;
	struct pp_item *i;

	for (; item >= 0; item = d->items[item].parent) {
		i = &d->items[item];
		if (i->pci < 0 || d->node->pci.dev[i->pci].parent < 0)
			continue;
		port = &d->node->pci.dev[d->node->pci.dev[i->pci].parent];
		(void)pp_bdf_format(&port->bdf, bdf);
		if (strncmp(bridge, bdf, strlen(bdf)) != 0 || i->acs)
			continue;
		(void)pp_acs_bits(port->acs_ctl & PP_ACS_REDIRECT, bits, sizeof(bits));
		i->acs = pp_arena_printf(&d->arena, "ACS %s", bits);
		fault(d, "%s redirects peer traffic to the root complex (ACS %s), on rail %u", bdf,
		      bits, rail);
	}
}

static void note_rail(struct pp_drawing *d, unsigned int n)
{
	struct pp_rail_line *rail = &d->rails[n];
	const struct pp_fact *at = pp_fact_get(rail->pair, PP_F_PAIR_ACS_AT);
	const struct pp_fact *acs = pp_fact_get(rail->pair, PP_F_PAIR_ACS_REDIRECT);
	struct pp_item *gpu = &d->items[rail->gpu];
	char a[160], b[160];

	if (at && at->known)
		for (const char *const *l = at->list; *l; l++) {
			mark_acs(d, rail->gpu, *l, n);
			mark_acs(d, rail->hca, *l, n);
		}
	if (acs && !acs->known)
		unknown(d, "rail %u: whether a bridge redirects peer traffic (%s)", n, acs->why);
	(void)name_of(d, gpu, a, sizeof(a));
	(void)name_of(d, &d->items[rail->hca], b, sizeof(b));
	if (!strcmp(rail->distance, "unknown")) {
		unknown(d, "rail %u: distance from %s to %s", n, a, b);
	} else if (!rail->near) {
		note(gpu, pp_arena_printf(&d->arena, "far rail: %s to %s", rail->distance,
					  d->items[rail->hca].object->name
						  ? d->items[rail->hca].object->name
						  : "hca"));
		fault(d, "rail %u: %s to %s is %s, not below one switch", n, a, b, rail->distance);
	}
	if (pp_fact_is(rail->pair, PP_F_PAIR_TRANSLATED)) {
		note(gpu, "IOMMU translates");
		fault(d, "rail %u: an IOMMU translates between %s and %s", n, a, b);
	}
}

void pp_note_rails(struct pp_drawing *d)
{
	for (unsigned int n = 0; n < d->n_rails; n++)
		note_rail(d, n);
}

/* A GPU without a rail: a fault only where it is known that no hca was chosen for it. */
static void note_lonely(struct pp_drawing *d, struct pp_item *gpu)
{
	const struct pp_object *p = NULL;
	const struct pp_fact *rail;
	bool known = false;
	char name[160];

	(void)name_of(d, gpu, name, sizeof(name));
	while ((p = pp_object_next(&d->node->facts, PP_PAIR, p))) {
		rail = p->parent == gpu->object ? pp_fact_get(p, PP_F_PAIR_RAIL) : NULL;
		known |= rail && rail->known;
		if (rail && !rail->known) {
			unknown(d, "the rail of GPU %s: %s", name, rail->why);
			return;
		}
	}
	if (!known) {
		unknown(d, "the rail of GPU %s: there is no hca that could be looked at", name);
		return;
	}
	note(gpu, "no rail");
	fault(d, "GPU %s has no rail", name);
}

/* One sentence for all GPUs: firmware makes all BAR1 windows alike. */
static void note_small_bar1(struct pp_drawing *d)
{
	unsigned int small = 0, gpus = 0;

	for (unsigned int k = 0; k < d->n; k++) {
		const struct pp_item *i = &d->items[k];

		gpus += i->kind == PP_ITEM_GPU;
		for (unsigned int n = 0; n < i->n_notes; n++)
			small += i->notes[n] == SMALL_BAR1;
	}
	if (small)
		fault(d, "BAR1 of %u of %u GPUs does not cover their memory", small, gpus);
}

void pp_note_node(struct pp_drawing *d)
{
	const unsigned int *count = d->node->facts.count;

	for (unsigned int k = 0; k < d->n; k++) {
		struct pp_item *i = &d->items[k];

		if (i->kind == PP_ITEM_GROUP)
			finish_group(d, i);
		if (i->kind == PP_ITEM_GPU && i->rail < 0)
			note_lonely(d, i);
	}
	note_small_bar1(d);
	if (d->node->pci.why)
		unknown(d, "the PCI tree: %s", d->node->pci.why);
	else if (!count[PP_GPU] && !count[PP_HCA])
		unknown(d, "rails: neither a GPU nor an hca is on the PCI bus");
}
