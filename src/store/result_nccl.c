/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath.nccl_run/1: a job as its user runs it beside the same with GPUDirect RDMA off (control
 * A), as the gate has judged them.
 */
#include "store/result_read.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/banned.h"

enum { RUNS = 16 };

static const json_t *arm(const json_t *runs, const char *name)
{
	const json_t *one;
	const char *is;
	size_t i;

	json_array_foreach(runs, i, one)
	{
		is = json_string_value(json_object_get(one, "arm"));
		if (is && !strcmp(is, name))
			return one;
	}
	return NULL;
}

static void add(struct pp_reading *in, const json_t *gate, const struct pp_result_gain *from)
{
	const char *claim = pp_reading_text(in, gate, "claim_gdr");
	const char *way = pp_reading_text(in, gate, "mechanism");
	struct pp_result_gain *g;

	if (!isfinite(from->ratio) && !isfinite(from->with))
		return;
	g = pp_reading_add_gain(in);
	if (!g)
		return;
	*g = *from;
	g->way = way ? way : "undetermined";
	g->against = "GDR off";
	g->proven = claim && !strcmp(claim, "proven");
	if (!isfinite(g->ratio) && g->without > 0)
		g->ratio = g->with / g->without;
}

void pp_result_nccl_gain(struct pp_reading *in, const json_t *gate, const json_t *runs)
{
	const json_t *gain = json_object_get(gate, "gain");
	const json_t *on = json_object_get(arm(runs, "unchanged"), "speed");
	const json_t *off = json_object_get(arm(runs, "control-A"), "speed");
	const char *collective = pp_reading_text(in, on, "collective");
	struct pp_result_gain g = {.unit = "GB/s", .higher_is_better = true};

	if (!json_is_object(gain))
		return;
	off = off ? off : json_object_get(arm(runs, "A"), "speed");
	collective = collective ? collective : "collective";
	g.what = pp_reading_printf(in, "nccl %s busbw", collective);
	g.size_bytes = pp_reading_count(in, on, "large_bytes");
	g.with = pp_reading_number(in, on, "large_busbw_gb_per_s");
	g.without = pp_reading_number(in, off, "large_busbw_gb_per_s");
	g.ratio = pp_reading_number(in, gain, "bandwidth_ratio");
	add(in, gate, &g);
	g.what = pp_reading_printf(in, "nccl %s latency", collective);
	g.unit = "us";
	g.higher_is_better = false;
	g.size_bytes = pp_reading_count(in, on, "small_bytes");
	g.with = pp_reading_number(in, on, "small_us");
	g.without = pp_reading_number(in, off, "small_us");
	g.ratio = pp_reading_number(in, gain, "latency_ratio");
	add(in, gate, &g);
	g.what = "nccl CPU time";
	g.unit = "s/GB";
	g.size_bytes = -1;
	g.with = pp_reading_number(in, gain, "cpu_s_per_gb");
	g.without = pp_reading_number(in, gain, "cpu_s_per_gb_without");
	g.ratio = NAN;
	add(in, gate, &g);
}

void pp_result_nccl_run(struct pp_reading *in, const json_t *doc)
{
	const json_t *runs = pp_reading_list(in, doc, "runs", RUNS), *nodes, *one;
	const json_t *gate = json_object_get(doc, "gate");
	int64_t started = pp_reading_count(in, json_array_get(runs, 0), "started_ns");
	char when[32];
	size_t i;

	if (!json_array_size(runs)) {
		pp_reading_refuse(in, -EBADMSG, "runs", "is no list of runs");
		return;
	}
	if (started > 0)
		in->r->when =
			pp_reading_printf(in, "%s", pp_clock_format(started, when, sizeof(when)));
	nodes = pp_reading_list(in, json_array_get(runs, 0), "nodes", PP_RESULT_NODES);
	json_array_foreach(nodes, i, one)
	{
		struct pp_result_node *n = pp_reading_add_node(in);

		if (!n)
			return;
		n->host = pp_reading_text(in, one, "host");
	}
	json_array_foreach(runs, i, one) in->r->simulated =
		in->r->simulated || json_is_true(json_object_get(one, "simulated"));
	if (!json_is_object(gate))
		return;
	in->r->judged = pp_reading_verdict(in, gate, "verdict", &in->r->verdict);
	in->r->simulated = in->r->simulated || json_is_true(json_object_get(gate, "simulated"));
	in->r->sentence = pp_reading_text(in, gate, "sentence");
	pp_result_nccl_gain(in, gate, runs);
}
