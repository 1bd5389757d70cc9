/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/run_merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

/* Appends what a list does not have yet. */
static void list(char *to, size_t size, const char *what, const char *between)
{
	size_t len = strlen(to);

	if (*what && !strstr(to, what))
		(void)snprintf(to + len, size - len, "%s%s", len ? between : "", what);
}

static void add_registered(struct pp_nccl_run_registered *to,
			   const struct pp_nccl_run_registered *from)
{
	uint64_t seen = to->gpu_unknown;

	for (unsigned int i = 0; i < PP_OBSERVED_WAYS; i++) {
		to->made[i] += from->made[i];
		seen += to->made[i];
	}
	to->gpu_unknown += from->gpu_unknown;
	/* One that saw something is enough to know something. */
	if (!*from->why || seen + from->gpu_unknown)
		to->why[0] = '\0';
}

/* Has this one looked at the whole node? Its counters ran. */
static bool is_wide(const struct pp_nccl_run_node *n)
{
	return n->traffic.window > 0;
}

static void take_wide(struct pp_nccl_run_node *to, const struct pp_nccl_run_node *from)
{
	to->traffic = from->traffic;
	to->kernel = from->kernel;
	to->peermem = from->peermem;
	to->peermem_known = from->peermem_known;
	to->peermem_moved = from->peermem_moved;
	if (*from->expected_hca) {
		memcpy(to->expected_hca, from->expected_hca, sizeof(to->expected_hca));
		to->expected_port = from->expected_port;
	}
}

static void merge_library(struct pp_nccl_run_node *to, const struct pp_nccl_run_node *from)
{
	bool same = !strcmp(to->mapped, from->mapped);

	if (!*to->mapped)
		memcpy(to->mapped, from->mapped, sizeof(to->mapped));
	else if (*from->mapped && !same)
		to->n_mapped += from->n_mapped;
	if (to->n_mapped < from->n_mapped)
		to->n_mapped = from->n_mapped;
}

static void merge_node(struct pp_nccl_run_node *to, const struct pp_nccl_run_node *from)
{
	bool wide = is_wide(from) && !is_wide(to);

	to->ranks += from->ranks;
	to->status = to->status ? to->status : from->status;
	to->timed_out |= from->timed_out;
	to->interrupted |= from->interrupted;
	list(to->died, sizeof(to->died), from->died, "; ");
	to->cpu_seconds += from->cpu_seconds;
	if (wide)
		take_wide(to, from);
	merge_library(to, from);
	add_registered(&to->library, &from->library);
	pp_observed_merge(&to->observed, &from->observed);
	to->was_observed |= from->was_observed;
	to->log_bytes += from->log_bytes;
	to->log_dropped += from->log_dropped;
	to->simulated |= from->simulated;
}

static struct pp_nccl_run_node *find(const struct pp_nccl_run *r, const char *host)
{
	for (uint32_t i = 0; i < r->n_nodes; i++)
		if (!strcmp(r->node[i].host, host))
			return &r->node[i];
	return NULL;
}

static int add_node(struct pp_nccl_run *r, const struct pp_nccl_run_node *from)
{
	struct pp_nccl_run_node *grown;

	if (r->n_nodes == PP_NCCL_RUN_NODES)
		return -E2BIG;
	grown = realloc(r->node, (r->n_nodes + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->node = grown;
	r->node[r->n_nodes++] = *from;
	return 0;
}

/* Added by us with a place of each process's own: then the value says nothing. */
static bool alike(const struct pp_nccl_run_setting *a, const struct pp_nccl_run_setting *b)
{
	return a->from == b->from && !strcmp(a->name, b->name) &&
	       (a->from == PP_NCCL_FROM_LOGGING || !strcmp(a->value, b->value));
}

/* @known: the host is one of those that are counted already. */
static void merge_setting(struct pp_nccl_run *into, const struct pp_nccl_run_setting *s, bool known)
{
	for (uint32_t i = 0; i < into->n_settings; i++) {
		if (!alike(&into->setting[i], s))
			continue;
		into->setting[i].nodes += !known;
		return;
	}
	if (into->n_settings < PP_NCCL_RUN_SETTINGS)
		into->setting[into->n_settings++] = *s;
}

int pp_nccl_run_merge(struct pp_nccl_run *into, const struct pp_nccl_run *from)
{
	bool known = false;
	int r = 0;

	for (uint32_t i = 0; i < from->n_nodes && !r; i++) {
		struct pp_nccl_run_node *n = find(into, from->node[i].host);

		known = n != NULL;
		if (n)
			merge_node(n, &from->node[i]);
		else
			r = add_node(into, &from->node[i]);
	}
	if (r)
		return r;
	for (uint32_t i = 0; i < from->n_settings; i++)
		merge_setting(into, &from->setting[i], known);
	list(into->library, sizeof(into->library), from->library, ", ");
	list(into->library_version, sizeof(into->library_version), from->library_version, ", ");
	if (from->started && (!into->started || from->started < into->started))
		into->started = from->started;
	if (from->took > into->took)
		into->took = from->took;
	into->simulated |= from->simulated;
	return 0;
}
