/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict of gate 2 on made runs, each spoiled in one way. What must come of it is the design's
 * (margins, order of hypotheses) and the runbook's: host memory first, then GPU memory; both bad
 * alike is not the registration; a throttled run is void; nothing simulated passes.
 */
#include "bench_made.h"

#include <limits.h>

#include "facts_text.h"
#include "judge/transfer.h"
#include "base/banned.h"

static struct pp_known_set *known;

static void judge(const struct pp_bench *b, struct pp_transfer *t)
{
	assert_int_equal(pp_transfer_judge(b, &pp_margins_default, known, NULL, t), 0);
}

static const struct pp_transfer_row *row_of(const struct pp_transfer *t, enum pp_rung rung)
{
	for (unsigned int i = 0; i < t->n_rows; i++)
		if (t->rows[i].rung == rung)
			return &t->rows[i];
	fail_msg("no row");
	abort();
}

static void needs(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("'%s' lacks '%s'", text ? text : "(none)", part);
}

static void scale(struct pp_bench *b, enum pp_rung rung, double by)
{
	struct pp_bench_pair *p = &b->pairs[0];

	for (unsigned int i = 0; i < p->n_cells; i++)
		for (unsigned int k = 0; p->cells[i].rung == rung && k < p->cells[i].n_samples; k++)
			p->cells[i].sample[k] *= by;
}

static void fail_rung(struct pp_bench *b, enum pp_rung rung, const char *call, int error,
		      int status)
{
	struct pp_bench_rung *r = &b->pairs[0].rung[rung];
	struct pp_bench_pair *p = &b->pairs[0];

	*r = (struct pp_bench_rung){.rung = rung,
				    .state = PP_BENCH_FAILED,
				    .error = error,
				    .status = status,
				    .call = call,
				    .end = 1,
				    .memory =
					    rung == PP_RUNG_HOST ? PP_MEMORY_HOST : PP_MEMORY_CUDA};
	for (unsigned int i = p->n_cells; i--;)
		if (p->cells[i].rung == rung)
			made_drop(p, i);
}

static struct pp_bench_cell *big(struct pp_bench *b, enum pp_rung rung)
{
	return made_find(b, rung, PP_BANDWIDTH, 4 << 20);
}

static void spoil_nothing(struct pp_bench *b)
{
	(void)b;
}

static void spoil_host_spread(struct pp_bench *b)
{
	big(b, PP_RUNG_HOST)->sample[3] *= 0.94;
}

static void spoil_gpu_spread(struct pp_bench *b)
{
	big(b, PP_RUNG_DMABUF)->sample[3] *= 0.94;
}

static void spoil_host_lost(struct pp_bench *b)
{
	fail_rung(b, PP_RUNG_HOST, NULL, 0, 12);
}

/* An index that the user gave: nothing was sent, so the network is not to blame. */
static void spoil_host_gid(struct pp_bench *b)
{
	fail_rung(b, PP_RUNG_HOST, NULL, 2, 0);
	b->pairs[0].rung[PP_RUNG_HOST].why = "node b: mlx5_0 port 1 has no GID 9";
}

static void spoil_host_open(struct pp_bench *b)
{
	fail_rung(b, PP_RUNG_HOST, "ibv_open_device", 13, 0);
}

static void spoil_dmabuf_asked(struct pp_bench *b)
{
	fail_rung(b, PP_RUNG_DMABUF, NULL, 22, 0);
	b->pairs[0].rung[PP_RUNG_DMABUF].why = "node b: no NUMA node 7 here";
}

static void spoil_host_memlock(struct pp_bench *b)
{
	fail_rung(b, PP_RUNG_HOST, "ibv_reg_mr", 12, 0);
}

static void spoil_dmabuf_95(struct pp_bench *b)
{
	fail_rung(b, PP_RUNG_DMABUF, "ibv_reg_dmabuf_mr", 95, 0);
}

static void spoil_dmabuf_524(struct pp_bench *b)
{
	fail_rung(b, PP_RUNG_DMABUF, "ibv_reg_dmabuf_mr", 524, 0);
}

static void spoil_dmabuf_12(struct pp_bench *b)
{
	fail_rung(b, PP_RUNG_DMABUF, "ibv_reg_dmabuf_mr", 12, 0);
}

static void spoil_peermem_14(struct pp_bench *b)
{
	fail_rung(b, PP_RUNG_DMABUF, NULL, 0, 0);
	b->pairs[0].rung[PP_RUNG_DMABUF].state = PP_BENCH_SKIPPED;
	fail_rung(b, PP_RUNG_PEERMEM, "ibv_reg_mr", 14, 0);
}

static void spoil_dmabuf_wc4(struct pp_bench *b)
{
	fail_rung(b, PP_RUNG_DMABUF, NULL, 0, 4);
}

static void spoil_dmabuf_cell(struct pp_bench *b)
{
	struct pp_bench_cell *c = big(b, PP_RUNG_DMABUF);

	c->state = PP_BENCH_FAILED;
	c->status = 10;
	c->n_samples = 0;
}

static void spoil_half(struct pp_bench *b)
{
	b->pairs[0].end[1].route = "cross-socket";
	b->pairs[0].end[1].distance = "SYS";
	scale(b, PP_RUNG_DMABUF, 0.5);
}

static void spoil_root_complex(struct pp_bench *b)
{
	b->pairs[0].end[0].route = "root-complex translated";
	b->pairs[0].end[1].route = "root-complex";
	scale(b, PP_RUNG_DMABUF, 0.8);
}

static void spoil_gpu_lanes(struct pp_bench *b)
{
	b->pairs[0].end[0].gpu_pci_mbytes = 15750; /* four lanes of generation 5 */
	b->pairs[0].end[0].route = "root-complex";
	scale(b, PP_RUNG_DMABUF, 0.3);
}

static void spoil_half_unknown(struct pp_bench *b)
{
	scale(b, PP_RUNG_DMABUF, 0.5);
}

static void spoil_both(struct pp_bench *b)
{
	scale(b, PP_RUNG_HOST, 0.4);
	scale(b, PP_RUNG_DMABUF, 0.4);
}

static void spoil_vmm(struct pp_bench *b)
{
	b->pairs[0].rung[PP_RUNG_DMABUF].memory = PP_MEMORY_CUDA_VMM;
	scale(b, PP_RUNG_DMABUF, 0.0015);
}

static void grow(struct pp_bench_cell *c, const char *name, unsigned int end)
{
	for (unsigned int i = 0; i < c->n_counters; i++)
		if (c->counters[i].end == end && !strcmp(c->counters[i].name, name))
			c->counters[i].delta = 17;
}

static void spoil_order(struct pp_bench *b)
{
	grow(big(b, PP_RUNG_DMABUF), "out_of_sequence", 1);
}

static void spoil_host_discards(struct pp_bench *b)
{
	grow(big(b, PP_RUNG_HOST), "port_xmit_discards", 0);
}

static void spoil_no_counters(struct pp_bench *b)
{
	for (unsigned int i = 0; i < b->pairs[0].n_cells; i++)
		b->pairs[0].cells[i].n_counters = 0;
}

static void spoil_other_way(struct pp_bench *b)
{
	big(b, PP_RUNG_DMABUF)->counters[0].delta = 1;
}

static void spoil_bytes(struct pp_bench *b)
{
	big(b, PP_RUNG_DMABUF)->wrong = 4096;
	big(b, PP_RUNG_DMABUF)->first_wrong = 2097152;
}

static void spoil_staged_bytes(struct pp_bench *b)
{
	big(b, PP_RUNG_STAGED)->wrong = 1;
}

static void spoil_host_bytes(struct pp_bench *b)
{
	big(b, PP_RUNG_HOST)->wrong = 1;
}

static void spoil_unchecked(struct pp_bench *b)
{
	big(b, PP_RUNG_DMABUF)->checked = 4096;
}

static void add_negative(struct pp_bench *b, bool run, bool refused)
{
	struct pp_bench_rung *r = &b->pairs[0].rung[PP_RUNG_DMABUF];

	r->negatives = pp_arena_array(b->arena, 1, sizeof(*r->negatives));
	r->negatives[0] = (struct pp_bench_negative){"wrong rkey", run, refused, NULL};
	r->n_negatives = 1;
}

static void spoil_keys(struct pp_bench *b)
{
	add_negative(b, true, false);
}

static void spoil_keys_not_tried(struct pp_bench *b)
{
	add_negative(b, false, false);
}

static void spoil_keys_refused(struct pp_bench *b)
{
	add_negative(b, true, true);
}

static void spoil_throttle(struct pp_bench *b)
{
	big(b, PP_RUNG_DMABUF)->throttle[1] = "sw thermal slowdown";
}

static void spoil_clocks(struct pp_bench *b)
{
	big(b, PP_RUNG_DMABUF)->gpu_mhz[1] = -1;
}

static void spoil_void(struct pp_bench *b)
{
	b->pairs[0].rung[PP_RUNG_DMABUF].state = PP_BENCH_VOID;
}

static void spoil_skip_gpu(struct pp_bench *b)
{
	fail_rung(b, PP_RUNG_DMABUF, NULL, 0, 0);
	b->pairs[0].rung[PP_RUNG_DMABUF].state = PP_BENCH_SKIPPED;
	b->pairs[0].rung[PP_RUNG_DMABUF].why = "no GPU here";
}

static void spoil_skip_host(struct pp_bench *b)
{
	fail_rung(b, PP_RUNG_HOST, NULL, 0, 0);
	b->pairs[0].rung[PP_RUNG_HOST].state = PP_BENCH_SKIPPED;
}

static void spoil_small(struct pp_bench *b)
{
	struct pp_bench_pair *p = &b->pairs[0];

	for (unsigned int i = p->n_cells; i--;)
		if (p->cells[i].size >= 1 << 20)
			made_drop(p, i);
}

static void spoil_two_repeats(struct pp_bench *b)
{
	for (unsigned int i = 0; i < b->pairs[0].n_cells; i++)
		b->pairs[0].cells[i].n_samples = 2;
}

static void spoil_interrupted(struct pp_bench *b)
{
	b->whole = false;
	b->ended = "interrupted";
}

static void spoil_other_refused(struct pp_bench *b)
{
	fail_rung(b, PP_RUNG_PEERMEM, "ibv_reg_mr", 14, 0);
}

static void spoil_virtual(struct pp_bench *b)
{
	for (unsigned int i = 0; i < 2; i++) {
		b->pairs[0].end[i].hca = "virtual/rxe0";
		b->pairs[0].end[i].driver = "rdma_rxe";
	}
}

/* Of an older document, which names no driver. */
static void spoil_virtual_one(struct pp_bench *b)
{
	b->pairs[0].end[1].hca = "virtual/rxe0";
}

static void spoil_virtual_small(struct pp_bench *b)
{
	spoil_virtual(b);
	spoil_small(b);
}

static void spoil_virtual_half(struct pp_bench *b)
{
	spoil_virtual(b);
	spoil_half(b);
}

static void spoil_virtual_wrong(struct pp_bench *b)
{
	spoil_virtual(b);
	big(b, PP_RUNG_DMABUF)->wrong = 8;
}

static void spoil_virtual_simulated(struct pp_bench *b)
{
	spoil_virtual(b);
	made_simulated(b);
}

static void spoil_simulated_lost(struct pp_bench *b)
{
	made_simulated(b);
	fail_rung(b, PP_RUNG_HOST, NULL, 0, 12);
}

static void spoil_simulated_wrong(struct pp_bench *b)
{
	made_simulated(b);
	big(b, PP_RUNG_DMABUF)->wrong = 8;
}

static void spoil_simulated_half(struct pp_bench *b)
{
	spoil_half(b);
	made_simulated(b);
}

static void spoil_simulated_spread(struct pp_bench *b)
{
	made_simulated(b);
	big(b, PP_RUNG_HOST)->sample[0] *= 0.5;
}

static void spoil_one_mark(struct pp_bench *b)
{
	b->nodes[1].simulated = true;
}

static const struct {
	const char *name;
	void (*spoil)(struct pp_bench *);
	enum pp_verdict verdict;
	const char *word, *sentence, *hop, *counter, *cause;
} table[] = {
	{"good", spoil_nothing, PP_PASS, "pass", "by dmabuf, at 0.99 of host memory's bandwidth",
	 NULL, NULL, NULL},
	{"host spread", spoil_host_spread, PP_FAIL, "fail",
	 "fabric: repeats of host memory at 4 MiB differ by 6.5 %, 5.0 % allowed; GPU memory is "
	 "not judged",
	 NULL, NULL, NULL},
	{"gpu spread", spoil_gpu_spread, PP_DEGRADED, "degraded",
	 "unstable: repeats of GPU memory at 4 MiB", NULL, NULL, NULL},
	{"host lost", spoil_host_lost, PP_FAIL, "fail",
	 "fabric: host memory over RDMA failed at b:mlx5_0: status 12, transport retry", NULL, NULL,
	 "wc-retry-exceeded"},
	{"host asked", spoil_host_gid, PP_UNKNOWN, "unknown",
	 "not tried: node b: mlx5_0 port 1 has no GID 9; GPU memory is not judged", NULL, NULL,
	 NULL},
	{"host open", spoil_host_open, PP_FAIL, "fail",
	 "the hca could not be set up at b:mlx5_0: ibv_open_device: EACCES (13)", NULL, NULL,
	 "open-uverbs-denied"},
	{"dmabuf asked", spoil_dmabuf_asked, PP_UNKNOWN, "unknown",
	 "not tried: node b: no NUMA node 7 here", NULL, NULL, NULL},
	{"memlock", spoil_host_memlock, PP_FAIL, "fail",
	 "host memory could not be registered at b:mlx5_0: ibv_reg_mr: ENOMEM (12)", NULL, NULL,
	 "memlock-small"},
	{"dmabuf 95", spoil_dmabuf_95, PP_FAIL, "fail",
	 "registration: GPU memory was refused by dmabuf at b:mlx5_0: ibv_reg_dmabuf_mr: "
	 "EOPNOTSUPP (95)",
	 NULL, NULL, "dmabuf-unsupported-provider"},
	{"dmabuf 524", spoil_dmabuf_524, PP_FAIL, "fail", "ENOTSUPP (524)", NULL, NULL,
	 "dmabuf-topology-refused"},
	{"dmabuf 12", spoil_dmabuf_12, PP_FAIL, "fail", "registration:", NULL, NULL,
	 "bar1-exhausted-dmabuf"},
	{"peermem 14", spoil_peermem_14, PP_FAIL, "fail", "refused by peermem", NULL, NULL,
	 "peermem-missing"},
	{"status 4", spoil_dmabuf_wc4, PP_FAIL, "fail",
	 "GPU memory by dmabuf failed at b:mlx5_0: status 4, local protection error", NULL, NULL,
	 "wc-local-protection"},
	{"cell", spoil_dmabuf_cell, PP_FAIL, "fail", "bandwidth of 4 MiB failed at a:mlx5_0", NULL,
	 NULL, "wc-remote-access"},
	{"half", spoil_half, PP_DEGRADED, "degraded", "0.49 of host memory's bandwidth at 1 MiB",
	 "the way between the sockets at b:mlx5_0 (SYS, cross-socket)", NULL, NULL},
	{"translated", spoil_root_complex, PP_DEGRADED, "degraded", "0.78 of host memory's",
	 "the IOMMU, which translates between GPU and hca at a:mlx5_0", NULL, NULL},
	{"lanes", spoil_gpu_lanes, PP_DEGRADED, "degraded", "0.29 of host memory's",
	 "PCIe link of the GPU at a:mlx5_0 (15750 MB/s)", NULL, NULL},
	{"half, why", spoil_half_unknown, PP_DEGRADED, "degraded", "hop: between GPU and hca",
	 "which hop is not known", NULL, NULL},
	{"both", spoil_both, PP_DEGRADED, "degraded", "0.38 of the narrowest hop (port, 50000 MB/s",
	 "port", NULL, NULL},
	{"vmm", spoil_vmm, PP_DEGRADED, "degraded", "0.00 of host memory's", NULL, NULL,
	 "silent-slow-vmm"},
	{"order", spoil_order, PP_DEGRADED, "degraded",
	 "out_of_sequence at b:mlx5_0 grew by 17 (bandwidth of 4 MiB)", NULL, "out_of_sequence",
	 NULL},
	{"discards", spoil_host_discards, PP_DEGRADED, "degraded", "port_xmit_discards at a:mlx5_0",
	 NULL, "port_xmit_discards", NULL},
	{"no counters", spoil_no_counters, PP_UNKNOWN, "unknown",
	 "no retransmit counter of the port at a:mlx5_0 could be read", NULL, NULL, NULL},
	{"other way", spoil_other_way, PP_UNKNOWN, "unknown", "may have gone another way", NULL,
	 NULL, NULL},
	{"bytes", spoil_bytes, PP_FAIL, "fail",
	 "4096 of 25165824 bytes arrived wrong at 4 MiB, the first at offset 2097152", NULL, NULL,
	 NULL},
	{"staged bytes", spoil_staged_bytes, PP_FAIL, "fail", "staged: 1 of", NULL, NULL, NULL},
	{"host bytes", spoil_host_bytes, PP_FAIL, "fail", "fabric: 1 of", NULL, NULL, NULL},
	{"unchecked", spoil_unchecked, PP_UNKNOWN, "unknown", "not compared whole", NULL, NULL,
	 NULL},
	{"keys", spoil_keys, PP_FAIL, "fail", "keys are not enforced: wrong rkey was not refused",
	 NULL, NULL, NULL},
	{"keys not tried", spoil_keys_not_tried, PP_UNKNOWN, "unknown", "was not run", NULL, NULL,
	 NULL},
	{"keys refused", spoil_keys_refused, PP_PASS, "pass", "by dmabuf", NULL, NULL, NULL},
	{"throttle", spoil_throttle, PP_UNKNOWN, "unknown",
	 "void: the GPU at b:mlx5_0 was throttled (sw thermal slowdown)", NULL, NULL, NULL},
	{"clocks", spoil_clocks, PP_UNKNOWN, "unknown", "throttling is not excluded", NULL, NULL,
	 NULL},
	{"void", spoil_void, PP_UNKNOWN, "unknown", "void", NULL, NULL, NULL},
	{"no gpu", spoil_skip_gpu, PP_UNKNOWN, "unknown", "GPU memory was not moved", NULL, NULL,
	 NULL},
	{"no host", spoil_skip_host, PP_UNKNOWN, "unknown", "host: not run", NULL, NULL, NULL},
	{"small", spoil_small, PP_UNKNOWN, "unknown", "no bandwidth of 1 MiB or more", NULL, NULL,
	 NULL},
	{"two repeats", spoil_two_repeats, PP_UNKNOWN, "unknown", "fewer than 3 repeats", NULL,
	 NULL, NULL},
	{"interrupted", spoil_interrupted, PP_UNKNOWN, "unknown", "not whole: interrupted", NULL,
	 NULL, NULL},
	{"another way refused", spoil_other_refused, PP_PASS, "pass",
	 "by dmabuf (another way was refused)", NULL, NULL, NULL},
	{"kernel's rxe", spoil_virtual, PP_UNKNOWN, "unknown",
	 "chain exercised; rdma_rxe is software in the kernel: no hardware was measured", NULL,
	 NULL, NULL},
	{"one end rxe", spoil_virtual_one, PP_UNKNOWN, "unknown",
	 "virtual/rxe0 is software in the kernel", NULL, NULL, NULL},
	{"rxe, small", spoil_virtual_small, PP_UNKNOWN, "unknown",
	 "no bandwidth of 1 MiB or more was measured; rdma_rxe is software in the kernel", NULL,
	 NULL, NULL},
	{"rxe, half", spoil_virtual_half, PP_UNKNOWN, "unknown",
	 "rdma_rxe is software in the kernel", "the way between the sockets", NULL, NULL},
	{"rxe, wrong", spoil_virtual_wrong, PP_FAIL, "fail", "arrived wrong at 4 MiB", NULL, NULL,
	 NULL},
	{"rxe, simulated", spoil_virtual_simulated, PP_UNKNOWN, "simulation: passed",
	 "chain exercised in simulation; no hardware", NULL, NULL, NULL},
	{"simulated", made_simulated, PP_UNKNOWN, "simulation: passed",
	 "chain exercised in simulation; no hardware", NULL, NULL, NULL},
	{"simulated, lost", spoil_simulated_lost, PP_FAIL, "simulation: failed",
	 "fabric: host memory over RDMA failed", NULL, NULL, "wc-retry-exceeded"},
	{"simulated, wrong", spoil_simulated_wrong, PP_FAIL, "simulation: failed",
	 "8 of 25165824 bytes arrived wrong", NULL, NULL, NULL},
	{"simulated, half", spoil_simulated_half, PP_UNKNOWN, "simulation: passed",
	 "with a remark: dmabuf: 0.49 of host memory's", "the way between the sockets", NULL, NULL},
	{"simulated, spread", spoil_simulated_spread, PP_UNKNOWN, "simulation: passed",
	 "unstable: repeats of host memory", NULL, NULL, NULL},
	{"one mark", spoil_one_mark, PP_UNKNOWN, "simulation: passed", "simulation", NULL, NULL,
	 NULL},
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(table); i++) {
		struct pp_bench *b = made_bench();
		struct pp_transfer t;
		const struct pp_transfer_row *pair;

		table[i].spoil(b);
		judge(b, &t);
		pair = row_of(&t, PP_RUNGS);
		if (t.verdict != table[i].verdict ||
		    strcmp(pp_transfer_word(&t), table[i].word) != 0)
			fail_msg("%s: %s (%s): %s", table[i].name, pp_verdict_name(t.verdict),
				 pp_transfer_word(&t), t.sentence);
		needs(t.sentence, table[i].sentence);
		if (table[i].hop)
			needs(pair->hop, table[i].hop);
		if (table[i].counter)
			assert_string_equal(pair->counter, table[i].counter);
		if (table[i].cause && (!pair->cause || strcmp(pair->cause, table[i].cause) != 0))
			fail_msg("%s: cause %s, not %s", table[i].name,
				 pair->cause ? pair->cause : "none", table[i].cause);
		if (!table[i].cause)
			assert_null(pair->cause);
		assert_true((t.next == NULL) == (t.verdict == PP_PASS));
		assert_null(strstr(t.sentence, "proven"));
		pp_transfer_done(&t);
		pp_bench_free(b);
	}
}

/* Both bad alike: the way of GPU memory says that it is not its registration. */
static void test_alike(void **state)
{
	struct pp_bench *b = made_bench();
	struct pp_transfer t;

	(void)state;
	spoil_both(b);
	judge(b, &t);
	needs(row_of(&t, PP_RUNG_DMABUF)->sentence,
	      "as slow as host memory, so not the registration");
	pp_transfer_done(&t);
	pp_bench_free(b);
}

static void test_figures(void **state)
{
	struct pp_bench *b = made_bench();
	struct pp_transfer t;
	const struct pp_figure *f;

	(void)state;
	judge(b, &t);
	assert_int_equal(t.n_figures, MADE_CELLS);
	f = pp_transfer_figure(&t, big(b, PP_RUNG_DMABUF));
	assert_true(f->median == 48000);
	assert_true(fabs(f->host - 48000.0 / 48500) < 1e-9);
	assert_true(fabs(f->staged - 1.6) < 1e-9);
	assert_true(fabs(f->hop - 0.96) < 1e-9); /* of 400 Gb/s, 50000 MB/s */
	assert_true(f->interval.low == 48000 * 0.995 && f->interval.high == 48000 * 1.005);
	assert_true(fabs(t.gpu_host - 48200.0 / 48600) < 1e-9);
	assert_int_equal(t.direct_wins_from, 65536);
	pp_transfer_done(&t);
	/* staging wins at 1 MiB: what comes before it does not count */
	made_find(b, PP_RUNG_STAGED, PP_BANDWIDTH, 1 << 20)->sample[0] = 99000;
	for (unsigned int i = 0; i < MADE_REPEATS; i++)
		made_find(b, PP_RUNG_STAGED, PP_BANDWIDTH, 1 << 20)->sample[i] = 99000;
	judge(b, &t);
	assert_int_equal(t.direct_wins_from, 4 << 20);
	pp_transfer_done(&t);
	pp_bench_free(b);
}

/* The least thing that is known of the link limits what may pass: not knowing makes it no easier.
 */
static void test_hops(void **state)
{
	struct pp_bench *b = made_bench();
	struct pp_transfer t;

	(void)state;
	b->pairs[0].end[0].port_mbps = b->pairs[0].end[1].port_mbps = -1;
	judge(b, &t);
	assert_int_equal(t.verdict, PP_PASS); /* 48500 of 63000: 0.77 */
	pp_transfer_done(&t);
	for (unsigned int i = 0; i < 2; i++)
		b->pairs[0].end[i].pci_mbytes = -1;
	judge(b, &t);
	assert_int_equal(t.verdict, PP_UNKNOWN);
	needs(t.sentence, "what should be reached is not known");
	pp_transfer_done(&t);
	pp_bench_free(b);
}

static void test_margins_are_configuration(void **state)
{
	struct pp_margins wide = pp_margins_default;
	struct pp_bench *b = made_bench();
	struct pp_transfer t;

	(void)state;
	spoil_half_unknown(b);
	wide.gpu_host = 0.4;
	wide.hop = 0.4;
	assert_int_equal(pp_transfer_judge(b, &wide, known, NULL, &t), 0);
	assert_int_equal(t.verdict, PP_PASS);
	pp_transfer_done(&t);
	pp_bench_free(b);
}

/*
 * Causes by errno and completion status, as the field reports that the rules cite have them: 14 is
 * peermem that took no address, or memory of VMM; 12 locked memory, or by DMA-BUF BAR1; 22 a range
 * that does not fit; 93 and 95 no DMA-BUF below; 524 the topology; 801 a GPU that cannot export.
 */
static void test_causes(void **state)
{
	static const struct {
		const char *call;
		int error, status;
		bool cuda;
		enum pp_memory_kind memory;
		const char *cause;
	} rows[] = {
		{"ibv_reg_mr", 14, 0, false, PP_MEMORY_CUDA, "peermem-missing"},
		{"ibv_reg_mr", 14, 0, false, PP_MEMORY_CUDA_VMM, "vmm-memory"},
		{"ibv_reg_mr", 12, 0, false, PP_MEMORY_CUDA, "memlock-small"},
		{"ibv_reg_dmabuf_mr", 12, 0, false, PP_MEMORY_CUDA, "bar1-exhausted-dmabuf"},
		{"ibv_reg_dmabuf_mr", 22, 0, false, PP_MEMORY_CUDA, "mr-bad-range"},
		{"ibv_reg_dmabuf_mr", 93, 0, false, PP_MEMORY_CUDA, "dmabuf-unsupported-kernel"},
		{"ibv_reg_dmabuf_mr", 95, 0, false, PP_MEMORY_CUDA, "dmabuf-unsupported-provider"},
		{"ibv_reg_dmabuf_mr", 524, 0, false, PP_MEMORY_CUDA, "dmabuf-topology-refused"},
		{"cuMemGetHandleForAddressRange", 801, 0, true, PP_MEMORY_CUDA,
		 "gpu-cannot-export"},
		{NULL, 0, 4, false, PP_MEMORY_CUDA, "wc-local-protection"},
		{NULL, 0, 5, false, PP_MEMORY_CUDA, NULL}, /* flushed: of something earlier */
		{NULL, 0, 9, false, PP_MEMORY_CUDA, "wc-remote-invalid"},
		{NULL, 0, 10, false, PP_MEMORY_CUDA, "wc-remote-access"},
		{NULL, 0, 11, false, PP_MEMORY_CUDA, "wc-remote-operation"},
		{NULL, 0, 12, false, PP_MEMORY_CUDA, "wc-retry-exceeded"},
		{NULL, 0, 13, false, PP_MEMORY_CUDA, "wc-rnr"},
	};

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		struct pp_bench *b = made_bench();
		struct pp_bench_rung *r = &b->pairs[0].rung[PP_RUNG_DMABUF];
		struct pp_bench_attempt a = {
			.call = rows[i].call, .error = rows[i].error, .cuda = rows[i].cuda};
		struct pp_transfer t;
		const char *cause;

		fail_rung(b, PP_RUNG_DMABUF, rows[i].call, rows[i].error, rows[i].status);
		r->memory = rows[i].memory;
		r->attempts = &a;
		r->n_attempts = rows[i].cuda;
		judge(b, &t);
		cause = row_of(&t, PP_RUNG_DMABUF)->cause;
		assert_int_equal(t.verdict, PP_FAIL);
		if (!cause != !rows[i].cause || (cause && strcmp(cause, rows[i].cause) != 0))
			fail_msg("row %zu: %s, not %s", i, cause ? cause : "none",
				 rows[i].cause ? rows[i].cause : "none");
		pp_transfer_done(&t);
		pp_bench_free(b);
	}
}

/* Facts decide between causes of one errno: with peermem loaded it is not the missing module. */
static void test_facts(void **state)
{
	struct pp_bench *b = made_bench();
	struct pp_transfer t;
	struct machine m;

	(void)state;
	machine_init(&m);
	machine_set(&m, "nvidia_peermem.loaded", "yes");
	machine_set(&m, "nvidia_peermem.client", "no");
	spoil_peermem_14(b);
	assert_int_equal(pp_transfer_judge(b, &pp_margins_default, known, &m.facts, &t), 0);
	assert_string_equal(row_of(&t, PP_RUNG_PEERMEM)->cause, "peermem-not-registered");
	pp_transfer_done(&t);
	assert_int_equal(pp_transfer_judge(b, &pp_margins_default, NULL, NULL, &t), 0);
	assert_null(row_of(&t, PP_RUNG_PEERMEM)->cause);
	assert_int_equal(t.verdict, PP_FAIL);
	pp_transfer_done(&t);
	machine_done(&m);
	pp_bench_free(b);
}

/* At least as bad as before, where what is not known any more may be no worse than unknown. */
static void not_better(const struct pp_bench *b, enum pp_verdict before, bool passed,
		       const char *spoiled, const char *what)
{
	enum pp_verdict least = before < PP_UNKNOWN ? before : PP_UNKNOWN;
	struct pp_transfer t;

	judge(b, &t);
	if (t.verdict < least || (t.passed && !passed))
		fail_msg("%s, without %s: %s: %s", spoiled, what, pp_verdict_name(t.verdict),
			 t.sentence);
	pp_transfer_done(&t);
}

static void without_cells(size_t i, enum pp_verdict before, bool passed)
{
	char what[64];

	for (unsigned int k = 0;; k++) {
		struct pp_bench *b = made_bench();
		unsigned int n;

		table[i].spoil(b);
		n = b->pairs[0].n_cells;
		if (k < n) {
			made_drop(&b->pairs[0], k);
			(void)snprintf(what, sizeof(what), "cell %u", k);
			not_better(b, before, passed, table[i].name, what);
		}
		pp_bench_free(b);
		if (k >= n)
			return;
	}
}

static void without_counters(size_t i, enum pp_verdict before, bool passed)
{
	char what[64];
	unsigned int n = 1;

	for (unsigned int k = 0; k < n; k++) {
		struct pp_bench *b = made_bench();
		struct pp_bench_pair *p = &b->pairs[0];
		unsigned int at = k;

		table[i].spoil(b);
		n = 0;
		for (unsigned int c = 0; c < p->n_cells; c++) {
			struct pp_bench_cell *cell = &p->cells[c];

			n += cell->n_counters;
			if (at < cell->n_counters) {
				memmove(&cell->counters[at], &cell->counters[at + 1],
					(cell->n_counters - at - 1) * sizeof(*cell->counters));
				cell->n_counters--;
				at = UINT_MAX;
			} else if (at != UINT_MAX) {
				at -= cell->n_counters;
			}
		}
		(void)snprintf(what, sizeof(what), "counter %u", k);
		not_better(b, before, passed, table[i].name, what);
		pp_bench_free(b);
	}
}

static void without_rungs(size_t i, enum pp_verdict before, bool passed)
{
	for (unsigned int k = 0; k < PP_RUNGS; k++) {
		struct pp_bench *b = made_bench();
		struct pp_bench_pair *p = &b->pairs[0];

		table[i].spoil(b);
		p->rung[k] = (struct pp_bench_rung){.rung = (enum pp_rung)k,
						    .state = PP_BENCH_NOT_REACHED,
						    .why = "not in the document",
						    .memory = p->rung[k].memory};
		for (unsigned int c = p->n_cells; c--;)
			if (p->cells[c].rung == k)
				made_drop(p, c);
		not_better(b, before, passed, table[i].name, pp_rung_name((enum pp_rung)k));
		pp_bench_free(b);
	}
}

/* What is taken away from a run, good or bad, never makes it better. */
static void test_removal(void **state)
{
	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(table); i++) {
		struct pp_bench *b = made_bench();
		struct pp_transfer t;

		table[i].spoil(b);
		judge(b, &t);
		without_cells(i, t.verdict, t.passed);
		without_counters(i, t.verdict, t.passed);
		without_rungs(i, t.verdict, t.passed);
		pp_transfer_done(&t);
		pp_bench_free(b);
	}
}

/* A run that measured nothing says nothing; the document is one all the same. */
static void test_empty(void **state)
{
	struct pp_bench *b = NULL;
	struct pp_transfer t;
	struct pp_buf PP_AUTO_BUF text = PP_BUF(1 << 20);
	struct pp_json j = PP_JSON(&text, false);
	json_t *d;

	(void)state;
	assert_int_equal(pp_bench_new(&b), 0);
	b->ended = "no peer";
	judge(b, &t);
	assert_int_equal(t.verdict, PP_UNKNOWN);
	needs(t.sentence, "no peer");
	pp_json_object(&j, NULL);
	pp_transfer_write(&j, "transfer", &t, &pp_margins_default);
	pp_json_end_object(&j);
	d = json_loads(pp_buf_text(&text), 0, NULL);
	assert_non_null(d);
	json_decref(d);
	pp_transfer_done(&t);
	pp_bench_free(b);
}

static int load(void **state)
{
	struct pp_error err = {0};

	(void)state;
	return pp_known_load(PEERPATH_SOURCE_DATADIR "/explain", &known, &err);
}

static int unload(void **state)
{
	(void)state;
	known = pp_known_free(known);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_alike),
		cmocka_unit_test(test_causes),
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_hops),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_margins_are_configuration),
		cmocka_unit_test(test_removal),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests_name("transfer", tests, load, unload);
}
