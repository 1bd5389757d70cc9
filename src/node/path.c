/* SPDX-License-Identifier: Apache-2.0 */
#include "node/path.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "node/fact.h"
#include "base/banned.h"

static const char *const routes[] = {
	[PP_ROUTE_SWITCH] = "switch",
	[PP_ROUTE_ROOT_COMPLEX] = "root-complex",
	[PP_ROUTE_CROSS_SOCKET] = "cross-socket",
	[PP_ROUTE_C2C] = "c2c",
	[PP_ROUTE_UNKNOWN] = "unknown",
};

const char *pp_route_name(enum pp_route r)
{
	return routes[r];
}

const char *pp_hop_text(const struct pp_pci *pci, int lower, char *text, size_t size)
{
	struct pp_link link = pp_link_of(pci, lower);
	char id[PP_BDF_TEXT];

	(void)snprintf(text, size, "%s, %s%g GT/s x%d", pp_bdf_format(&pci->dev[lower].bdf, id),
		       link.allowed_speed_mts > link.speed_mts ? "possible " : "",
		       link.allowed_speed_mts / 1000.0, link.allowed_width);
	return text;
}

/* Requests from below a downstream port can be turned up there; a root port is the last one. */
static void look_at_port(const struct pp_pci *pci, int port, struct pp_path *p)
{
	const struct pp_pci_dev *d = &pci->dev[port];
	int kind = pp_pci_port_kind(pci, port);
	char id[PP_BDF_TEXT];

	if (kind != PP_PORT_DOWNSTREAM && kind != PP_PORT_ROOT)
		return;
	if (d->acs_state == PP_ACS_UNREADABLE && p->acs_dt == 1)
		p->acs_dt = -1;
	if (d->acs_state == PP_ACS_UNREADABLE && p->acs_redirect == 0) {
		p->acs_redirect = -1;
		(void)snprintf(p->acs_why, sizeof(p->acs_why),
			       "ACS bits of %s could not be read: %d bytes of its config space are "
			       "visible",
			       pp_bdf_format(&d->bdf, id), d->config_len < 0 ? 0 : d->config_len);
	}
	if (d->acs_state != PP_ACS_KNOWN || !(d->acs_ctl & PP_ACS_REDIRECT))
		return;
	p->acs_redirect = 1;
	if (!(d->acs_ctl & PP_ACS_DT))
		p->acs_dt = 0;
	if (p->n_redirect < PP_ARRAY_LEN(p->redirect))
		p->redirect[p->n_redirect++] = port;
}

/* Ports between @i and @common, or up to the root port where there is no common bridge. */
static void look_at_side(const struct pp_pci *pci, int i, struct pp_path *p)
{
	if (i == p->common)
		return;
	for (int up = pci->dev[i].parent; up >= 0 && up != p->common; up = pci->dev[up].parent)
		look_at_port(pci, up, p);
}

/* True when some port above @i shows its ACS bits. */
static bool shows_acs(const struct pp_pci *pci, int i)
{
	for (int up = pci->dev[i].parent; up >= 0; up = pci->dev[up].parent)
		if (pci->dev[up].acs_state == PP_ACS_KNOWN)
			return true;
	return false;
}

/*
 * A hypervisor that flattens the tree hides the bridges that the traffic takes: that none redirects
 * is then no observation. Bits of ports that are shown are judged as they are.
 */
static void doubt_flat_guest(const struct pp_pci *pci, int a, int b,
			     const struct pp_path_hints *hints, struct pp_path *p)
{
	if (!hints->guest || p->acs_redirect != 0 || p->common >= 0 ||
	    (shows_acs(pci, a) && shows_acs(pci, b)))
		return;
	p->acs_redirect = -1;
	p->acs_dt = -1;
	(void)snprintf(p->acs_why, sizeof(p->acs_why), "%s",
		       hints->guest > 0
			       ? "a virtual machine: the bridges of the host do not show"
			       : "no port shows ACS bits, and this may be a virtual machine, where "
				 "the bridges of the host do not show");
}

static void find_acs(const struct pp_pci *pci, int a, int b, const struct pp_path_hints *hints,
		     struct pp_path *p)
{
	p->acs_redirect = p->distance == PP_DISTANCE_UNKNOWN ? -1 : 0;
	p->acs_dt = 1;
	if (p->acs_redirect < 0) {
		(void)snprintf(p->acs_why, sizeof(p->acs_why), "%s", pp_distance_why(pci, a, b));
		p->acs_dt = -1;
		return;
	}
	look_at_side(pci, a, p);
	look_at_side(pci, b, p);
	doubt_flat_guest(pci, a, b, hints, p);
	if (p->acs_redirect == 1)
		p->acs_why[0] = '\0';
}

/* -1 unknown */
static int8_t translates(const char *type)
{
	static const struct {
		const char *type;
		int8_t translates;
	} types[] = {{"none", 0},   {"identity", 0},  {"DMA", 1},
		     {"DMA-FQ", 1}, {"unmanaged", 1}, {"blocked", 1}};

	for (size_t i = 0; i < PP_ARRAY_LEN(types) && type; i++)
		if (!strcmp(type, types[i].type))
			return types[i].translates;
	return -1;
}

static void find_translation(const struct pp_pci *pci, int a, int b,
			     const struct pp_path_hints *hints, struct pp_path *p)
{
	const int ends[] = {a, b};
	const struct pp_pci_dev *d;
	char id[PP_BDF_TEXT];
	int8_t one;

	p->translated = 0;
	for (size_t i = 0; i < PP_ARRAY_LEN(ends); i++) {
		d = &pci->dev[ends[i]];
		one = translates(pp_pci_iommu_type(pci, d));
		if (one == 1) {
			p->translated = 1;
			p->translated_why[0] = '\0';
			return;
		}
		if (one < 0 && p->translated == 0) {
			p->translated = -1;
			(void)snprintf(p->translated_why, sizeof(p->translated_why), "%s: %s",
				       pp_bdf_format(&d->bdf, id), pp_pci_iommu_why(pci, d));
		}
	}
	if (p->translated == 0 && hints->guest && !pci->n_iommu_groups) {
		p->translated = -1;
		(void)snprintf(p->translated_why, sizeof(p->translated_why), "%s",
			       hints->guest > 0 ? "a virtual machine without an IOMMU of its own: "
						  "the host's does not show"
						: "no IOMMU group, but this may be a virtual "
						  "machine, where the host's IOMMU does not show");
	}
}

static enum pp_route unknown(struct pp_path *p, const char *why)
{
	(void)snprintf(p->route_why, sizeof(p->route_why), "%s", why);
	return PP_ROUTE_UNKNOWN;
}

/* Both are below one bridge. */
static enum pp_route route_below(const struct pp_pci *pci, int a, int b, struct pp_path *p)
{
	int kind = pp_pci_port_kind(pci, p->common);

	if (a != p->common && b != p->common &&
	    (kind == PP_PORT_ROOT || kind == PP_PORT_DOWNSTREAM))
		return unknown(p, "functions of one device: whether they reach each other inside "
				  "it does not show");
	if (p->acs_redirect < 0)
		return unknown(p, p->acs_why);
	if (p->acs_redirect == 0)
		return PP_ROUTE_SWITCH;
	if (p->acs_dt == 1 && (pci->dev[a].ats == 1 || pci->dev[b].ats == 1))
		return unknown(p, "ACS redirects untranslated requests only (DT), and ATS is on: "
				  "it depends on the request");
	return PP_ROUTE_ROOT_COMPLEX;
}

/* They meet above all bridges: sockets decide, since NUMA nodes may be parts of a socket. */
static enum pp_route route_above(const struct pp_pci *pci, int a, int b,
				 const struct pp_path_hints *hints, struct pp_path *p)
{
	int sa = pp_pci_package(pci, pci->dev[a].numa), sb = pp_pci_package(pci, pci->dev[b].numa);
	bool one_bridge = pci->dev[a].host_bridge == pci->dev[b].host_bridge;

	if (!one_bridge && sa >= 0 && sb >= 0 && sa != sb)
		return PP_ROUTE_CROSS_SOCKET;
	if (!one_bridge && (sa < 0 || sb < 0))
		return unknown(p, "other host bridges, and the socket of one of them is not known");
	return hints->c2c ? PP_ROUTE_C2C : PP_ROUTE_ROOT_COMPLEX;
}

static void add_hops(const struct pp_pci *pci, int from, int to, struct pp_path *p)
{
	for (int i = from; i >= 0 && i != to; i = pci->dev[i].parent)
		if (pp_link_above(pci, i) && p->n_hops < PP_ARRAY_LEN(p->hops))
			p->hops[p->n_hops++] = i;
}

static void find_hops(const struct pp_pci *pci, int a, int b, struct pp_path *p)
{
	/* Over C2C the bytes leave the GPU beside its PCI Express link. */
	if (p->route != PP_ROUTE_C2C)
		add_hops(pci, a, p->common, p);
	add_hops(pci, b, p->common, p);
	/* Redirected: up to the root complex and back by the same links. */
	if (p->common >= 0 && p->route == PP_ROUTE_ROOT_COMPLEX)
		add_hops(pci, p->common, -1, p);
}

/* The port stands at the end of the way: it bounds what is known of the links. */
static void look_at_rate(const struct pp_object *port, struct pp_path *p)
{
	int64_t mbps = port ? pp_fact_int_or(port, PP_F_PORT_RATE, -1) : -1;

	if (mbps <= 0 || mbps / 8 >= p->ceiling_mbytes)
		return;
	p->ceiling_mbytes = mbps / 8;
	(void)snprintf(p->ceiling_at, sizeof(p->ceiling_at), "port %.48s, %g Gb/s", port->id,
		       (double)mbps / 1000);
}

static void find_ceiling(const struct pp_pci *pci, const struct pp_path_hints *hints,
			 struct pp_path *p)
{
	int narrowest = -1;
	char below[PP_BDF_TEXT];
	struct pp_link link;
	double least = 0;

	p->ceiling_mbytes = -1;
	for (unsigned int i = 0; i < p->n_hops; i++) {
		link = pp_link_of(pci, p->hops[i]);
		if (link.gb_per_s <= 0) {
			(void)snprintf(p->ceiling_why, sizeof(p->ceiling_why), "link above %s: %s",
				       pp_bdf_format(&pci->dev[link.lower].bdf, below), link.why);
			return;
		}
		if (narrowest < 0 || link.gb_per_s < least) {
			narrowest = link.lower;
			least = link.gb_per_s;
		}
	}
	if (narrowest < 0) {
		(void)snprintf(p->ceiling_why, sizeof(p->ceiling_why),
			       "no PCI Express link between the two");
		return;
	}
	p->ceiling_mbytes = (int64_t)(least * 1000);
	(void)pp_hop_text(pci, narrowest, p->ceiling_at, sizeof(p->ceiling_at));
	look_at_rate(hints->port, p);
}

void pp_path_find(const struct pp_pci *pci, int a, int b, const struct pp_path_hints *hints,
		  struct pp_path *ret)
{
	*ret = (struct pp_path){.distance = pp_distance(pci, a, b), .common = -1};
	find_translation(pci, a, b, hints, ret);
	if (ret->distance < PP_DISTANCE_PHB)
		ret->common = pp_pci_common(pci, a, b);
	find_acs(pci, a, b, hints, ret);
	if (ret->distance == PP_DISTANCE_UNKNOWN)
		ret->route = unknown(ret, pp_distance_why(pci, a, b));
	else if (ret->common >= 0)
		ret->route = route_below(pci, a, b, ret);
	else
		ret->route = route_above(pci, a, b, hints, ret);
	if (ret->distance != PP_DISTANCE_UNKNOWN)
		find_hops(pci, a, b, ret);
	find_ceiling(pci, hints, ret);
	if (ret->distance == PP_DISTANCE_UNKNOWN)
		(void)snprintf(ret->ceiling_why, sizeof(ret->ceiling_why), "%s",
			       pp_distance_why(pci, a, b));
}
