/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rails of a GPU, examined for gate 1: what each way of registration needs, and what a probe
 * has already found refused.
 */
#include "judge/gate_exam.h"

#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

static const char *state_of(struct pp_exam *e, const struct pp_object *pair,
			    const struct pp_condition *c)
{
	const struct pp_object *holder =
		pp_condition_holder(e->facts, pair, pp_fact_table[c->fact].kind);
	char text[256];

	return pp_arena_printf(e->arena, "%s is %s", pp_fact_table[c->fact].key,
			       pp_fact_text(pp_fact_get(holder, c->fact), text, sizeof(text)));
}

static void open_test(struct pp_exam *e, const struct pp_object *pair, const struct pp_condition *c)
{
	const struct pp_object *holder =
		pp_condition_holder(e->facts, pair, pp_fact_table[c->fact].kind);
	const struct pp_fact *fact = pp_fact_get(holder, c->fact);
	char text[128];

	e->probe_helps = e->probe_helps || (fact && fact->known);
	if (fact && fact->known)
		pp_missing_add(&e->missing, "%s of %s is %s: a probe decides (check --probe)",
			       pp_fact_table[c->fact].key, holder->id,
			       pp_fact_text(fact, text, sizeof(text)));
	else
		pp_missing_fact(&e->missing, holder, c->fact);
}

bool pp_exam_of_process(enum pp_fact_id id)
{
	static const enum pp_fact_id ids[] = {PP_F_HCA_UVERBS_ACCESS, PP_F_HCA_PROVIDER,
					      PP_F_HCA_PROBE_HOST,    PP_F_DEV_INFINIBAND,
					      PP_F_DEV_NVIDIA,	      PP_F_RDMA_NETNS_MODE};

	for (size_t i = 0; i < PP_ARRAY_LEN(ids); i++)
		if (ids[i] == id)
			return true;
	return false;
}

static bool refused(const struct pp_fact *probe)
{
	return probe && probe->known && !probe->i64;
}

/* False when the GPU's memory registers with the hca in no way at all. */
static bool gpu_probe_allows(struct pp_exam *e, const struct pp_object *pair)
{
	bool dmabuf = refused(pp_fact_get(pair, PP_F_PAIR_PROBE_DMABUF));

	if (dmabuf && refused(pp_fact_get(pair, PP_F_PAIR_PROBE_PEERMEM))) {
		e->of_process = true;
		e->refuted = pp_arena_printf(
			e->arena, "rail %s: the probe could register GPU memory in no way",
			pair->id);
		return false;
	}
	if (dmabuf)
		e->lessened = pp_arena_printf(
			e->arena, "the probe of rail %s was refused GPU memory by DMA-BUF",
			pair->id);
	return true;
}

/* False when a probe of the rail's hca was refused what every way needs. */
static bool probe_allows(struct pp_exam *e, const struct pp_object *pair)
{
	const struct pp_fact *host = pp_fact_get(pair->peer, PP_F_HCA_PROBE_HOST);
	const struct pp_fact *dmabuf = pp_fact_get(pair->peer, PP_F_HCA_PROBE_DMABUF);

	if (dmabuf && dmabuf->known && !dmabuf->i64)
		e->lessened = pp_arena_printf(e->arena,
					      "the probe of %s was refused DMA-BUF: not supported "
					      "by its provider library or driver",
					      pair->peer->id);
	if (!host || !host->known || host->i64)
		return gpu_probe_allows(e, pair);
	e->of_process = true;
	e->refuted = pp_arena_printf(e->arena,
				     "rail %s: the probe of %s was refused one page of host memory",
				     pair->id, pair->peer->id);
	return false;
}

/* What an hca needs in any case, and one way at least. */
static enum pp_truth examine_rail(struct pp_exam *e, const struct pp_object *pair)
{
	const struct pp_condition *why[PP_WAYS];
	enum pp_truth truth[PP_WAYS];
	bool efa = !strcmp(pp_fact_str_or(pair->peer, PP_F_HCA_DRIVER, ""), "efa");

	if (!probe_allows(e, pair))
		return PP_FALSE;
	for (unsigned int way = 0; way < PP_WAYS; way++)
		truth[way] = pp_way_test(e->tests, (enum pp_way)way, e->facts, pair, &why[way]);
	/* What was done is possible. */
	if (pp_fact_is(pair, PP_F_PAIR_PROBE_DMABUF))
		truth[PP_WAY_DMABUF] = PP_TRUE;
	if (pp_fact_is(pair, PP_F_PAIR_PROBE_PEERMEM))
		truth[PP_WAY_PEERMEM] = PP_TRUE;
	/* EFA registers GPU memory without either, by a module of its own. */
	if (efa && truth[PP_WAY_PEERMEM] == PP_FALSE)
		truth[PP_WAY_PEERMEM] = PP_OPEN;
	if (truth[PP_WAY_NEEDED] == PP_FALSE) {
		e->of_process = pp_exam_of_process(why[PP_WAY_NEEDED]->fact);
		e->refuted = pp_arena_printf(e->arena, "rail %s: %s", pair->id,
					     state_of(e, pair, why[PP_WAY_NEEDED]));
		return PP_FALSE;
	}
	if (truth[PP_WAY_DMABUF] == PP_FALSE && truth[PP_WAY_PEERMEM] == PP_FALSE) {
		e->refuted = pp_arena_printf(e->arena,
					     "rail %s: no way to register GPU memory: %s, and %s",
					     pair->id, state_of(e, pair, why[PP_WAY_DMABUF]),
					     state_of(e, pair, why[PP_WAY_PEERMEM]));
		return PP_FALSE;
	}
	if (truth[PP_WAY_DMABUF] != PP_TRUE && truth[PP_WAY_PEERMEM] != PP_TRUE) {
		enum pp_way open = truth[PP_WAY_DMABUF] == PP_OPEN ? PP_WAY_DMABUF : PP_WAY_PEERMEM;

		if (why[open] && !(efa && open == PP_WAY_PEERMEM))
			open_test(e, pair, why[open]);
		else
			pp_missing_add(&e->missing,
				       "whether the EFA driver registers GPU memory by itself");
		return PP_OPEN;
	}
	if (truth[PP_WAY_NEEDED] == PP_OPEN) {
		open_test(e, pair, why[PP_WAY_NEEDED]);
		return PP_OPEN;
	}
	e->by_way[PP_WAY_DMABUF] += truth[PP_WAY_DMABUF] == PP_TRUE;
	e->by_way[PP_WAY_PEERMEM] += truth[PP_WAY_PEERMEM] == PP_TRUE;
	return PP_TRUE;
}

static bool is_near(const struct pp_object *pair)
{
	const char *distance = pp_fact_str_or(pair, PP_F_PAIR_DISTANCE, "");

	return !strcmp(distance, "PIX") || !strcmp(distance, "PXB");
}

void pp_exam_gpu(struct pp_exam *e, const struct pp_object *gpu)
{
	const struct pp_object *pair = NULL;
	const char *refuted = e->refuted;
	bool any = false, good = false, near = false;

	while ((pair = pp_object_next(e->facts, PP_PAIR, pair))) {
		if (pair->parent != gpu || !pp_fact_is(pair, PP_F_PAIR_RAIL))
			continue;
		any = true;
		if (examine_rail(e, pair) != PP_TRUE)
			continue;
		good = true;
		near = near || is_near(pair);
	}
	if (good)
		e->refuted = refuted; /* one good rail is enough */
	e->good += good;
	e->near += near;
	if (!any && e->facts->count[PP_HCA])
		pp_missing_add(&e->missing, "%s has no rail", gpu->id);
}
