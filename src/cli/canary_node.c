/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/canary.h"
#include "base/banned.h"

enum { VALUE = 512 };

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Firmware of every hca, sorted, without repeats: which of them has it does not matter. */
static const char *firmware(struct pp_arena *arena, const struct pp_node *node)
{
	unsigned int count = node->facts.count[PP_HCA], n = 0;
	const char **all = pp_arena_array(arena, count ? count : 1, sizeof(*all));
	const char *text = NULL;
	struct pp_object *o = NULL;

	while (all && n < count && (o = pp_object_next(&node->facts, PP_HCA, o)))
		all[n++] = pp_fact_str_or(o, PP_F_HCA_FW, "unknown");
	if (n)
		qsort(all, n, sizeof(*all), by_text);
	for (unsigned int i = 0; i < n; i++)
		if (!i || strcmp(all[i], all[i - 1]) != 0)
			text = text ? pp_arena_printf(arena, "%s, %s", text, all[i])
				    : pp_arena_str(arena, all[i]);
	return text;
}

static const char *short_name(char *name, size_t size)
{
	if (gethostname(name, size))
		return "unknown";
	name[size - 1] = '\0';
	name[strcspn(name, ".")] = '\0';
	return name;
}

int pp_canary_node(struct pp_trial *t, const struct pp_node *node)
{
	struct pp_trial_node *n = pp_arena_alloc(&t->arena, sizeof(*n));
	char value[VALUE], name[HOST_NAME_MAX + 1];

	if (!n)
		return -ENOMEM;
	t->node = n;
	t->n_nodes = 1;
	n->id = pp_arena_str(&t->arena, short_name(name, sizeof(name)));
	n->topology_class = pp_fact_str_or(node->self, PP_F_TOPOLOGY_CLASS, NULL);
	n->simulated = pp_node_simulated(node) != NULL;
	for (const enum pp_fact_id *id = pp_software_tuple; *id != PP_FACTS; id++) {
		const struct pp_fact *f = pp_fact_get(node->self, *id);

		if (n->n_facts == PP_TRIAL_FACTS - 1)
			return -E2BIG;
		n->fact[n->n_facts++] = (struct pp_trial_fact){
			pp_fact_table[*id].key,
			f && f->known
				? pp_arena_str(&t->arena, pp_fact_text(f, value, sizeof(value)))
				: NULL};
	}
	n->fact[n->n_facts++] =
		(struct pp_trial_fact){pp_fact_table[PP_F_HCA_FW].key, firmware(&t->arena, node)};
	return t->arena.failed ? -ENOMEM : 0;
}
