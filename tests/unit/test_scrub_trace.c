/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded answers of trace, scrubbed: what users call their processes, control groups and buffers
 * is gone, consistently, and what trace says of the recording is what it said before. The grammar
 * is the kernel's: fixtures of every version, and the project's own parser on both texts.
 */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>

#include "base/buf.h"
#include "bundle/scrub.h"
#include "bundle/scrub_program.h"
#include "trace/trace.h"

static const char RESOURCES[] =
	"{\"schema\":\"peerpath.answer/1\",\"name\":\"rdma-resources\",\"outcome\":\"answered\","
	"\"detail\":\"\",\"took_ms\":1,\"data\":{\"core\":true,\"privileged\":true,"
	"\"first_user_namespace\":true,\"first_pid_namespace\":true,\"devices\":[{\"index\":0,"
	"\"name\":\"mlx5_0\",\"mr\":[{\"id\":7,\"parent\":1,\"length\":2097152,\"lkey\":100,"
	"\"rkey\":100,\"tid\":4711}],\"pd\":[{\"id\":1,\"parent\":3}],\"ctx\":[{\"id\":3}],"
	"\"qp\":[]}]}}";
static const char PROCESSES[] =
	"{\"schema\":\"peerpath.answer/1\",\"name\":\"rdma-processes\",\"outcome\":\"answered\","
	"\"detail\":\"\",\"took_ms\":1,\"data\":{\"first_pid_namespace\":true,\"own_proc\":true,"
	"\"init_listed\":true,\"pid_ns\":4026531836,\"unreadable\":0,\"processes\":["
	"{\"pid\":4711,\"started\":99,\"uid\":0,\"comm\":\"alice-train\","
	"\"cgroup\":\"/slurm/uid_1000/job_17/secretproject/alice.scope\",\"pinned_kb\":0,"
	"\"descriptors\":true,\"gpu_descriptors\":4,\"uverbs\":[\"uverbs0\"],\"buffers\":[],"
	"\"threads\":[4711]},"
	"{\"pid\":4712,\"started\":99,\"uid\":0,\"comm\":\"python3.11\","
	"\"cgroup\":\"/kubepods/burstable/podalice/cri-containerd-secretproject.scope\","
	"\"pinned_kb\":0,\"descriptors\":true,\"gpu_descriptors\":0,\"uverbs\":[\"uverbs0\"],"
	"\"buffers\":[],\"threads\":[]}]}}";
static const char BUFFERS[] =
	"{\"schema\":\"peerpath.answer/1\",\"name\":\"dma-buf\",\"outcome\":\"answered\","
	"\"detail\":\"\",\"took_ms\":1,\"data\":{\"text\":\"\\nDma-buf Objects:\\n"
	"size\\tflags\\tmode\\tcount\\texp_name\\tino\\tname\\n"
	"02097152\\t00080002\\t00080007\\t00000001\\tnv_dmabuf\\t00000900\\talice weights\\n"
	"secretproject of alice\\n\\tkernel fence: alice timeline secretproject signalled\\n"
	"\\tAttached Devices:\\n\\t0000:3b:00.0\\nTotal 1 devices attached\\n\\n"
	"\\nTotal 1 objects, 2097152 bytes\\n\"}}";
static const char EVENTS[] =
	"{\"schema\":\"peerpath.answer/1\",\"name\":\"trace-events\",\"outcome\":\"answered\","
	"\"detail\":\"\",\"took_ms\":1,\"data\":{\"lost\":0,\"surfaces\":{\"self-probe\":"
	"{\"state\":\"read\",\"why\":\"\"}},\"events\":[{\"kind\":\"region\",\"by\":\"self-probe\","
	"\"at_ns\":1,\"tid\":4711,\"pid\":4711,\"mrn\":7,\"hca\":\"mlx5_0\",\"comm\":\"alice-"
	"train\","
	"\"exporter\":\"nv_dmabuf\",\"device\":\"0000:3b:00.0\",\"inode\":\"0x384\","
	"\"size\":\"0x200000\",\"has_umem\":true,\"is_peer\":false,\"is_dmabuf\":true}]}}";

static const struct {
	const char *name, *text;
} answers[] = {{"rdma-resources", RESOURCES},
	       {"rdma-processes", PROCESSES},
	       {"dma-buf", BUFFERS},
	       {"trace-events", EVENTS}};

#define HCA "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0"

static void put(struct pp_record *r, enum pp_entry_kind kind, const char *path, const char *text)
{
	assert_int_equal(pp_record_put(r, kind, path, text, strlen(text), 0), 0);
}

static struct pp_record *recorded(void)
{
	struct pp_record *r;

	assert_int_equal(pp_record_new((size_t)8 << 20, &r), 0);
	for (size_t i = 0; i < PP_ARRAY_LEN(answers); i++)
		put(r, PP_ENTRY_ANSWER, answers[i].name, answers[i].text);
	put(r, PP_ENTRY_LINK, "/sys/class/infiniband/mlx5_0",
	    "../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/infiniband/mlx5_0");
	put(r, PP_ENTRY_DIR, HCA "/infiniband/mlx5_0", "");
	put(r, PP_ENTRY_LINK, HCA "/infiniband/mlx5_0/device", "../../../0000:3b:00.0");
	put(r, PP_ENTRY_LINK, HCA "/driver", "../../../../bus/pci/drivers/mlx5_core");
	put(r, PP_ENTRY_DIR, "/sys/module", "");
	return r;
}

static struct pp_record *scrubbed(void)
{
	struct pp_record *in = recorded(), *out;
	struct pp_scrub_counts counts;
	struct pp_error err = {0};

	if (pp_scrub_record(in, &out, &counts, &err))
		fail_msg("%s", err.text);
	assert_int_equal(counts.dropped, 0);
	assert_true(counts.replaced >= 9);
	pp_record_free(in);
	return out;
}

static const struct pp_entry *answer_of(struct pp_record *r, const char *name)
{
	const struct pp_entry *e;
	size_t n;

	e = pp_record_entries(r, &n);
	for (size_t i = 0; i < n; i++)
		if (e[i].kind == PP_ENTRY_ANSWER && !strcmp(e[i].path, name))
			return &e[i];
	fail_msg("no answer %s", name);
	return e;
}

static json_t *data_of(struct pp_record *r, const char *name)
{
	const struct pp_entry *e = answer_of(r, name);
	json_t *document = json_loadb(e->content, e->len, 0, NULL), *data;

	assert_non_null(document);
	data = json_incref(json_object_get(document, "data"));
	assert_non_null(data);
	json_decref(document);
	return data;
}

static const char *text_at(const json_t *list, size_t i, const char *key)
{
	const char *s = json_string_value(json_object_get(json_array_get(list, i), key));

	assert_non_null(s);
	return s;
}

/* No name of a user's stands anywhere; those of others do. */
static void test_gone(void **state)
{
	static const char *const secret[] = {"alice", "secretproject", "weights", "train"};
	struct pp_record *r = scrubbed();

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(answers); i++) {
		const struct pp_entry *e = answer_of(r, answers[i].name);

		for (size_t k = 0; k < PP_ARRAY_LEN(secret); k++)
			if (memmem(e->content, e->len, secret[k], strlen(secret[k])))
				fail_msg("%s still has '%s': %.*s", answers[i].name, secret[k],
					 (int)e->len, e->content);
	}
	pp_record_free(r);
}

/* The same process is the same in every answer; what is of a list stays. */
static void test_consistent(void **state)
{
	struct pp_record *r = scrubbed();
	json_t *processes = data_of(r, "rdma-processes"), *events = data_of(r, "trace-events");
	const json_t *p = json_object_get(processes, "processes");
	const json_t *e = json_object_get(events, "events");
	char *one, *two;

	(void)state;
	assert_string_equal(text_at(p, 0, "comm"), text_at(e, 0, "comm"));
	assert_string_equal(text_at(p, 1, "comm"), "python3.11");
	one = strdup(text_at(p, 0, "cgroup"));
	two = strdup(text_at(p, 1, "cgroup"));
	/* "/slurm/uid_1000/job_17/SECRETPROJECT/ALICE.scope", ".../podALICE/cri-...-SECRETPROJECT"
	 */
	assert_memory_equal(one, "/slurm/uid_1000/job_17/x", 24);
	assert_non_null(strstr(one, ".scope"));
	assert_memory_equal(two, "/kubepods/burstable/x", 21);
	assert_non_null(strstr(two, "/cri-containerd-x"));
	assert_memory_equal(one + 24, strstr(two, "containerd-x") + 12, 6);
	assert_true(pp_exporter_is_nvidia(text_at(e, 0, "exporter")));
	free(one);
	free(two);
	json_decref(processes);
	json_decref(events);
	pp_record_free(r);
}

/* The document of a look at a recording, without what users call their processes. */
static char *document_of(struct pp_record *r)
{
	const struct pp_trace_options options = {.pid = 0};
	struct pp_buf b = PP_BUF(1 << 20);
	struct pp_json j = PP_JSON(&b, true);
	struct pp_source *s;
	struct pp_error err = {0};
	struct pp_trace t;
	const char *comm;
	json_t *all;
	char *text;

	assert_int_equal(pp_source_replay_record(r, &s, &err), 0);
	assert_int_equal(pp_trace_look(s, &options, &t), 0);
	pp_json_object(&j, NULL);
	pp_trace_write(&j, "evidence", &t.table);
	pp_trace_write_surfaces(&j, "surfaces", &t.table);
	pp_json_end_object(&j);
	pp_trace_done(&t);
	pp_source_free(s);
	all = json_loadb(pp_buf_text(&b), b.len, 0, NULL);
	pp_buf_done(&b);
	for (size_t i = 0; i < json_array_size(json_object_get(all, "evidence")); i++) {
		json_t *one = json_array_get(json_object_get(all, "evidence"), i);

		comm = json_string_value(json_object_get(one, "comm"));
		assert_true(!comm || !strncmp(comm, "alice", 5) || !strncmp(comm, "prog-", 5));
		(void)json_object_del(one, "comm");
	}
	text = json_dumps(all, JSON_INDENT(1) | JSON_SORT_KEYS);
	json_decref(all);
	assert_non_null(text);
	return text;
}

static void test_replays(void **state)
{
	char *before = document_of(recorded()), *after = document_of(scrubbed());

	(void)state;
	/* something was proven, or it would say nothing that both are equal */
	assert_non_null(strstr(before, "\"state\": \"proven\""));
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void same_buffers(const struct pp_buffers *a, const struct pp_buffers *b)
{
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->n_attached, b->n_attached);
	assert_int_equal(a->report.state, b->report.state);
	for (size_t i = 0; i < a->n; i++) {
		assert_int_equal(a->item[i].size, b->item[i].size);
		assert_int_equal(a->item[i].inode, b->item[i].inode);
		assert_int_equal(a->item[i].count, b->item[i].count);
		assert_int_equal(a->item[i].n_attached, b->item[i].n_attached);
		assert_string_equal(a->item[i].exporter, b->item[i].exporter);
		assert_int_equal(!*a->item[i].name, !*b->item[i].name);
		if (*a->item[i].name)
			assert_memory_equal(b->item[i].name, "buffer-", 7);
	}
	for (size_t i = 0; i < a->n_attached; i++)
		assert_string_equal(a->attached[i], b->attached[i]);
}

/* Every grammar of the kernel's is read as before; of names only that there is one. */
static void test_grammars(void **state)
{
	static const char *const files[] = {"4.4", "4.14", "5.4", "5.18", "6.1", "h200", "vgem"};
	struct pp_scrub_map *m;

	(void)state;
	assert_int_equal(pp_scrub_map_new(&m), 0);
	for (size_t i = 0; i < PP_ARRAY_LEN(files); i++) {
		struct pp_buf out = PP_BUF(1 << 20);
		struct pp_buffers before, after;
		char path[512], text[65536];
		size_t len;
		FILE *f;

		(void)snprintf(path, sizeof(path), "%s/../fixtures/trace/bufinfo-%s.txt",
			       getenv("PP_TEST_DIR"), files[i]);
		f = fopen(path, "rb");
		assert_non_null(f);
		len = fread(text, 1, sizeof(text), f);
		(void)fclose(f);
		assert_int_equal(pp_buffers_parse(text, len, &before), 0);
		(void)pp_scrub_bufinfo(m, text, len, &out);
		assert_int_equal(pp_buffers_parse(pp_buf_text(&out), out.len, &after), 0);
		same_buffers(&before, &after);
		for (size_t k = 0; k < before.n; k++)
			if (*before.item[k].name)
				assert_null(strstr(pp_buf_text(&out), before.item[k].name));
		pp_buffers_done(&before);
		pp_buffers_done(&after);
		pp_buf_done(&out);
	}
	pp_scrub_map_free(m);
}

static void one(const struct pp_scrub_map *m, const char *name, bool stays)
{
	struct pp_buf out = PP_BUF(4096);

	assert_int_equal(pp_scrub_program(m, name, strlen(name), &out), !stays);
	assert_int_equal(!strcmp(pp_buf_text(&out), name), stays);
	/* as long as a process's name can be */
	assert_true(stays || out.len <= 15);
	pp_buf_done(&out);
}

/* A list, and digits behind a name of it; nothing that only begins or ends so. */
static void test_programs(void **state)
{
	static const char *const known[] = {
		"peerpath",	   "python3", "python3.11", "ib_write_bw", "all_reduce_perf",
		"nvidia-persiste", ""};
	static const char *const others[] = {"python3-alice", "alice_perf", "my-peerpath",
					     "ib_write_bw_x", "3",	    "a.out"};
	struct pp_scrub_map *m;

	(void)state;
	assert_int_equal(pp_scrub_map_new(&m), 0);
	for (size_t i = 0; i < PP_ARRAY_LEN(known); i++)
		one(m, known[i], true);
	for (size_t i = 0; i < PP_ARRAY_LEN(others); i++)
		one(m, others[i], false);
	pp_scrub_map_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gone),	 cmocka_unit_test(test_consistent),
		cmocka_unit_test(test_replays),	 cmocka_unit_test(test_grammars),
		cmocka_unit_test(test_programs),
	};

	return cmocka_run_group_tests_name("scrub-trace", tests, NULL, NULL);
}
