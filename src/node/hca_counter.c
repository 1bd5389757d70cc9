/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of a port: a fact "port.counter.<name>" is the file <name> in counters/ or
 * hw_counters/. Which exist depends on the driver, so the directories are listed first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "node/hca.h"
#include "base/banned.h"

enum { VALUE_BYTES = 64 };

static const char PREFIX[] = "port.counter.";

/* Read by ethtool's ioctl (collect_roce.c). */
static const enum pp_fact_id ethtool[] = {
	PP_F_C_RX_DISCARDS, PP_F_C_OUT_PCI_STALL_RD, PP_F_C_OUT_PCI_STALL_WR,
	PP_F_C_RX_PAUSE,    PP_F_C_TX_PAUSE,	     PP_F_C_RX_PRIO_DISCARDS,
};

/* Counters that mean something on RoCE only: not set on InfiniBand unless its driver has them. */
static const enum pp_fact_id roce[] = {
	PP_F_C_ADP_RETRANS, PP_F_C_NP_ECN,	   PP_F_C_NP_CNP,
	PP_F_C_RP_CNP,	    PP_F_C_RP_CNP_IGNORED, PP_F_C_ICRC,
};

static bool is_in(enum pp_fact_id id, const enum pp_fact_id *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] == id)
			return true;
	return false;
}

bool pp_counter_is_ethtool(enum pp_fact_id id)
{
	return is_in(id, ethtool, PP_ARRAY_LEN(ethtool));
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void read_counter(struct pp_hca *h, struct pp_object *port, enum pp_fact_id id,
			 const char *dir, const char *name)
{
	char path[PP_PATH_MAX], text[VALUE_BYTES];
	int64_t value;
	int r = pp_path_join(dir, name, path);

	if (!r)
		r = pp_source_text(h->node->src, path, text, sizeof(text));
	if (!r)
		r = pp_parse_i64(text, 0, INT64_MAX, &value);
	if (!r)
		pp_fact_int(&h->node->facts, port, id, value, path);
	else
		pp_fact_unknown(&h->node->facts, port, id, path, "%s: %s", path,
				r == -EINVAL ? "not a number" : pp_source_why(r));
}

void pp_port_read_counters(struct pp_hca *h, struct pp_object *port, const char *dir, bool ethernet)
{
	static const char *const dirs[] = {"hw_counters", "counters"};
	char path[2][PP_PATH_MAX];
	struct pp_names names[2] = {{0}};
	int error[2], worst = 0;
	const char *name;
	size_t d;

	for (d = 0; d < 2; d++) {
		error[d] = pp_path_join(dir, dirs[d], path[d]);
		if (!error[d])
			error[d] = pp_source_list(h->node->src, path[d], &names[d]);
		if (error[d] && error[d] != -ENOENT)
			worst = error[d];
	}
	for (int id = 0; id < PP_FACTS; id++) {
		if (strncmp(pp_fact_table[id].key, PREFIX, sizeof(PREFIX) - 1) != 0 ||
		    pp_counter_is_ethtool((enum pp_fact_id)id))
			continue;
		name = pp_fact_table[id].key + sizeof(PREFIX) - 1;
		for (d = 0; d < 2; d++)
			if (names[d].n && bsearch(&name, names[d].name, names[d].n,
						  sizeof(*names[d].name), by_name))
				break;
		if (d < 2)
			read_counter(h, port, (enum pp_fact_id)id, path[d], name);
		else if (ethernet || !is_in((enum pp_fact_id)id, roce, PP_ARRAY_LEN(roce)))
			pp_fact_unknown(&h->node->facts, port, (enum pp_fact_id)id, dir, "%s: %s",
					dir,
					worst ? pp_source_why(worst)
					      : "no counter of this name in counters/ or "
						"hw_counters/");
	}
	for (d = 0; d < 2; d++)
		pp_names_done(&names[d]);
}
