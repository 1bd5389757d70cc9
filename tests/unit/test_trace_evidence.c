/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evidence of some processes: whose rows are kept, what is said of one that shows none, and what
 * the records hold. What is right comes from the machine that is made here, and from DESIGN's
 * words.
 */
#include "trace_world.h"

#include <jansson.h>

#include "trace/evidence.h"

static const uint64_t MIB = 1 << 20;
static const char NIC[] = "0000:3b:00.0";

/* Process 42 has a DMA-BUF region, 43 host memory; bufinfo and the self-triggered probe agree. */
static void two(struct world *w)
{
	struct pp_event *e;

	world_init(w);
	world_hca(w, "mlx5_0", NIC, "mlx5_core");
	world_process(w, 42, 0);
	world_process(w, 43, 4);
	world_mr(w, 7, 42, 2 * MIB);
	world_mr(w, 8, 43, 4096);
	e = world_region(w, 42, "mlx5_0", 7, PP_YES, PP_UNSAID);
	event_buffer(e, "nv_dmabuf", NIC, 900, 2 * MIB);
	world_region(w, 43, "mlx5_0", 8, PP_NO, PP_UNSAID);
	world_buffer(w, "nv_dmabuf", 900, 2 * MIB, NIC, 1);
	world_judge(w);
}

static void keep(struct world *w, const pid_t *pid, size_t n, bool software)
{
	size_t left_out = 1;

	assert_int_equal(pp_evidence_keep(&w->t, pid, n, software, &left_out), 0);
	assert_int_equal(left_out, 0);
}

static void test_rows(void **state)
{
	struct world *w = *state;

	two(w);
	keep(w, (const pid_t[]){42}, 1, false);
	assert_int_equal(w->t.n, 1);
	assert_int_equal(w->t.region[0].pid, 42);
	assert_int_equal(w->t.region[0].registration, PP_REGISTERED_DMABUF);
	assert_int_equal(w->t.region[0].state, PP_PROVEN);
	assert_int_equal(w->t.n_processes, 1);
	assert_int_equal(w->t.process[0].mix, PP_MIX_ONE);
	two(w);
	keep(w, (const pid_t[]){43, 42, 43}, 3, false);
	assert_int_equal(w->t.n, 2);
	assert_int_equal(w->t.n_processes, 2);
}

/* No region seen is a row that proves nothing, whatever else was read. */
static void test_none(void **state)
{
	struct world *w = *state;
	const struct pp_trace_process *p;

	two(w);
	keep(w, (const pid_t[]){44}, 1, false);
	assert_int_equal(w->t.n, 0);
	assert_int_equal(w->t.n_processes, 1);
	p = &w->t.process[0];
	assert_int_equal(p->pid, 44);
	assert_int_equal(p->mix, PP_MIX_UNKNOWN);
	assert_int_equal(p->state, PP_UNPROVEN);
	assert_int_equal(p->missing, 0);
	two(w);
	w->resources.resources.state = PP_SURFACE_REFUSED;
	world_judge(w);
	keep(w, (const pid_t[]){44}, 1, false);
	assert_int_equal(w->t.process[0].missing, 1U << PP_SURFACE_RESOURCES);
}

/* A region whose owner is not known is nobody's, and nobody's absence either. */
static void test_unowned(void **state)
{
	struct world *w = *state;

	two(w);
	world_mr(w, 9, 0, MIB);
	world_judge(w);
	keep(w, (const pid_t[]){44}, 1, false);
	assert_int_equal(w->t.n, 0);
	assert_non_null(strstr(w->t.process[0].why, "1 of which the owner is not known"));
}

static void write_all(const struct pp_trace_table *t, json_t **ret)
{
	struct pp_buf b = PP_BUF(1 << 20);
	struct pp_json j = PP_JSON(&b, false);
	struct pp_evidence e = {.look = {.table = *t}, .at = PP_SECOND, .took = 5};

	pp_json_object(&j, NULL);
	pp_evidence_write(&j, &e);
	pp_json_end_object(&j);
	*ret = json_loadb(pp_buf_text(&b), b.len, 0, NULL);
	assert_non_null(*ret);
	pp_buf_done(&b);
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "(none)";
}

static void test_written(void **state)
{
	struct world *w = *state;
	const json_t *list, *one;
	json_t *all;

	two(w);
	keep(w, (const pid_t[]){42}, 1, false);
	write_all(&w->t, &all);
	list = json_object_get(all, "evidence");
	assert_int_equal(json_array_size(list), 2);
	one = json_array_get(list, 0);
	assert_string_equal(text(one, "about"), "registration");
	assert_string_equal(text(one, "witness"), "kernel");
	assert_string_equal(text(one, "scope"), "mr");
	assert_string_equal(text(one, "registration"), "dmabuf");
	assert_string_equal(text(one, "state"), "proven");
	assert_int_equal(json_integer_value(json_object_get(one, "pid")), 42);
	assert_true(json_is_false(json_object_get(one, "simulated")));
	assert_string_equal(text(json_array_get(list, 1), "scope"), "process");
	assert_int_equal(json_array_size(json_object_get(all, "surfaces")), PP_SURFACES);
	assert_string_equal(text(all, "looked"), "1970-01-01T00:00:01Z");
	json_decref(all);
}

/* The software device's registry is a library's word, and simulated; it proves nothing. */
static void test_software(void **state)
{
	static const struct pp_trace_software row[] = {
		{.hca = "lo", .program = "a", .pid = 42, .lkey = 5, .length = MIB, .dmabuf = true},
		{.hca = "lo", .program = "b", .pid = 43, .lkey = 6, .length = 4096}};
	struct world *w = *state;
	const json_t *one;
	json_t *all;

	world_init(w);
	w->in.software = row;
	w->in.n_software = 2;
	world_judge(w);
	keep(w, (const pid_t[]){42, 44}, 2, true);
	assert_int_equal(w->t.n, 1);
	assert_int_equal(w->t.n_processes, 2);
	write_all(&w->t, &all);
	one = json_array_get(json_object_get(all, "evidence"), 0);
	assert_string_equal(text(one, "witness"), "library");
	assert_string_equal(text(one, "registration"), "dmabuf");
	assert_string_equal(text(one, "state"), "unproven");
	assert_true(json_is_true(json_object_get(one, "simulated")));
	assert_true(json_is_true(
		json_object_get(json_array_get(json_object_get(all, "evidence"), 2), "simulated")));
	json_decref(all);
}

/* On the software device nothing of the kernel is asked: a bare tree would be read otherwise. */
static void test_look(void **state)
{
	static struct pp_trace_software row = {
		.hca = "lo", .program = "a", .pid = 42, .lkey = 5, .length = MIB};
	const struct pp_trace_registry registry = {.item = &row, .n = 1};
	const struct pp_evidence_options o = {.pid = (const pid_t[]){42},
					      .n_pids = 1,

					      .registry = &registry};
	struct pp_evidence e;
	struct pp_source *s;
	struct pp_record *r;
	struct pp_error err = {0};
	size_t n;

	(void)state;
	assert_int_equal(pp_record_new(1 << 20, &r), 0);
	assert_int_equal(pp_source_live(&s, &err), 0);
	pp_source_set_record(s, r);
	assert_int_equal(pp_evidence_look(s, &o, &e), 0);
	(void)pp_record_entries(r, &n);
	assert_int_equal(n, 0);
	assert_int_equal(e.look.table.n, 1);
	assert_int_equal(e.look.table.surface[PP_SURFACE_SOFTWARE].state, PP_SURFACE_READ);
	assert_int_equal(e.look.table.surface[PP_SURFACE_RESOURCES].state, PP_SURFACE_UNASKED);
	pp_evidence_done(&e);
	pp_source_free(s);
	pp_record_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_rows),	  WORLD_TEST(test_none),     WORLD_TEST(test_unowned),
		WORLD_TEST(test_written), WORLD_TEST(test_software), WORLD_TEST(test_look),
	};

	return cmocka_run_group_tests_name("trace-evidence", tests, NULL, NULL);
}
