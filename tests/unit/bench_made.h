/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of bench as two good nodes would give it, made for tests of what judges and shows it: one
 * pair, host, DMA-BUF and staged rungs, bandwidth and latency of writes. Tests spoil one thing.
 */
#ifndef PP_TESTS_BENCH_MADE_H
#define PP_TESTS_BENCH_MADE_H

#include "unit.h"

#include <math.h>

#include "bench/result.h"
#include "base/compiler.h"

enum { MADE_SIZES = 4, MADE_REPEATS = 6, MADE_CELLS = 3 * (MADE_SIZES + 1) };

static const uint64_t made_size[MADE_SIZES] = {65536, 1 << 20, 4 << 20, 16 << 20};

static inline void made_counters(struct pp_bench *b, struct pp_bench_cell *c)
{
	static const struct pp_bench_counter all[] = {
		{0, "port_xmit_data", 1},  {0, "local_ack_timeout_err", 0},
		{0, "out_of_sequence", 0}, {0, "port_xmit_discards", 0},
		{1, "port_rcv_data", 1},   {1, "local_ack_timeout_err", 0},
		{1, "out_of_sequence", 0}, {1, "port_xmit_discards", 0},
	};

	c->counters = pp_arena_array(b->arena, PP_ARRAY_LEN(all), sizeof(*all));
	memcpy(c->counters, all, sizeof(all));
	for (unsigned int i = 0; i < PP_ARRAY_LEN(all); i++)
		if (all[i].delta) /* of data: in units of four octets */
			c->counters[i].delta = (int64_t)(c->bytes / 4);
	c->n_counters = PP_ARRAY_LEN(all);
}

static inline void made_samples(struct pp_bench *b, struct pp_bench_cell *c, double middle)
{
	/* one in a hundred around the middle; the median is the middle */
	static const double of[MADE_REPEATS] = {0.995, 1.0, 1.005, 1.0, 0.998, 1.002};

	c->sample = pp_arena_array(b->arena, MADE_REPEATS, sizeof(double));
	c->n_samples = MADE_REPEATS;
	for (unsigned int i = 0; i < MADE_REPEATS; i++)
		c->sample[i] = middle * of[i];
}

static inline void made_cell(struct pp_bench *b, struct pp_bench_cell *c, enum pp_rung rung,
			     enum pp_measure measure, uint64_t size, double middle)
{
	*c = (struct pp_bench_cell){.rung = rung,
				    .op = PP_WRITE,
				    .measure = measure,
				    .size = size,
				    .qps = 1,
				    .depth = 128,
				    .bytes = size * 6000,
				    .messages = 6000,
				    .cpu_seconds_per_gb = {0.01, 0.002},
				    .checked = size * 6,
				    .arrival_skew = NAN,
				    .gpu_mhz = {1980, 1980}};
	made_samples(b, c, middle);
	made_counters(b, c);
	if (measure == PP_LATENCY) {
		c->p50 = middle;
		c->p99 = middle * 1.5;
		c->p999 = middle * 2.5;
	}
}

static inline void made_end(struct pp_bench_end *e, unsigned int node)
{
	*e = (struct pp_bench_end){
		.node = node,
		.device = "mlx5_0",
		.hca = "0000:1a:00.0",
		.port = 1,
		.gid_index = 3,
		.gid = node ? "::ffff:10.0.0.2" : "::ffff:10.0.0.1",
		.gid_type = "RoCE v2",
		.netdev = "eth2",
		.link_layer = "Ethernet",
		.gpu = "0000:19:00.0",
		.gpu_uuid = node ? "GPU-2" : "GPU-1",
		.gpu_name = "NVIDIA H200",
		.distance = "PIX",
		.route = "switch",
		.numa = 0,
		.cpus = "0-15",
		.port_mbps = 400000,
		.pci_mbytes = 63000,
		.gpu_pci_mbytes = 63000,
		.mtu = 4096,
		.traffic_class = 106,
		.priority = 3,
	};
}

static inline void made_rung(struct pp_bench_pair *pair, enum pp_rung r, enum pp_memory_kind memory,
			     const char *registration)
{
	pair->rung[r] = (struct pp_bench_rung){.rung = r,
					       .memory = memory,
					       .registration = registration,
					       .flush = r == PP_RUNG_HOST ? NULL : "not needed"};
}

static inline struct pp_bench_cell *made_find(struct pp_bench *b, enum pp_rung rung,
					      enum pp_measure measure, uint64_t size)
{
	struct pp_bench_pair *pair = &b->pairs[0];

	for (unsigned int i = 0; i < pair->n_cells; i++)
		if (pair->cells[i].rung == rung && pair->cells[i].measure == measure &&
		    pair->cells[i].size == size)
			return &pair->cells[i];
	fail_msg("no such cell");
	abort();
}

/* Takes a cell away. */
static inline void made_drop(struct pp_bench_pair *pair, unsigned int i)
{
	memmove(&pair->cells[i], &pair->cells[i + 1],
		(pair->n_cells - i - 1) * sizeof(*pair->cells));
	pair->n_cells--;
}

static inline void made_cells(struct pp_bench *b, struct pp_bench_pair *pair)
{
	static const struct {
		enum pp_rung rung;
		double mbytes[MADE_SIZES], us;
	} rungs[] = {{PP_RUNG_HOST, {40000, 48000, 48500, 48600}, 2.1},
		     {PP_RUNG_DMABUF, {38000, 47000, 48000, 48200}, 2.4},
		     {PP_RUNG_STAGED, {9000, 24000, 30000, 31000}, 12.0}};
	unsigned int n = 0;

	pair->cells = pp_arena_array(b->arena, MADE_CELLS, sizeof(*pair->cells));
	for (unsigned int i = 0; i < PP_ARRAY_LEN(rungs); i++) {
		for (unsigned int k = 0; k < MADE_SIZES; k++)
			made_cell(b, &pair->cells[n++], rungs[i].rung, PP_BANDWIDTH, made_size[k],
				  rungs[i].mbytes[k]);
		made_cell(b, &pair->cells[n++], rungs[i].rung, PP_LATENCY, 8, rungs[i].us);
	}
	pair->n_cells = n;
}

static inline struct pp_bench *made_bench(void)
{
	struct pp_bench *b = NULL;
	struct pp_bench_pair *pair;

	assert_int_equal(pp_bench_new(&b), 0);
	b->version = "1.0";
	b->started = 1796000000 * PP_SECOND;
	b->took = 42 * PP_SECOND;
	b->whole = true;
	b->repeats = MADE_REPEATS;
	b->n_nodes = 2;
	b->nodes = pp_arena_array(b->arena, 2, sizeof(*b->nodes));
	b->nodes[0] = (struct pp_bench_node){"a",  "node-a", "10.0.0.1", "1.0", "f1",
					     "t1", NULL,     false,	 0};
	b->nodes[1] = (struct pp_bench_node){"b",  "node-b", "10.0.0.2", "1.0", "f1",
					     "t1", NULL,     false,	 31.5};
	b->n_pairs = 1;
	b->pairs = pp_arena_array(b->arena, 1, sizeof(*b->pairs));
	pair = &b->pairs[0];
	pair->name = "a:mlx5_0 - b:mlx5_0";
	made_end(&pair->end[0], 0);
	made_end(&pair->end[1], 1);
	for (unsigned int i = 0; i < PP_RUNGS; i++)
		pair->rung[i] = (struct pp_bench_rung){
			.rung = (enum pp_rung)i, .state = PP_BENCH_SKIPPED, .why = "not asked for"};
	made_rung(pair, PP_RUNG_HOST, PP_MEMORY_HOST, "host");
	made_rung(pair, PP_RUNG_DMABUF, PP_MEMORY_CUDA, "dmabuf");
	made_rung(pair, PP_RUNG_STAGED, PP_MEMORY_CUDA, "host");
	made_cells(b, pair);
	assert_false(b->arena->failed);
	return b;
}

/* All of it on a software device: sim memory, every mark. */
static inline void made_simulated(struct pp_bench *b)
{
	struct pp_bench_pair *pair = &b->pairs[0];

	b->simulated = true;
	for (unsigned int i = 0; i < 2; i++) {
		b->nodes[i].simulated = true;
		pair->end[i].simulated = true;
		pair->end[i].hca = "virtual/soft0";
		pair->end[i].device = "soft0";
		pair->end[i].gpu = NULL;
	}
	for (unsigned int i = 0; i < PP_RUNGS; i++)
		pair->rung[i].simulated = i != PP_RUNG_TCP;
	pair->rung[PP_RUNG_DMABUF].memory = PP_MEMORY_SIM;
	pair->rung[PP_RUNG_STAGED].memory = PP_MEMORY_SIM;
	for (unsigned int i = 0; i < pair->n_cells; i++) {
		pair->cells[i].n_counters = 0;
		pair->cells[i].gpu_mhz[0] = pair->cells[i].gpu_mhz[1] = -1;
	}
}

#endif
