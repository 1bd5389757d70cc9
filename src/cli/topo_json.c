/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "peerpath.topo/1": all PCI functions, and all unordered pairs of the matrix.
 */
#include <stdio.h>

#include "cli/topo.h"
#include "node/path.h"
#include "base/banned.h"

/* 400 GPUs and NICs have fewer; more is no machine. */
enum { MAX_PAIRS = 1 << 17 };

static void id16(struct pp_json *j, const char *key, uint16_t value)
{
	char text[8];

	(void)snprintf(text, sizeof(text), "0x%04x", value);
	pp_json_str(j, key, text);
}

/* Unknown numbers become null; the kernel's "none" stays -1 where @none allows it. */
static void number(struct pp_json *j, const char *key, int value, int least)
{
	if (value < least)
		pp_json_null(j, key);
	else
		pp_json_i64(j, key, value);
}

static void write_acs(struct pp_json *j, const struct pp_pci_dev *d)
{
	static const char *const states[] = {"unreadable", "absent", "known"};
	char bits[24];

	pp_json_object(j, "acs");
	pp_json_str(j, "state", states[d->acs_state]);
	if (d->acs_state == PP_ACS_KNOWN) {
		pp_json_str(j, "cap", pp_acs_bits(d->acs_cap, bits, sizeof(bits)));
		pp_json_str(j, "ctl", pp_acs_bits(d->acs_ctl, bits, sizeof(bits)));
	}
	pp_json_end_object(j);
}

static void write_function(struct pp_json *j, const struct pp_pci *pci, const struct pp_pci_dev *d)
{
	char text[PP_BDF_TEXT];

	pp_json_object(j, NULL);
	pp_json_str(j, "bdf", pp_bdf_format(&d->bdf, text));
	pp_json_str(j, "path", d->path);
	if (d->class_code)
		(void)snprintf(text, sizeof(text), "0x%06x", d->class_code);
	pp_json_str(j, "class", d->class_code ? text : NULL);
	id16(j, "vendor", d->vendor);
	id16(j, "device", d->device);
	id16(j, "subsystem_vendor", d->subsystem_vendor);
	id16(j, "subsystem_device", d->subsystem_device);
	number(j, "numa_node", d->numa, -1);
	number(j, "iommu_group", d->iommu_group, -1);
	pp_json_str(j, "iommu_type", pp_pci_iommu_type(pci, d));
	pp_json_str(j, "driver", d->driver);
	number(j, "config_bytes", d->config_len, 0);
	write_acs(j, d);
	if (d->ats < 0)
		pp_json_null(j, "ats");
	else
		pp_json_bool(j, "ats", d->ats);
	number(j, "speed_mts", d->speed_mts, 0);
	number(j, "max_speed_mts", d->max_speed_mts, 0);
	number(j, "width", d->width, 0);
	number(j, "max_width", d->max_width, 0);
	pp_json_end_object(j);
}

/* 1, 0, -1 unknown */
static void tristate(struct pp_json *j, const char *key, int value)
{
	if (value < 0)
		pp_json_null(j, key);
	else
		pp_json_bool(j, key, value);
}

static void write_path(struct pp_json *j, const struct pp_pci *pci, const struct pp_path *p)
{
	char text[PP_BDF_TEXT];

	pp_json_str(j, "route", pp_route_name(p->route));
	if (*p->route_why)
		pp_json_str(j, "route_why", p->route_why);
	tristate(j, "translated", p->translated);
	if (*p->translated_why)
		pp_json_str(j, "translated_why", p->translated_why);
	tristate(j, "acs_redirect", p->acs_redirect);
	if (*p->acs_why)
		pp_json_str(j, "acs_why", p->acs_why);
	pp_json_array(j, "acs_redirect_at");
	for (unsigned int i = 0; i < p->n_redirect; i++)
		pp_json_str(j, NULL, pp_bdf_format(&pci->dev[p->redirect[i]].bdf, text));
	pp_json_end_array(j);
	tristate(j, "acs_direct_translated", p->acs_dt);
	if (p->ceiling_mbytes < 0)
		pp_json_null(j, "ceiling_mbytes");
	else
		pp_json_i64(j, "ceiling_mbytes", p->ceiling_mbytes);
	pp_json_str(j, *p->ceiling_at ? "ceiling_at" : "ceiling_why",
		    *p->ceiling_at ? p->ceiling_at : p->ceiling_why);
}

/* Between two NICs only the distance: there are many such pairs, and no data goes that way. */
static void write_pair(struct pp_json *j, const struct pp_topo *t, unsigned int a, unsigned int b)
{
	const struct pp_pci *pci = &t->node->pci;
	int ia = t->members[a].pci, ib = t->members[b].pci;
	bool nics = a >= t->gpus && b < t->gpus + t->nics;
	char text[PP_BDF_TEXT], cell[PP_TOPO_NAME];
	struct pp_path_hints hints;
	struct pp_path path;

	pp_json_object(j, NULL);
	pp_json_str(j, "a", pp_bdf_format(&pci->dev[ia].bdf, text));
	pp_json_str(j, "b", pp_bdf_format(&pci->dev[ib].bdf, text));
	pp_json_str(j, "cell", pp_topo_cell(t, a, b, cell));
	pp_json_str(j, "distance", pp_distance_name(pp_distance(pci, ia, ib)));
	if (*pp_distance_why(pci, ia, ib))
		pp_json_str(j, "distance_why", pp_distance_why(pci, ia, ib));
	if (!nics) {
		hints = pp_path_hints_of(t->node, a < t->gpus ? t->members[a].o : NULL);
		hints.port = t->members[a].port ? t->members[a].port : t->members[b].port;
		pp_path_find(pci, ia, ib, &hints, &path);
		write_path(j, pci, &path);
	}
	pp_json_end_object(j);
}

void pp_topo_json(struct pp_out *o, const struct pp_topo *t)
{
	struct pp_json *j = pp_out_json(o);
	const struct pp_pci *pci = &t->node->pci;
	const struct pp_pci_dev *d;

	if (!j)
		return;
	pp_json_str(j, "pci_why", pci->why);
	pp_json_i64(j, "online_numa_nodes", pci->online_nodes);
	pp_json_u64(j, "functions_unreadable", pci->unreadable);
	pp_json_array(j, "pci");
	pp_pci_foreach (pci, d)
		write_function(j, pci, d);
	pp_json_end_array(j);
	if ((uint64_t)t->n * t->n / 2 > MAX_PAIRS)
		pp_json_str(j, "pairs_why", "too many members: their pairs are left out");
	pp_json_array(j, "pairs");
	for (unsigned int a = 0; a < t->n && (uint64_t)t->n * t->n / 2 <= MAX_PAIRS; a++)
		for (unsigned int b = a + 1; b < t->n; b++)
			write_pair(j, t, a, b);
	pp_json_end_array(j);
}
