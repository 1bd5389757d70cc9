/* SPDX-License-Identifier: Apache-2.0 */
#include "node/brief.h"

#include <string.h>

#include "base/banned.h"

const enum pp_fact_id pp_brief_facts[] = {
	PP_F_SOFTWARE_FINGERPRINT,
	PP_F_TOPOLOGY_CLASS,
	PP_F_LIMIT_MEMLOCK,
	PP_F_GPU_UUID,
	PP_F_GPU_NAME,
	PP_F_GPU_VBIOS,
	PP_F_GPU_BAR1_TOTAL,
	PP_F_GPU_IOMMU,
	PP_F_HCA_NODE_GUID,
	PP_F_HCA_FW,
	PP_F_HCA_BOARD,
	PP_F_HCA_IOMMU,
	PP_F_PORT_STATE,
	PP_F_PORT_RATE,
	PP_F_PORT_LINK,
	PP_F_LINK_SPEED,
	PP_F_LINK_WIDTH,
	PP_F_PAIR_RAIL,
	PP_F_PAIR_DISTANCE,
	PP_F_PAIR_ROUTE,
	PP_F_PAIR_ACS_REDIRECT,
	PP_FACTS,
};

bool pp_brief_holds(const char *key)
{
	const enum pp_fact_id *const lists[] = {pp_brief_facts, pp_software_tuple};

	for (size_t i = 0; i < PP_ARRAY_LEN(lists); i++)
		for (const enum pp_fact_id *id = lists[i]; *id != PP_FACTS; id++)
			if (!strcmp(pp_fact_table[*id].key, key))
				return true;
	return false;
}

static void write_fact(struct pp_json *j, const struct pp_object *o, enum pp_fact_id id)
{
	const struct pp_fact *f = pp_fact_get(o, id);
	char text[512];

	if (pp_fact_table[id].kind != o->kind || !f || !f->known)
		return;
	pp_json_object(j, NULL);
	pp_json_str(j, "fact", pp_fact_table[id].key);
	pp_json_str(j, "of", o->id);
	pp_json_str(j, "value", pp_fact_text(f, text, sizeof(text)));
	pp_json_end_object(j);
}

void pp_brief_write(struct pp_json *j, const struct pp_node *n)
{
	char host[256];
	const struct pp_object *o;
	bool known = !pp_source_text(n->src, "/proc/sys/kernel/hostname", host, sizeof(host));

	pp_json_object(j, "node");
	pp_json_str(j, "host", known && *host ? host : NULL);
	pp_json_array(j, "facts");
	pp_objects_foreach (&n->facts, o) {
		if (o->simulated || (o->kind == PP_PAIR && !pp_fact_is(o, PP_F_PAIR_RAIL)))
			continue;
		for (const enum pp_fact_id *id = pp_software_tuple; *id != PP_FACTS; id++)
			write_fact(j, o, *id);
		for (const enum pp_fact_id *id = pp_brief_facts; *id != PP_FACTS; id++)
			write_fact(j, o, *id);
	}
	pp_json_end_array(j);
	pp_json_end_object(j);
}
