/* SPDX-License-Identifier: Apache-2.0 */
#include "node/link.h"

#include "base/banned.h"

enum { QEMU = 0x1b36, TEXAS = 0x104c, XIO3130_UP = 0x8232, XIO3130_DOWN = 0x8233 };

static const char EMULATED[] = "an end is a hypervisor's port: its numbers mean nothing";
static const char UNREAD[] = "speed or width could not be read at both ends";
static const char IDLE[] = "below its possible speed, as an idle GPU is by design: look under load";

int pp_pci_port_kind(const struct pp_pci *pci, int i)
{
	const struct pp_pci_dev *d = &pci->dev[i];
	int above;

	if (d->port_type >= 0)
		return d->port_type;
	if (d->parent < 0)
		return PP_PORT_ROOT;
	above = pp_pci_port_kind(pci, d->parent);
	switch (above) {
	case PP_PORT_ROOT:
	case PP_PORT_DOWNSTREAM:
		return PP_PORT_UPSTREAM;
	case PP_PORT_UPSTREAM:
		return PP_PORT_DOWNSTREAM;
	default:
		return PP_PORT_CONVENTIONAL;
	}
}

bool pp_link_above(const struct pp_pci *pci, int i)
{
	int kind;

	if (i < 0 || pci->dev[i].parent < 0 || pci->dev[i].port_type == PP_PORT_CONVENTIONAL)
		return false;
	kind = pp_pci_port_kind(pci, pci->dev[i].parent);
	return kind == PP_PORT_ROOT || kind == PP_PORT_DOWNSTREAM || kind == PP_PORT_FROM_PCI;
}

static bool is_emulated(const struct pp_pci_dev *d)
{
	return d->vendor == QEMU ||
	       (d->vendor == TEXAS && (d->device == XIO3130_UP || d->device == XIO3130_DOWN));
}

/* -1 is unknown, and unknown stays unknown: the other end's number is no substitute. */
static int least(int a, int b)
{
	return a < 0 || b < 0 ? -1 : a < b ? a : b;
}

/* A function may show more than its link: one that is not trained through, or in a recording. */
static int at_most(int now, int possible)
{
	return possible >= 0 && possible < now ? possible : now;
}

static int8_t below(int now, int possible)
{
	return now < 0 || possible < 0 ? -1 : now < possible;
}

static int8_t either(int8_t a, int8_t b)
{
	return a == 1 || b == 1 ? 1 : a < 0 || b < 0 ? -1 : 0;
}

struct pp_link pp_link_of(const struct pp_pci *pci, int lower)
{
	const struct pp_pci_dev *up = &pci->dev[pci->dev[lower].parent], *d = &pci->dev[lower];
	struct pp_link link = {.lower = lower,
			       .upper = pci->dev[lower].parent,
			       .speed_mts = -1,
			       .width = -1,
			       .possible_speed_mts = -1,
			       .possible_width = -1,
			       .allowed_speed_mts = -1,
			       .allowed_width = -1,
			       .narrow = -1,
			       .slow = -1,
			       .slot_limited = -1};

	/* A VF has no link registers of its own. */
	if (d->is_virtual > 0 && d->physfn >= 0)
		d = &pci->dev[d->physfn];
	if (is_emulated(d) || is_emulated(up)) {
		link.why = link.slow_why = EMULATED;
		return link;
	}
	link.speed_mts = d->speed_mts > 0 ? d->speed_mts : up->speed_mts;
	link.width = d->width > 0 ? d->width : up->width;
	link.possible_speed_mts = least(d->max_speed_mts, up->max_speed_mts);
	link.possible_width = least(d->max_width, up->max_width);
	link.narrow = below(link.width, link.possible_width);
	link.slow = below(link.speed_mts, link.possible_speed_mts);
	link.slot_limited = either(below(up->max_speed_mts, d->max_speed_mts),
				   below(up->max_width, d->max_width));
	link.allowed_speed_mts = pp_pci_is_gpu(d)
					 ? link.possible_speed_mts
					 : at_most(link.speed_mts, link.possible_speed_mts);
	link.allowed_width = at_most(link.width, link.possible_width);
	link.gb_per_s = pp_pci_bandwidth(link.allowed_speed_mts, link.allowed_width);
	if (link.narrow < 0 || link.slow < 0 || link.slot_limited < 0 || link.gb_per_s <= 0)
		link.why = link.slow_why = UNREAD;
	if (link.slow == 1 && pp_pci_is_gpu(d)) {
		link.slow = -1;
		link.slow_why = IDLE;
	}
	return link;
}
