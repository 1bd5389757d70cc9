/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes of the near pairs and the rails (the rest is counted), and the links that fall short.
 */
#include "cli/topo.h"
#include "node/path.h"
#include "base/banned.h"

static bool is_shown(const struct pp_object *pair)
{
	const char *d = pp_fact_str_or(pair, PP_F_PAIR_DISTANCE, "");

	return pp_fact_is(pair, PP_F_PAIR_RAIL) || (d[0] == 'P' && d[1] != 'H');
}

static void route_row(struct pp_view *v, const struct pp_object *pair)
{
	pp_out_cell(v->out, pair->parent->id);
	pp_out_cell(v->out, pair->peer->id);
	pp_view_cell(v, pair, PP_F_PAIR_DISTANCE);
	pp_view_cell(v, pair, PP_F_PAIR_ROUTE);
	pp_view_cell(v, pair, PP_F_PAIR_TRANSLATED);
	pp_view_cell(v, pair, PP_F_PAIR_ACS_AT);
	pp_view_cell(v, pair, PP_F_PAIR_CEILING_AT);
}

static void route_rows(struct pp_view *v, const void *arg)
{
	const struct pp_object *pair = NULL;

	(void)arg;
	while ((pair = pp_object_next(&v->node->facts, PP_PAIR, pair)))
		if (is_shown(pair))
			route_row(v, pair);
}

void pp_topo_routes(struct pp_view *v)
{
	static const struct pp_out_column columns[] = {
		{NULL, "GPU", false},	       {NULL, "NIC", false},
		{NULL, "DISTANCE", false},     {NULL, "ROUTE", false},
		{NULL, "TRANSLATED", false},   {NULL, "REDIRECTS AT", true},
		{NULL, "NARROWEST HOP", true},
	};
	static const struct pp_view_table table = {NULL, columns, PP_ARRAY_LEN(columns),
						   3u,	 1u << 6, route_rows};
	const struct pp_object *pair = NULL;
	unsigned int others = 0;

	if (pp_out_is_json(v->out) || !v->node->facts.count[PP_PAIR])
		return;
	pp_out_heading(v->out, "Routes");
	pp_view_table(v, &table, NULL);
	while ((pair = pp_object_next(&v->node->facts, PP_PAIR, pair)))
		others += !is_shown(pair);
	if (others)
		pp_out_para(v->out, 2, "  %u farther pair%s in --json.", others,
			    others == 1 ? " is" : "s are");
}

static const struct pp_fact *known(const struct pp_object *o, enum pp_fact_id id)
{
	const struct pp_fact *fact = pp_fact_get(o, id);

	return fact && fact->known ? fact : NULL;
}

static bool falls_short(const struct pp_object *link)
{
	return pp_fact_is(link, PP_F_LINK_NARROW) || pp_fact_is(link, PP_F_LINK_SLOW) ||
	       pp_fact_is(link, PP_F_LINK_SLOT_LIMITED);
}

static const char *verdict_of(const struct pp_object *link)
{
	if (pp_fact_is(link, PP_F_LINK_NARROW))
		return "fewer lanes than both ends can do";
	if (pp_fact_is(link, PP_F_LINK_SLOW))
		return "slower than both ends can do";
	if (pp_fact_is(link, PP_F_LINK_SLOT_LIMITED))
		return "the slot can do less than the device: no fault of the link";
	return known(link, PP_F_LINK_NARROW) ? "as wide as both ends can do" : "unknown";
}

static void link_row(struct pp_view *v, const struct pp_object *link)
{
	const struct pp_pci *pci = &v->node->pci;
	char above[PP_BDF_TEXT];

	pp_out_cell(v->out, link->id);
	pp_out_cell(v->out, pp_bdf_format(&pci->dev[pci->dev[link->pci].parent].bdf, above));
	pp_view_cell(v, link, PP_F_LINK_SPEED);
	pp_view_cell(v, link, PP_F_LINK_WIDTH);
	pp_view_cell(v, link, PP_F_LINK_SPEED_POSSIBLE);
	pp_view_cell(v, link, PP_F_LINK_WIDTH_POSSIBLE);
	pp_view_cell(v, link, PP_F_LINK_CEILING);
	pp_out_cell(v->out, verdict_of(link));
}

/* Text: those that fall short. JSON: all. */
void pp_topo_links(struct pp_view *v)
{
	static const struct pp_out_column columns[] = {
		{"lower", "LINK", false},
		{"upper", "BELOW", false},
		{"speed_mts", "MT/S", false},
		{"width", "LANES", false},
		{"speed_possible_mts", "POSSIBLE", false},
		{"width_possible", "LANES", false},
		{"ceiling_mbytes", "MB/S", false},
		{"judgement", "", true},
	};
	const struct pp_object *link = NULL;
	unsigned int n = v->node->facts.count[PP_LINK], bad = 0, unread = 0;
	bool json = pp_out_is_json(v->out);

	while ((link = pp_object_next(&v->node->facts, PP_LINK, link))) {
		bad += falls_short(link);
		unread += !known(link, PP_F_LINK_NARROW);
	}
	if (!n && !json)
		return;
	pp_out_heading(v->out, "Links");
	if (bad || json)
		pp_out_table(v->out, "links", columns, PP_ARRAY_LEN(columns));
	for (link = NULL; (link = pp_object_next(&v->node->facts, PP_LINK, link));)
		if (json || falls_short(link))
			link_row(v, link);
	if (bad || json)
		pp_out_table_end(v->out);
	pp_out_para(v->out, 2, "  %u links on the ways of gpus and hcas; %u fall%s short.", n, bad,
		    bad == 1 ? "s" : "");
	if (unread)
		pp_out_para(v->out, 2, "  The width of %u of them is unknown.", unread);
}
