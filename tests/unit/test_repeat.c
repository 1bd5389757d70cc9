/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two runs beside each other, by the runbook: the same pair after a reboot must give the same;
 * another root complex or kernel is no comparison; a name of a device that changed is the same.
 */
#include "bench_made.h"

#include "cli/repeat_text.h"
#include "base/banned.h"

static void nothing(struct pp_bench *b)
{
	(void)b;
}

static void renamed(struct pp_bench *b)
{
	b->pairs[0].end[0].device = "mlx5_4";
	b->pairs[0].name = "a:mlx5_4 - b:mlx5_0";
}

static void scaled(struct pp_bench *b, enum pp_rung rung, enum pp_measure measure, uint64_t size,
		   double by)
{
	struct pp_bench_cell *c = made_find(b, rung, measure, size);

	for (unsigned int i = 0; i < c->n_samples; i++)
		c->sample[i] *= by;
}

static void slower(struct pp_bench *b)
{
	scaled(b, PP_RUNG_DMABUF, PP_BANDWIDTH, 4 << 20, 0.5);
}

static void little_slower(struct pp_bench *b)
{
	scaled(b, PP_RUNG_DMABUF, PP_BANDWIDTH, 4 << 20, 0.96);
}

static void faster(struct pp_bench *b)
{
	scaled(b, PP_RUNG_DMABUF, PP_BANDWIDTH, 4 << 20, 1.2);
}

static void small_slower(struct pp_bench *b)
{
	scaled(b, PP_RUNG_DMABUF, PP_BANDWIDTH, 65536, 0.5);
}

static void later(struct pp_bench *b)
{
	scaled(b, PP_RUNG_HOST, PP_LATENCY, 8, 2);
}

static void wrong(struct pp_bench *b)
{
	made_find(b, PP_RUNG_DMABUF, PP_BANDWIDTH, 65536)->wrong = 1;
}

static void cell_failed(struct pp_bench *b)
{
	struct pp_bench_cell *c = made_find(b, PP_RUNG_DMABUF, PP_BANDWIDTH, 4 << 20);

	c->state = PP_BENCH_FAILED;
	c->why = "local protection error";
	c->n_samples = 0;
}

static void rung_failed(struct pp_bench *b)
{
	struct pp_bench_pair *p = &b->pairs[0];

	p->rung[PP_RUNG_DMABUF].state = PP_BENCH_FAILED;
	p->rung[PP_RUNG_DMABUF].why = "ibv_reg_dmabuf_mr: EOPNOTSUPP";
	for (unsigned int i = p->n_cells; i--;)
		if (p->cells[i].rung == PP_RUNG_DMABUF)
			made_drop(p, i);
}

static void rung_skipped(struct pp_bench *b)
{
	rung_failed(b);
	b->pairs[0].rung[PP_RUNG_DMABUF].state = PP_BENCH_SKIPPED;
}

static void kernel(struct pp_bench *b)
{
	b->nodes[1].fingerprint = "f2";
}

static void class_unknown(struct pp_bench *b)
{
	b->nodes[0].topology = NULL;
}

static void other_gpu(struct pp_bench *b)
{
	b->pairs[0].end[1].gpu_uuid = "GPU-9";
}

static void other_node(struct pp_bench *b)
{
	b->nodes[1].id = "c";
}

static void fewer_sizes(struct pp_bench *b)
{
	made_drop(&b->pairs[0], 3);
}

static void other_memory(struct pp_bench *b)
{
	b->pairs[0].rung[PP_RUNG_DMABUF].memory = PP_MEMORY_CUDA_VMM;
}

static void cut(struct pp_bench *b)
{
	b->whole = false;
}

static const struct {
	const char *name;
	void (*after)(struct pp_bench *);
	enum pp_verdict verdict, turned; /* turned: the runs the other way round */
	bool alike;
	const char *sentence;
} table[] = {
	{"same", nothing, PP_PASS, PP_PASS, true, "as before: 9 measurements, none worse"},
	{"renamed", renamed, PP_PASS, PP_PASS, true, "as before"},
	{"slower", slower, PP_DEGRADED, PP_PASS, true,
	 "worse: 1 of 9 measurements by more than 5.0 %; bandwidth of write, 4 MiB by dmabuf at "
	 "0.50 of before"},
	{"within", little_slower, PP_PASS, PP_PASS, true, "as before"},
	{"faster", faster, PP_PASS, PP_DEGRADED, true, "some better"},
	{"small", small_slower, PP_PASS, PP_PASS, true, "as before"},
	{"latency", later, PP_PASS, PP_PASS, true, "as before"},
	{"wrong", wrong, PP_FAIL, PP_PASS, true, "64 KiB by dmabuf: wrong bytes"},
	{"cell failed", cell_failed, PP_FAIL, PP_PASS, true,
	 "gone: bandwidth of write, 4 MiB by dmabuf: local protection error"},
	{"rung failed", rung_failed, PP_FAIL, PP_PASS, true,
	 "gone: dmabuf: ibv_reg_dmabuf_mr: EOPNOTSUPP"},
	{"rung skipped", rung_skipped, PP_UNKNOWN, PP_UNKNOWN, false,
	 "unlike, and so not compared: dmabuf was run before only"},
	{"kernel", kernel, PP_UNKNOWN, PP_UNKNOWN, false, "software of b: f1 before, f2 after"},
	{"class", class_unknown, PP_UNKNOWN, PP_UNKNOWN, false,
	 "topology class of a is not known after"},
	{"gpu", other_gpu, PP_UNKNOWN, PP_UNKNOWN, false, "was measured before only; and more"},
	{"node", other_node, PP_UNKNOWN, PP_UNKNOWN, false, "node b was there before only"},
	{"sizes", fewer_sizes, PP_UNKNOWN, PP_UNKNOWN, false,
	 "bandwidth of write, 16 MiB by host was asked for before only"},
	{"memory", other_memory, PP_UNKNOWN, PP_UNKNOWN, false,
	 "memory of dmabuf: cuda before, cuda-vmm after"},
	{"cut", cut, PP_UNKNOWN, PP_UNKNOWN, false, "the run after is not whole"},
	{"simulated", made_simulated, PP_UNKNOWN, PP_UNKNOWN, false, "simulated after only"},
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(table); i++) {
		struct pp_bench *before = made_bench(), *after = made_bench();
		struct pp_repeat r;

		table[i].after(after);
		assert_int_equal(pp_repeat_compare(before, after, &pp_margins_default, &r), 0);
		if (r.verdict != table[i].verdict || r.alike != table[i].alike ||
		    !strstr(r.sentence, table[i].sentence))
			fail_msg("%s: %s: %s", table[i].name, pp_verdict_name(r.verdict),
				 r.sentence);
		pp_repeat_done(&r);
		assert_int_equal(pp_repeat_compare(after, before, &pp_margins_default, &r), 0);
		if (r.verdict != table[i].turned)
			fail_msg("%s, turned: %s: %s", table[i].name, pp_verdict_name(r.verdict),
				 r.sentence);
		pp_repeat_done(&r);
		pp_bench_free(before);
		pp_bench_free(after);
	}
}

/* A comparison of simulations is one of them; it proves nothing of a network. */
static void test_simulations(void **state)
{
	struct pp_bench *a = made_bench(), *b = made_bench();
	struct pp_repeat r;

	(void)state;
	made_simulated(a);
	made_simulated(b);
	assert_int_equal(pp_repeat_compare(a, b, &pp_margins_default, &r), 0);
	assert_true(r.alike);
	assert_int_equal(r.verdict, PP_UNKNOWN);
	assert_non_null(strstr(r.sentence, "in simulation, as before"));
	pp_repeat_done(&r);
	pp_bench_free(a);
	pp_bench_free(b);
}

/* Nor is one on the kernel's rdma_rxe, which nobody called a simulation. */
static void test_software(void **state)
{
	struct pp_bench *a = made_bench(), *b = made_bench();
	struct pp_repeat r;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		a->pairs[0].end[i].hca = b->pairs[0].end[i].hca = "virtual/rxe0";
		a->pairs[0].end[i].driver = b->pairs[0].end[i].driver = "rdma_rxe";
	}
	assert_int_equal(pp_repeat_compare(a, b, &pp_margins_default, &r), 0);
	assert_true(r.alike);
	assert_false(r.simulated);
	assert_int_equal(r.verdict, PP_UNKNOWN);
	assert_non_null(strstr(r.sentence, "on rdma_rxe, software in the kernel, as before"));
	pp_repeat_done(&r);
	pp_bench_free(a);
	pp_bench_free(b);
}

/* The document; and latency counts the other way round. */
static void test_document(void **state)
{
	struct pp_bench *a = made_bench(), *b = made_bench();
	struct pp_buf PP_AUTO_BUF text = PP_BUF(1 << 20);
	struct pp_json j = PP_JSON(&text, false);
	struct pp_repeat r;
	json_t *d, *rows, *row;
	size_t i, worse = 0;

	(void)state;
	later(b);
	assert_int_equal(pp_repeat_compare(a, b, &pp_margins_default, &r), 0);
	pp_repeat_write(&j, NULL, &r);
	d = json_loads(pp_buf_text(&text), 0, NULL);
	assert_non_null(d);
	rows = json_object_get(d, "rows");
	assert_int_equal(json_array_size(rows), MADE_CELLS);
	for (i = 0; i < json_array_size(rows); i++) {
		row = json_array_get(rows, i);
		if (strcmp(json_string_value(json_object_get(row, "state")), "worse") != 0)
			continue;
		worse++;
		assert_string_equal(json_string_value(json_object_get(row, "measure")), "latency");
		assert_true(json_is_false(json_object_get(row, "decides")));
		assert_true(fabs(json_real_value(json_object_get(row, "after_to_before_ratio")) -
				 2) < 1e-9 ||
			    json_integer_value(json_object_get(row, "after_to_before_ratio")) == 2);
	}
	assert_int_equal(worse, 1);
	json_decref(d);
	pp_repeat_done(&r);
	pp_bench_free(a);
	pp_bench_free(b);
}

static char *shown(const struct pp_repeat *r, const struct pp_bench *before)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct pp_out *o = pp_out_new(false, f, 80, false);

	assert_non_null(o);
	pp_repeat_text(o, r, before);
	assert_int_equal(pp_out_finish(o), 0);
	pp_out_free(o);
	(void)fclose(f);
	return text;
}

static void test_text(void **state)
{
	struct pp_bench *a = made_bench(), *b = made_bench();
	struct pp_repeat r;
	char *text;

	(void)state;
	slower(b);
	assert_int_equal(pp_repeat_compare(a, b, &pp_margins_default, &r), 0);
	text = shown(&r, a);
	assert_non_null(strstr(text, "worse  a:mlx5_0"));
	assert_non_null(strstr(text, "0.50 of before"));
	assert_non_null(strstr(text, "verdict               degraded"));
	free(text);
	pp_repeat_done(&r);
	kernel(b);
	assert_int_equal(pp_repeat_compare(a, b, &pp_margins_default, &r), 0);
	text = shown(&r, a);
	assert_non_null(strstr(text, "  software of b: f1 before, f2 after"));
	free(text);
	pp_repeat_done(&r);
	pp_bench_free(a);
	pp_bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),	 cmocka_unit_test(test_simulations),
		cmocka_unit_test(test_software), cmocka_unit_test(test_document),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests_name("repeat", tests, NULL, NULL);
}
