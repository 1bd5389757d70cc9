/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "nccl/perf.h"
#include "base/banned.h"

static void write_rank(struct pp_json *j, const struct pp_perf_rank_info *r, unsigned int i)
{
	char version[48];

	(void)snprintf(version, sizeof(version), "%u.%u.%u", r->major, r->minor, r->patch);
	pp_json_object(j, NULL);
	pp_json_u64(j, "rank", i);
	pp_json_str(j, "node", r->node);
	pp_json_str(j, "host", r->host);
	pp_json_i64(j, "pid", r->pid);
	pp_json_str(j, "gpu", r->gpu);
	pp_json_str(j, "gpu_name", r->gpu_name);
	pp_json_i64(j, "device", r->device);
	if (r->mps >= 0)
		pp_json_bool(j, "mps", r->mps);
	else
		pp_json_null(j, "mps");
	if (r->users >= 0)
		pp_json_i64(j, "gpu_users_before", r->users);
	else
		pp_json_null(j, "gpu_users_before");
	pp_json_str(j, "library", r->library);
	pp_json_str(j, "library_found_by", r->library_by);
	pp_json_str(j, "library_of_python", r->library_other);
	pp_json_str(j, "nccl_version", r->number ? version : NULL);
	pp_json_str(j, "hostid_set", r->hostid);
	pp_json_bool(j, "same_clock", r->same_clock);
	pp_json_double(j, "clock_offset_us", r->offset_ns / 1e3);
	pp_json_double(j, "clock_error_us", r->error_ns / 1e3);
	pp_json_end_object(j);
}

static void write_place(struct pp_json *j, const char *key, const struct pp_perf_place *p)
{
	if (!p->measured) {
		pp_json_null(j, key);
		return;
	}
	pp_json_object(j, key);
	pp_json_double(j, "time_us", p->time_us);
	pp_json_double(j, "alg_gb_per_s", p->alg_gbps);
	pp_json_double(j, "bus_gb_per_s", p->bus_gbps);
	pp_json_double(j, "cpu_s_per_gb", p->cpu_s_per_gb);
	pp_json_bool(j, "verified", p->verified);
	if (p->verified) {
		pp_json_u64(j, "checked_elements", p->checked);
		pp_json_u64(j, "wrong_elements", p->wrong);
	} else {
		pp_json_null(j, "checked_elements");
		pp_json_null(j, "wrong_elements");
	}
	if (p->verified && p->wrong) {
		pp_json_i64(j, "first_wrong_rank", p->wrong_rank);
		pp_json_u64(j, "first_wrong_element", p->wrong_at);
	}
	pp_json_end_object(j);
}

static void write_row(struct pp_json *j, const struct pp_perf *p, const struct pp_perf_row *row)
{
	pp_json_object(j, NULL);
	pp_json_u64(j, "size_bytes", row->shape.bytes);
	pp_json_u64(j, "count", row->shape.count);
	write_place(j, "out_of_place", &row->place[PP_PERF_OUT_OF_PLACE]);
	write_place(j, "in_place", &row->place[PP_PERF_IN_PLACE]);
	pp_json_u64(j, "samples", row->samples);
	if (row->samples) {
		pp_json_double(j, "p50_us", row->p50_us);
		pp_json_double(j, "p99_us", row->p99_us);
		pp_json_array(j, "arrival_skew");
		for (unsigned int i = 0; row->skew && i < p->n_ranks; i++) {
			pp_json_object(j, NULL);
			pp_json_u64(j, "rank", i);
			pp_json_double(j, "p50_us", row->skew[i].p50_us);
			pp_json_double(j, "max_us", row->skew[i].max_us);
			pp_json_end_object(j);
		}
		pp_json_end_array(j);
	}
	pp_json_end_object(j);
}

static void write_options(struct pp_json *j, const struct pp_perf_options *o)
{
	pp_json_object(j, "options");
	pp_json_str(j, "type", pp_element_name(o->element));
	pp_json_str(j, "redop", pp_reduction_name(o->reduction));
	pp_json_u64(j, "warmups", o->warmups);
	pp_json_u64(j, "iterations", o->iterations);
	pp_json_u64(j, "aggregate", o->aggregate);
	pp_json_u64(j, "checks", o->checks);
	pp_json_bool(j, "one_gpu", o->one_gpu);
	pp_json_bool(j, "apart", o->apart);
	pp_json_bool(j, "busy_ok", o->busy_ok);
	pp_json_str(j, "memory", o->vmm ? "cuda-vmm" : "cuda");
	pp_json_double(j, "timeout_s", (double)o->limit / (double)PP_SECOND);
	pp_json_end_object(j);
}

void pp_perf_write(struct pp_json *j, const struct pp_perf *p)
{
	char when[32];

	pp_json_str(j, "peerpath_version", PEERPATH_VERSION);
	pp_json_str(j, "started", pp_clock_format(p->started, when, sizeof(when)));
	pp_json_bool(j, "simulated", p->simulated);
	pp_json_str(j, "verdict", pp_verdict_name(p->simulated ? PP_UNKNOWN : p->verdict));
	if (p->simulated)
		pp_json_str(j, "simulation",
			    p->verdict == PP_PASS   ? "passed"
			    : p->verdict == PP_FAIL ? "failed"
						    : "not verified");
	pp_json_str(j, "ended", p->ended);
	pp_json_str(j, "left_out", p->shrunk);
	pp_json_str(j, "launched_by", p->launched_by);
	write_options(j, &p->options);
	pp_json_array(j, "ranks");
	for (unsigned int i = 0; i < p->n_ranks; i++)
		write_rank(j, &p->rank[i], i);
	pp_json_end_array(j);
	pp_json_array(j, "collectives");
	for (unsigned int i = 0; i < p->n_runs; i++) {
		const struct pp_perf_run *run = &p->run[i];

		pp_json_object(j, NULL);
		pp_json_str(j, "collective", pp_collective_name(run->collective));
		pp_json_u64(j, "out_of_bounds", run->out_of_bounds);
		pp_json_double(j, "average_bus_gb_per_s", run->average_bus_gbps);
		pp_json_array(j, "results");
		for (unsigned int k = 0; k < run->n; k++)
			write_row(j, p, &run->row[k]);
		pp_json_end_array(j);
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
}
