/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run as a document and back: every byte of it but the places of lines. A document without one
 * of its members is refused, whichever it is; so are numbers out of their range and lists that are
 * too long. Newer schemas are told apart from what is no document.
 */
#include "made_run.h"

#include <errno.h>

/* What no made_run() has. */
static struct pp_nccl_run *whole(void)
{
	struct pp_nccl_run *r = made_run(PP_NCCL_ARM_B);
	struct pp_nccl_run_node *n = &r->node[1];

	made_setting(r, "NCCL_DMABUF_ENABLE", "0", PP_NCCL_FROM_ARM, 2);
	strcpy(r->setting[0].was, "1");
	strcpy(r->setting[0].why, "control B");
	strcpy(r->setting[0].undo, "NCCL_DMABUF_ENABLE=1");
	made_setting(r, "NCCL_DEBUG", "INFO", PP_NCCL_FROM_LOGGING, 2);
	made_setting(r, "NCCL_IB_HCA", "mlx5_0", PP_NCCL_FROM_CONF, 1);
	n->status = 256;
	n->timed_out = n->interrupted = true;
	strcpy(n->died, "rank 1: killed by signal 9");
	n->traffic.port[0].simulated = true;
	n->traffic.n_gpus = 2;
	n->traffic.gpu[0] = (struct pp_traffic_gpu){
		.bdf = "0000:1b:00.0", .known = true, .sampled = true, .sent = 5e9, .received = 1};
	n->traffic.gpu[1] = (struct pp_traffic_gpu){.bdf = "0000:43:00.0", .why = "no such call"};
	n->traffic.host.known = false;
	n->traffic.host.read = n->traffic.host.written = 0;
	strcpy(n->traffic.host.why, "perf_event_paranoid is 4");
	n->traffic.host.io_known = true;
	n->traffic.host.io_in = 0x1p62;
	n->traffic.host.io_out = 3;
	n->kernel.gpu_unknown = 4;
	strcpy(n->kernel.why, "not root");
	n->peermem_known = false;
	n->peermem = PP_NCCL_PRESENT;
	n->observed.pid = 4711;
	strcpy(n->observed.host, "gpu1");
	strcpy(n->observed.program, "all_reduce_perf");
	n->observed.unknown = (struct pp_observed_way){1, 2};
	n->observed.gone = 3;
	n->observed.probes = 4;
	n->observed.queue_pairs = 5;
	n->observed.n_errors = 1;
	n->observed.error[0] = (struct pp_observed_error){"ibv_reg_mr", 14, 6};
	n->observed.n_devices = 1;
	strcpy(n->observed.device[0], "mlx5_0");
	strcpy(n->observed.exporter, "nv_dmabuf");
	n->observed.malformed = 7;
	n->log_dropped = 8;
	n->simulated = r->simulated = r->judgement.simulated = true;
	r->missing = 1;
	strcpy(r->missing_why, "gpu2: no answer");
	r->judgement.ends = (struct pp_nccl_ends){.gdr = 1,
						  .staged = 2,
						  .socket = 3,
						  .nvlink = 4,
						  .gdr_sends = 5,
						  .staged_sends = 6,
						  .within = 7,
						  .unpaired = 8,
						  .ambiguous = 9,
						  .unknown_hosts = 10,
						  .ll = 11,
						  .unknown_net = 12,
						  .unknown_width = 13,
						  .narrow = 14};
	strcpy(r->judgement.missing, "1, 8-15");
	strcpy(r->judgement.next, "NCCL_DEBUG=INFO ...");
	r->judgement.version_by_format = true;
	r->judgement.n_why = 1;
	strcpy(r->judgement.why[0].text, "rank 1 of 2: no line");
	strcpy(r->in_network, "NVLS");
	strcpy(r->root_error, "IBV_WC_RETRY_EXC_ERR: \"no path\"");
	r->speed.wrong = 1;
	r->speed.unchecked = 2;
	return r;
}

static char *written(const struct pp_nccl_run *r, const char *schema)
{
	struct pp_buf text = PP_BUF(16 << 20);
	struct pp_json j = PP_JSON(&text, false);

	pp_json_object(&j, NULL);
	pp_json_str(&j, "schema", schema);
	pp_json_array(&j, "runs");
	pp_nccl_run_write(&j, NULL, r);
	pp_json_end_array(&j);
	pp_json_end_object(&j);
	assert_false(text.failed);
	return text.data;
}

static void test_round_trip(void **state)
{
	struct pp_nccl_run *r = whole(), *back;
	char *text = written(r, "peerpath.nccl_run/1"), *again;
	struct pp_nccl_runs runs;
	struct pp_error err = {0};

	(void)state;
	assert_int_equal(pp_nccl_runs_read(text, strlen(text), &runs, &err), 0);
	back = runs.arm[PP_NCCL_ARM_B];
	assert_non_null(back);
	again = written(back, "peerpath.nccl_run/1");
	assert_string_equal(text, again);
	/* also what a table of members would have forgotten */
	assert_memory_equal(r->node, back->node, 2 * sizeof(*r->node));
	free(back->node);
	back->node = r->node;
	assert_memory_equal(r, back, sizeof(*r));
	back->node = NULL;
	back->n_nodes = 0;
	pp_nccl_runs_done(&runs);
	pp_nccl_run_free(r);
	free(again);
	free(text);
}

static json_t *document(void)
{
	struct pp_nccl_run *r = whole();
	char *text = written(r, "peerpath.nccl_run/1");
	json_t *d = json_loads(text, 0, NULL);

	assert_non_null(d);
	free(text);
	pp_nccl_run_free(r);
	return d;
}

static int read_back(const json_t *d, struct pp_error *err)
{
	struct pp_nccl_run *r = NULL;
	int code = pp_nccl_run_read(json_array_get(json_object_get(d, "runs"), 0), &r, err);

	pp_nccl_run_free(r);
	return code;
}

/* Each member of each object, taken out, then put back. */
static unsigned int remove_each(const json_t *d, json_t *in)
{
	json_t *members = json_is_object(in) ? json_copy(in) : json_object(), *v;
	struct pp_error err = {0};
	unsigned int n = 0;
	const char *key;
	size_t i;

	json_array_foreach(in, i, v)
	{
		n += remove_each(d, v);
	}
	json_object_foreach(members, key, v)
	{
		n += 1 + remove_each(d, v);
		assert_int_equal(json_object_del(in, key), 0);
		assert_int_equal(read_back(d, &err), -EBADMSG);
		assert_non_null(strstr(err.text, key));
		assert_int_equal(json_object_set(in, key, v), 0);
	}
	json_decref(members);
	return n;
}

static void test_nothing_may_lack(void **state)
{
	json_t *d = document(), *run = json_array_get(json_object_get(d, "runs"), 0);
	struct pp_error err = {0};

	(void)state;
	assert_int_equal(read_back(d, &err), 0);
	assert_true(remove_each(d, run) > 200);
	json_decref(d);
}

static void test_hostile(void **state)
{
	static const struct {
		const char *key, *value, *says;
	} cases[] = {
		{"nodes_missing", "-1", "out of range"},
		{"nodes_missing", "4294967296", "out of range"},
		{"nodes_missing", "1.5", "no whole number"},
		{"arm", "\"D\"", "no word"},
		{"arm", "1", "no word"},
		{"nodes", "{}", "no list"},
		{"nodes", "[1]", "nodes[0]"},
		{"speed", "[]", "no object"},
		{"simulated", "0", "no boolean"},
		{"simulated", "null", "no boolean"},
		{"command", "7", "no text"},
		{"command", "\"a\\u0000b\"", "NUL"},
		{"started_ns", "null", "no whole number"},
	};
	struct pp_error err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		json_t *d = document(), *run = json_array_get(json_object_get(d, "runs"), 0);

		json_object_set_new(
			run, cases[i].key,
			json_loads(cases[i].value, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
		assert_int_equal(read_back(d, &err), -EBADMSG);
		assert_non_null(strstr(err.text, cases[i].says));
		json_decref(d);
	}
}

static void test_many_nodes(void **state)
{
	json_t *d = document(), *run = json_array_get(json_object_get(d, "runs"), 0),
	       *nodes = json_object_get(run, "nodes");
	struct pp_error err = {0};

	(void)state;
	while (json_array_size(nodes) <= PP_NCCL_RUN_NODES)
		json_array_append(nodes, json_array_get(nodes, 0));
	assert_int_equal(read_back(d, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "too many"));
	json_decref(d);
}

/* Cut at a character, without what drives a terminal. */
static void test_texts(void **state)
{
	json_t *d = document(), *run = json_array_get(json_object_get(d, "runs"), 0);
	struct pp_nccl_run *r = NULL;
	struct pp_error err = {0};

	(void)state;
	json_object_set_new(run, "nccl_version",
			    json_string("0123456789012345678901234567\u20ac\u20ac"));
	json_object_set_new(run, "networks", json_string("IB\033[2J"));
	assert_int_equal(pp_nccl_run_read(run, &r, &err), 0);
	assert_string_equal(r->library_version, "0123456789012345678901234567\u20ac");
	assert_string_equal(r->networks, "IB?[2J");
	pp_nccl_run_free(r);
	json_decref(d);
}

/* Whoever takes the mark from one place has it still at the others. */
static void test_simulated_is_one(void **state)
{
	json_t *d = document(), *run = json_array_get(json_object_get(d, "runs"), 0);
	struct pp_nccl_run *r = NULL;
	struct pp_error err = {0};

	(void)state;
	json_object_set_new(run, "simulated", json_false());
	assert_int_equal(pp_nccl_run_read(run, &r, &err), 0);
	assert_true(r->simulated);
	pp_nccl_run_free(r);
	json_decref(d);
}

static void read_text(const char *text, int code, const char *says)
{
	struct pp_nccl_runs runs;
	struct pp_error err = {0};

	assert_int_equal(pp_nccl_runs_read(text, strlen(text), &runs, &err), code);
	assert_non_null(strstr(err.text, says));
	assert_null(strchr(err.text, '\n'));
}

static void test_documents(void **state)
{
	struct pp_nccl_run *r = whole();
	char *text = written(r, "peerpath.nccl_run/2");

	(void)state;
	read_text(text, -ENOTSUP, "newer");
	read_text("", -EBADMSG, "no JSON");
	read_text("[]", -EBADMSG, "no document");
	read_text("{\"schema\": \"peerpath.bench/1\"}", -EBADMSG, "no document");
	read_text("{\"schema\": \"peerpath.nccl_run/0\"}", -EBADMSG, "no document");
	read_text("{\"schema\": \"peerpath.nccl_run/1\"}", -EBADMSG, "runs");
	read_text("{\"schema\": \"peerpath.nccl_run/1\", \"runs\": [{}]}", -EBADMSG, "runs[0].arm");
	free(text);
	pp_nccl_run_free(r);
}

static void test_one_of_each_arm(void **state)
{
	json_t *d = document(), *runs = json_object_get(d, "runs");
	char *text;

	(void)state;
	json_array_append(runs, json_array_get(runs, 0));
	text = json_dumps(d, 0);
	read_text(text, -EBADMSG, "another");
	free(text);
	json_decref(d);
}

static void test_words(void **state)
{
	enum pp_nccl_arm a;

	(void)state;
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++) {
		assert_int_equal(pp_nccl_arm_parse(pp_nccl_arm_name((enum pp_nccl_arm)i), &a), 0);
		assert_int_equal(a, i);
		assert_true(*pp_nccl_arm_title(a));
	}
	assert_int_equal(pp_nccl_arm_parse("a", &a), -EINVAL);
	assert_int_equal(pp_nccl_arm_parse("", &a), -EINVAL);
	assert_null(pp_nccl_run_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_nothing_may_lack),
		cmocka_unit_test(test_hostile),	   cmocka_unit_test(test_many_nodes),
		cmocka_unit_test(test_texts),	   cmocka_unit_test(test_simulated_is_one),
		cmocka_unit_test(test_documents),  cmocka_unit_test(test_one_of_each_arm),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
