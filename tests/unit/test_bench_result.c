/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run into a document and back. Judges from outside: jansson reads what is written, and a
 * document that lacks a member never reads as if it said the good thing.
 */
#include "bench_made.h"

#include <errno.h>

#include "base/banned.h"

static char *text_of(const struct pp_bench *b)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(1 << 24);
	struct pp_json j = PP_JSON(&text, false);

	pp_json_object(&j, NULL);
	pp_bench_write(&j, b);
	pp_json_end_object(&j);
	assert_int_equal(text.failed, 0);
	return pp_take(text.data);
}

static json_t *document_of(const struct pp_bench *b)
{
	char *PP_AUTO_FREE text = text_of(b);
	json_error_t why;
	json_t *d = json_loads(text, JSON_REJECT_DUPLICATES, &why);

	if (!d)
		fail_msg("%s: %s", why.text, text);
	return d;
}

static void goes_round(const struct pp_bench *b)
{
	char *PP_AUTO_FREE first = text_of(b), *PP_AUTO_FREE second = NULL;
	json_t *d = document_of(b);
	struct pp_bench *again = NULL;
	struct pp_error err = {0};

	if (pp_bench_read(d, &again, &err))
		fail_msg("%s", err.text);
	second = text_of(again);
	assert_string_equal(first, second);
	json_decref(d);
	pp_bench_free(again);
}

/* Every member has a value of its own, so that no two can be taken for each other. */
static void fill(struct pp_bench *b)
{
	struct pp_bench_rung *r = &b->pairs[0].rung[PP_RUNG_PEERMEM];
	struct pp_bench_cell *c = &b->pairs[0].cells[0];

	b->simulated = true;
	b->whole = false;
	b->ended = "the peer was lost: \"b\"\n\x01";
	b->pattern = PP_ALL_TO_ALL;
	b->second = "ib_write_bw said so";
	b->nodes[1].fingerprint = NULL;
	b->pairs[0].rail = 7;
	b->pairs[0].end[0].port_mbps = -1;
	b->pairs[0].end[1].gid_index = -1;
	*r = (struct pp_bench_rung){.rung = PP_RUNG_PEERMEM,
				    .state = PP_BENCH_FAILED,
				    .why = "ibv_reg_mr: EFAULT",
				    .error = 14,
				    .status = 12,
				    .end = 1,
				    .call = "ibv_reg_mr",
				    .memory = PP_MEMORY_CUDA_VMM,
				    .offset = "not modelled",
				    .link = {"direct", "staged"}};
	r->attempts = pp_arena_array(b->arena, 2, sizeof(*r->attempts));
	r->n_attempts = 2;
	r->attempts[0] = (struct pp_bench_attempt){
		1, "dmabuf", "ibv_reg_dmabuf_mr", "offset 0", 95, false, 1234, -1, 4096};
	r->attempts[1] = (struct pp_bench_attempt){
		0, "peermem", "cuMemGetHandleForAddressRange", NULL, 801, true, 5, 1, -1};
	r->negatives = pp_arena_array(b->arena, 1, sizeof(*r->negatives));
	r->n_negatives = 1;
	r->negatives[0] = (struct pp_bench_negative){"wrong rkey", true, false, "success"};
	r->evidence = pp_arena_array(b->arena, 1, sizeof(*r->evidence));
	r->n_evidence = 1;
	r->evidence[0] = (struct pp_bench_evidence){.end = 1,
						    .about = PP_REGISTRATION,
						    .witness = PP_BY_LIBRARY,
						    .scope = PP_OF_PROCESS,
						    .registration = "peermem",
						    .state = PP_REFUTED,
						    .gpu_memory = true,
						    .other = true,
						    .of_regions = 3,
						    .pid = 4711,
						    .comm = "a\nb",
						    .hca = "mlx5_0",
						    .bdf = "0000:3b:00.0",
						    .mrn = 17,
						    .lkey = 0xffffffff,
						    .length = 1 << 20,
						    .exporter = "nvidia",
						    .importer = "0000:3b:00.1",
						    .inode = 900,
						    .why = "so it is",
						    .simulated = true,
						    .looked = 1796000001 * PP_SECOND,
						    .took_ns = 12345};
	r->evidence[0].sightings = pp_arena_array(b->arena, 1, sizeof(struct pp_bench_sighting));
	r->evidence[0].n_sightings = 1;
	r->evidence[0].sightings[0] =
		(struct pp_bench_sighting){"bufinfo", "dmabuf", "00001000 nvidia", true};
	r->evidence[0].missing = pp_arena_array(b->arena, 1, sizeof(struct pp_bench_missing));
	r->evidence[0].n_missing = 1;
	r->evidence[0].missing[0] =
		(struct pp_bench_missing){"self-probe", "refused", "EPERM", "run as root"};
	c->state = PP_BENCH_VOID;
	c->why = "GPU throttled";
	c->error = 5;
	c->status = 10;
	c->sample[0] = NAN;
	c->p50 = 0;
	c->cpu_seconds_per_gb[1] = NAN;
	c->wrong = 3;
	c->first_wrong = 4096;
	c->arrival_skew = 12.5;
	c->gpu_mhz[1] = -1;
	c->throttle[0] = "sw thermal slowdown";
	c->measure = PP_BIDIRECTIONAL;
	c->op = PP_SEND;
	c->together = true;
}

static void test_round(void **state)
{
	struct pp_bench *b = made_bench();

	(void)state;
	goes_round(b);
	fill(b);
	goes_round(b);
	pp_bench_free(b);
}

/* A run that ended before anything was known is a document too. */
static void test_nothing(void **state)
{
	struct pp_bench *b = NULL;

	(void)state;
	assert_int_equal(pp_bench_new(&b), 0);
	goes_round(b);
	b->n_pairs = 1; /* and a pair of which nothing was filled in */
	b->n_nodes = 1;
	b->pairs = pp_arena_array(b->arena, 1, sizeof(*b->pairs));
	b->nodes = pp_arena_array(b->arena, 1, sizeof(*b->nodes));
	goes_round(b);
	pp_bench_free(b);
}

static void test_values(void **state)
{
	struct pp_bench *b = made_bench(), *again = NULL;
	struct pp_error err = {0};
	const struct pp_bench_cell *c;
	json_t *d, *cell;

	(void)state;
	fill(b);
	d = document_of(b);
	cell = json_array_get(
		json_object_get(json_array_get(json_object_get(d, "pairs"), 0), "cells"), 0);
	assert_int_equal(json_integer_value(json_object_get(cell, "size_bytes")), 65536);
	assert_string_equal(json_string_value(json_object_get(cell, "operation")), "send");
	assert_true(json_is_null(json_object_get(cell, "p50_us")));
	assert_true(json_is_null(json_array_get(json_object_get(cell, "samples_mb_per_s"), 0)));
	assert_int_equal(pp_bench_read(d, &again, &err), 0);
	c = &again->pairs[0].cells[0];
	assert_true(isnan(c->sample[0]));
	assert_true(isnan(c->cpu_seconds_per_gb[1]));
	assert_true(c->sample[1] == 40000);
	assert_int_equal(c->gpu_mhz[1], -1);
	assert_int_equal(c->wrong, 3);
	assert_string_equal(again->ended, b->ended);
	assert_int_equal(again->pairs[0].rung[PP_RUNG_PEERMEM].attempts[0].error, 95);
	assert_true(again->pairs[0].rung[PP_RUNG_PEERMEM].attempts[1].cuda);
	assert_int_equal(again->pairs[0].end[0].port_mbps, -1);
	assert_int_equal(again->started, b->started);
	json_decref(d);
	pp_bench_free(again);
	pp_bench_free(b);
}

static void refused(json_t *d, const char *where)
{
	struct pp_bench *b = NULL;
	struct pp_error err = {0};

	assert_int_equal(pp_bench_read(d, &b, &err), -EBADMSG);
	assert_null(b);
	if (!strstr(err.text, where))
		fail_msg("'%s' lacks '%s'", err.text, where);
}

static json_t *first(json_t *d, const char *list)
{
	json_t *pair = json_array_get(json_object_get(d, "pairs"), 0);

	return json_array_get(json_object_get(pair, list), 0);
}

/* What says that something is bad, or not real, cannot be left out. */
static void test_needed(void **state)
{
	static const char *const of_cell[] = {"wrong_bytes", "checked_bytes", "state",	 "rung",
					      "size_bytes",  "counters",      "together"};
	struct pp_bench *b = made_bench();

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(of_cell); i++) {
		json_t *d = document_of(b);

		json_object_del(first(d, "cells"), of_cell[i]);
		refused(d, of_cell[i]);
		json_decref(d);
	}
	for (unsigned int i = 0; i < 3; i++) {
		json_t *d = document_of(b);
		json_t *of = i == 0 ? d : first(d, i == 1 ? "ends" : "rungs");

		json_object_del(of, "simulated");
		refused(d, "simulated is missing");
		json_decref(d);
	}
	pp_bench_free(b);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *list, *key, *value, *where;
	} table[] = {
		{"cells", "size_bytes", "-1", "pairs[0].cells[0].size_bytes is out of range"},
		{"cells", "size_bytes", "1.5", "is no whole number"},
		{"cells", "size_bytes", "\"64K\"", "is no whole number"},
		{"cells", "rung", "\"nvlink\"", "cells[0].rung is no word"},
		{"cells", "samples_mb_per_s", "[1, -2]", "samples_mb_per_s[1] is out of range"},
		{"cells", "samples_mb_per_s", "{}", "is no list"},
		{"cells", "end", "2", "pairs[0] names an end or a node"},
		{"cells", "counters", "[{\"end\": 9, \"name\": \"x\", \"delta\": 1}]",
		 "names an end"},
		{"cells", "gpu_lowest_mhz", "[1]", "has not two elements"},
		{"cells", "why", "7", "is no text"},
		{"cells", "why", "\"a\\u0000b\"", "NUL byte"},
		{"ends", "node", "2", "names an end or a node"},
		{"ends", "gid_index", "99999999999", "out of range"},
		{"rungs", "rung", "\"host\"", "is there twice"},
		{"rungs", "state", "\"fine\"", "is no word that this version knows"},
	};
	struct pp_bench *b = made_bench();

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(table); i++) {
		json_t *d = document_of(b);
		json_t *value = json_loads(table[i].value, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

		assert_non_null(value);
		json_object_set_new(first(d, table[i].list), table[i].key, value);
		refused(d, table[i].where);
		json_decref(d);
	}
	refused(NULL, "no object");
	pp_bench_free(b);
}

/* An older document without a rung, or without what may be unknown. */
static void test_older(void **state)
{
	struct pp_bench *b = made_bench(), *again = NULL;
	struct pp_error err = {0};
	json_t *d = document_of(b), *pair = json_array_get(json_object_get(d, "pairs"), 0);

	(void)state;
	json_array_remove(json_object_get(pair, "rungs"), PP_RUNG_DMABUF);
	json_object_del(first(d, "ends"), "port_mbit_per_s");
	json_object_del(first(d, "cells"), "p99_us");
	json_object_set_new(d, "of_a_newer_one", json_true());
	assert_int_equal(pp_bench_read(d, &again, &err), 0);
	assert_int_equal(again->pairs[0].rung[PP_RUNG_DMABUF].state, PP_BENCH_NOT_REACHED);
	assert_string_equal(again->pairs[0].rung[PP_RUNG_DMABUF].why, "not in the document");
	assert_int_equal(again->pairs[0].end[0].port_mbps, -1);
	json_decref(d);
	pp_bench_free(again);
	pp_bench_free(b);
}

static void test_words(void **state)
{
	enum pp_rung rung;
	enum pp_measure measure;
	enum pp_pattern pattern;

	(void)state;
	for (unsigned int i = 0; i < PP_RUNGS; i++) {
		assert_int_equal(pp_rung_parse(pp_rung_name((enum pp_rung)i), &rung), 0);
		assert_int_equal(rung, i);
	}
	for (unsigned int i = 0; i < PP_MEASURES; i++) {
		assert_int_equal(pp_measure_parse(pp_measure_name((enum pp_measure)i), &measure),
				 0);
		assert_int_equal(measure, i);
	}
	for (unsigned int i = 0; i <= PP_INCAST; i++) {
		assert_int_equal(pp_pattern_parse(pp_pattern_name((enum pp_pattern)i), &pattern),
				 0);
		assert_int_equal(pattern, i);
	}
	assert_int_equal(pp_rung_parse("gdr", &rung), -EINVAL);
	assert_int_equal(pp_pattern_parse("", &pattern), -EINVAL);
}

/* What the kernel's documents say of these: sysfs-class-infiniband, mlx5 counters.rst. */
static void test_losses(void **state)
{
	(void)state;
	assert_int_equal(pp_counter_loss("out_of_sequence"), PP_LOSS_ORDER);
	assert_int_equal(pp_counter_loss("local_ack_timeout_err"), PP_LOSS_RETRANSMIT);
	assert_int_equal(pp_counter_loss("port_xmit_discards"), PP_LOSS_DISCARD);
	assert_int_equal(pp_counter_loss("port_xmit_data"), PP_LOSSES);
	assert_int_equal(pp_counter_loss("np_cnp_sent"), PP_LOSSES);
	assert_int_equal(pp_counter_loss("port_xmit_wait"), PP_LOSSES);
	assert_string_equal(pp_loss_name(PP_LOSS_ORDER), "out-of-sequence");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round),  cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_values), cmocka_unit_test(test_needed),
		cmocka_unit_test(test_older),  cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_words),  cmocka_unit_test(test_losses),
	};

	return cmocka_run_group_tests_name("bench-result", tests, NULL, NULL);
}
