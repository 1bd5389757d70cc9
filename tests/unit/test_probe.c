/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The questions to libibverbs and the probe, against a library that works, blocks, crashes and
 * refuses (tests/fake/verbs.c, found by LD_LIBRARY_PATH). PP_FAKE_CORE names the rdma-core
 * release that the library in the path stands for.
 *
 * What an errno of the probe means: Linux ib_uverbs (method lookup EPROTONOSUPPORT, missing op
 * EOPNOTSUPP, dma_buf_get(-1) EBADF) and rdma-core (missing provider op EOPNOTSUPP).
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/ask_verbs.h"
#include "node/node.h"
#include "mem/probe.h"
#include "rdma/users.h"

static struct pp_node node;
static struct pp_object *hca;
static char uverbs[24]; /* of this run alone: the scan sees those of others that run beside it */

static void start(struct pp_source *src)
{
	node = (struct pp_node){.src = src, .arena = PP_ARENA((size_t)1 << 20)};
	node.facts.arena = &node.arena;
	node.self = pp_object_add(&node.facts, PP_NODE, "node");
	hca = pp_object_add(&node.facts, PP_HCA, "0000:3b:00.0");
	pp_fact_str(&node.facts, hca, PP_F_HCA_NAME, "fake_0", NULL);
	(void)snprintf(uverbs, sizeof(uverbs), "uverbs%d", getpid());
	pp_fact_str(&node.facts, hca, PP_F_HCA_UVERBS, uverbs, NULL);
	pp_fact_bool(&node.facts, hca, PP_F_HCA_HAS_DEVICE, true, NULL);
}

static int setup(void **state)
{
	struct pp_source *live;
	struct pp_error err;

	(void)state;
	(void)unsetenv("PP_FAKE_VERBS");
	assert_int_equal(pp_source_live(&live, &err), 0);
	start(live);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	pp_source_free(node.src);
	pp_arena_done(&node.arena);
	return 0;
}

static struct pp_probe *probe(const char *behaviour, bool busy_ok)
{
	const struct pp_probe_options options = {.busy_ok = busy_ok,
						 .deadline = 400 * PP_MILLISECOND};
	struct pp_probe *p = NULL;
	struct pp_error err;

	assert_int_equal(setenv("PP_FAKE_VERBS", behaviour, 1), 0);
	assert_int_equal(pp_probe_run(&node, &options, &p, &err), 0);
	return p;
}

static void test_works(void **state)
{
	struct pp_probe *p = probe("", true);

	(void)state;
	assert_int_equal(p->n, 2);
	assert_string_equal(p->row[0].hca, "0000:3b:00.0");
	assert_int_equal(p->row[0].method, PP_PROBE_HOST);
	assert_int_equal(p->row[0].verdict, PP_PASS);
	assert_int_equal(p->row[0].error, 0);
	assert_int_equal(p->row[1].method, PP_PROBE_DMABUF_FD);
	assert_int_equal(p->row[1].verdict, PP_PASS);
	assert_int_equal(p->row[1].error, EBADF);
	pp_probe_free(p);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *behaviour;
		enum pp_verdict verdict;
		int error;
	} cases[] = {
		{"dmabuf-95", PP_FAIL, EOPNOTSUPP},
		{"dmabuf-93", PP_FAIL, EPROTONOSUPPORT},
		{"dmabuf-22", PP_UNKNOWN, EINVAL},
		{"dmabuf-524", PP_UNKNOWN, 524},
		{"dmabuf-succeeds", PP_UNKNOWN, 0},
		/* The library fails and leaves errno alone: a stale EBADF is no support. */
		{"stale-errno", PP_UNKNOWN, EIO},
	};
	struct pp_probe *p;

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(cases); i++) {
		p = probe(cases[i].behaviour, true);
		assert_int_equal(p->row[0].verdict, PP_PASS);
		assert_int_equal(p->row[1].verdict, cases[i].verdict);
		assert_int_equal(p->row[1].error, cases[i].error);
		pp_probe_free(p);
	}
	p = probe("reg-enomem", true);
	assert_int_equal(p->row[0].verdict, PP_FAIL);
	assert_int_equal(p->row[0].error, ENOMEM);
	assert_non_null(strstr(p->row[0].note, "ENOMEM"));
	assert_int_equal(p->row[1].verdict, PP_PASS);
	pp_probe_free(p);
}

static void test_stuck_and_crashed(void **state)
{
	struct pp_probe *p = probe("list-blocks", true);

	(void)state;
	assert_int_equal(p->row[0].verdict, PP_UNKNOWN);
	assert_string_equal(p->row[0].note, "ibv_get_device_list did not return in 400 ms");
	assert_int_equal(p->row[1].verdict, PP_UNKNOWN);
	assert_non_null(strstr(p->row[1].note, "not asked"));
	pp_probe_free(p);
	p = probe("list-crashes", true);
	assert_int_equal(p->row[0].verdict, PP_UNKNOWN);
	assert_string_equal(p->row[0].note, "ibv_get_device_list crashed with signal 11 (SEGV)");
	pp_probe_free(p);
	/* What was answered before stays. */
	p = probe("dmabuf-blocks", true);
	assert_int_equal(p->row[0].verdict, PP_PASS);
	assert_int_equal(p->row[1].verdict, PP_UNKNOWN);
	assert_string_equal(p->row[1].note, "ibv_reg_dmabuf_mr did not return in 400 ms");
	pp_probe_free(p);
	p = probe("open-eacces", true);
	assert_int_equal(p->row[0].verdict, PP_UNKNOWN);
	assert_string_equal(p->row[0].note, "ibv_open_device: EACCES");
	pp_probe_free(p);
	p = probe("no-devices", true);
	assert_int_equal(p->row[0].verdict, PP_UNKNOWN);
	assert_string_equal(p->row[0].note, "libibverbs does not list 'fake_0'");
	pp_probe_free(p);
}

/* A process with a descriptor of that name, which is all that the scan looks at. */
static pid_t hold_device(char dir[])
{
	char path[64];
	int ready[2], fd;
	char byte;
	pid_t pid;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/%s", dir, uverbs);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test does not wait for it */
		fd = open(path, O_CREAT | O_RDWR, 0600);
		(void)!write(ready[1], "x", fd >= 0);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	return pid;
}

static void test_busy(void **state)
{
	char dir[] = "/tmp/peerpath-probe-XXXXXX", path[64];
	pid_t pid = hold_device(dir);
	struct pp_probe *p = probe("", false);
	char expected[128];

	(void)state;
	(void)snprintf(expected, sizeof(expected),
		       "not probed: process %d has %s open (--busy-ok probes it)", pid, uverbs);
	assert_int_equal(p->busy, 1);
	assert_int_equal(p->row[0].verdict, PP_UNKNOWN);
	assert_string_equal(p->row[0].note, expected);
	assert_string_equal(p->row[1].note, expected);
	pp_probe_free(p);
	p = probe("", true);
	assert_int_equal(p->busy, 1);
	assert_int_equal(p->row[0].verdict, PP_PASS);
	pp_probe_free(p);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	/* Nobody is seen: free only where everybody could be seen, which a container cannot. */
	p = probe("", false);
	assert_int_equal(p->busy, 0);
	assert_int_equal(p->row[0].verdict, p->users_known ? PP_PASS : PP_UNKNOWN);
	if (!p->users_known)
		assert_string_equal(p->row[0].note, "not probed: whether others use it is not "
						    "known (--busy-ok probes it)");
	pp_probe_free(p);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, uverbs);
	(void)unlink(path);
	(void)rmdir(dir);
}

static struct pp_object *add_gpu(const char *bdf, int64_t processes)
{
	struct pp_object *gpu = pp_object_add(&node.facts, PP_GPU, bdf);

	if (processes >= 0)
		pp_fact_int(&node.facts, gpu, PP_F_GPU_PROCESSES, processes, NULL);
	return gpu;
}

static void fake_cuda(const char *cuda, const char *fails)
{
	assert_int_equal(setenv("PP_FAKE_CUDA", cuda, 1), 0);
	assert_int_equal(setenv("PP_FAKE_CUDA_FAIL", fails, 1), 0);
}

/* A bare function is not probed, one that another's bond serves is no row. */
static void test_rows(void **state)
{
	struct pp_object *bare, *slave;
	struct pp_probe *p;

	(void)state;
	add_gpu("0000:3b:00.0", 0);
	bare = pp_object_add(&node.facts, PP_HCA, "0000:5b:00.0");
	pp_fact_bool(&node.facts, bare, PP_F_HCA_HAS_DEVICE, false, NULL);
	slave = pp_object_add(&node.facts, PP_HCA, "0000:3b:00.1");
	pp_fact_bool(&node.facts, slave, PP_F_HCA_HAS_DEVICE, false, NULL);
	pp_fact_str(&node.facts, slave, PP_F_HCA_BOND_DEVICE, hca->id, NULL);
	fake_cuda("", "");
	p = probe("", true);
	assert_int_equal(p->n, 8);
	assert_int_equal(p->row[2].method, PP_PROBE_GPU_DMABUF);
	assert_string_equal(p->row[2].gpu, "0000:3b:00.0");
	assert_int_equal(p->row[2].verdict, PP_PASS);
	assert_string_equal(p->row[2].note, "64 KiB of GPU memory registered and deregistered");
	assert_int_equal(p->row[3].method, PP_PROBE_GPU_PEERMEM);
	assert_int_equal(p->row[3].verdict, PP_PASS);
	assert_string_equal(p->row[4].hca, "0000:5b:00.0");
	assert_int_equal(p->row[4].verdict, PP_UNKNOWN);
	assert_string_equal(p->row[4].note, "no RDMA device on this function");
	assert_string_equal(p->row[7].note, "no RDMA device on this function");
	pp_probe_free(p);
}

/* What each way of a GPU's memory comes to, and who is to blame. */
static void test_gpu_refusals(void **state)
{
	static const struct {
		const char *verbs, *cuda, *fails;
		enum pp_verdict dmabuf, peermem;
		int error; /* of dmabuf */
		const char *word;
	} rows[] = {
		{"gpu-dmabuf-95", "", "", PP_FAIL, PP_PASS, EOPNOTSUPP, "provider library"},
		{"gpu-dmabuf-524", "", "", PP_FAIL, PP_PASS, 524, "ENOTSUPP (524)"},
		{"gpu-dmabuf-12,gpu-peermem-14", "", "", PP_FAIL, PP_FAIL, ENOMEM, "ENOMEM (12)"},
		{"gpu-peermem-14", "", "", PP_PASS, PP_FAIL, 0, ""},
		{"", "proprietary", "", PP_FAIL, PP_PASS, EOPNOTSUPP, "open kernel modules"},
		/* no memory: nothing is known of any way */
		{"", "exclusive", "", PP_UNKNOWN, PP_UNKNOWN, 0, "EXCLUSIVE_PROCESS"},
		{"", "", "cuMemAlloc_v2=2", PP_UNKNOWN, PP_UNKNOWN, 0, "no 0 MiB left"},
	};

	(void)state;
	add_gpu("0000:3b:00.0", 0);
	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++) {
		struct pp_probe *p;

		fake_cuda(rows[i].cuda, rows[i].fails);
		p = probe(rows[i].verbs, true);
		assert_int_equal(p->row[2].verdict, rows[i].dmabuf);
		assert_int_equal(p->row[2].error, rows[i].error);
		assert_int_equal(p->row[3].verdict, rows[i].peermem);
		if (!strstr(p->row[2].note, rows[i].word))
			fail_msg("'%s' does not say '%s'", p->row[2].note, rows[i].word);
		pp_probe_free(p);
	}
	fake_cuda("", "");
}

/* A GPU that others compute on, or of which that is not known, is left alone. */
static void test_gpu_busy(void **state)
{
	struct pp_probe *p;

	(void)state;
	add_gpu("0000:3b:00.0", 2);
	add_gpu("0000:9a:00.0", -1);
	fake_cuda("", "");
	p = probe("", true);
	assert_int_equal(p->busy_gpus, 1);
	assert_int_equal(p->row[2].verdict, PP_PASS);
	assert_int_equal(p->row[4].verdict, PP_PASS);
	pp_probe_free(p);
	/* The hca's users are known where this process may see all: only then are GPUs looked at.
	 */
	p = probe("", false);
	if (p->users_known) {
		assert_string_equal(p->row[2].note,
				    "not probed: 2 processes compute on it (--busy-ok probes it)");
		assert_non_null(strstr(p->row[4].note, "whether others compute on it"));
	}
	assert_int_equal(p->row[2].verdict, PP_UNKNOWN);
	assert_int_equal(p->row[4].verdict, PP_UNKNOWN);
	pp_probe_free(p);
}

/* An hca whose driver does not answer costs its own pairs. */
static void test_gpu_stuck(void **state)
{
	struct pp_object *second = pp_object_add(&node.facts, PP_HCA, "0000:5b:00.0");
	struct pp_probe *p;

	(void)state;
	add_gpu("0000:3b:00.0", 0);
	pp_fact_str(&node.facts, second, PP_F_HCA_NAME, "fake_1", NULL);
	pp_fact_bool(&node.facts, second, PP_F_HCA_HAS_DEVICE, true, NULL);
	fake_cuda("", "");
	p = probe("two-devices,gpu-blocks", true);
	assert_int_equal(p->n, 8);
	for (int i = 2; i < 4; i++) {
		assert_int_equal(p->row[i].verdict, PP_UNKNOWN);
		assert_string_equal(p->row[i].note,
				    "ibv_reg_dmabuf_mr (fake_0) did not return in 400 ms");
	}
	assert_string_equal(p->row[6].name, "fake_1");
	assert_int_equal(p->row[6].verdict, PP_PASS);
	assert_int_equal(p->row[7].verdict, PP_PASS);
	pp_probe_free(p);
	fake_cuda("block", "");
	p = probe("two-devices", true);
	assert_string_equal(p->row[2].note, "cuInit did not return in 400 ms");
	assert_string_equal(p->row[7].note, "cuInit did not return in 400 ms");
	pp_probe_free(p);
	fake_cuda("", "");
}

/* Every call is in the record, and the record replays to the same rows without the library. */
static void test_replay(void **state)
{
	static const char *const calls[] = {"ibv_get_device_list", "ibv_open_device",
					    "ibv_alloc_pd",	   "ibv_reg_dmabuf_mr",
					    "ibv_dealloc_pd",	   "ibv_close_device"};
	struct pp_source *live = node.src, *replay;
	const struct pp_entry *e;
	struct pp_record *record;
	struct pp_probe *a, *b;
	struct pp_error err;
	const char *at;

	(void)state;
	assert_int_equal(pp_record_new((size_t)1 << 20, &record), 0);
	pp_source_set_record(live, record);
	add_gpu("0000:3b:00.0", 0);
	fake_cuda("", "");
	a = probe("gpu-peermem-14", true);
	assert_int_equal(a->row[2].verdict, PP_PASS);
	assert_int_equal(a->row[3].verdict, PP_FAIL);
	e = pp_record_answer(record, "probe-gpu-0000-3b-00-0");
	assert_non_null(e);
	assert_non_null(strstr(e->content, "DMA_BUF_FD, flags 0"));
	assert_non_null(strstr(e->content, "EFAULT"));
	e = pp_record_answer(record, "probe-dmabuf-0000-3b-00-0");
	assert_non_null(e);
	at = e->content;
	for (size_t i = 0; i < PP_ARRAY_LEN(calls); i++) {
		at = strstr(at, calls[i]);
		assert_non_null(at);
	}
	assert_non_null(strstr(e->content, "offset 0, length 4096, iova 0, fd -1, LOCAL_WRITE"));
	assert_int_equal(pp_source_replay_record(record, &replay, &err), 0);
	node.src = replay;
	b = probe("list-crashes", true);
	assert_int_equal(a->n, b->n);
	for (size_t i = 0; i < a->n; i++) {
		assert_int_equal(a->row[i].verdict, b->row[i].verdict);
		assert_int_equal(a->row[i].error, b->row[i].error);
		assert_int_equal(a->row[i].took, b->row[i].took);
		assert_string_equal(a->row[i].note, b->row[i].note);
	}
	pp_probe_free(a);
	pp_probe_free(b);
	pp_source_free(live);
}

static void test_library(void **state)
{
	struct pp_answer a;
	const char *real;
	bool dmabuf;

	(void)state;
	assert_int_equal(pp_ask_verbs_library(node.src, &a), 0);
	assert_true(a.answered);
	real = pp_answer_str(a.data, "real");
	assert_non_null(real);
	assert_string_equal(strrchr(real, '/'), "/libibverbs.so.1.14.44.0");
	assert_int_equal(pp_answer_bool(a.data, "reg_dmabuf_mr", &dmabuf), 0);
	assert_true(dmabuf);
	pp_answer_done(&a);
}

static void test_devices(void **state)
{
	const json_t *device;
	struct pp_answer a;
	int64_t value;

	(void)state;
	assert_int_equal(pp_ask_verbs_list(node.src, &a), 0);
	assert_true(a.answered);
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(a.data, "devices"), 0)), "fake_0");
	pp_answer_done(&a);
	assert_int_equal(pp_ask_verbs_devices(node.src, &a), 0);
	device = pp_verbs_device(&a, "fake_0");
	assert_non_null(device);
	assert_int_equal(pp_answer_i64(device, "vendor_part_id", &value), 0);
	assert_int_equal(value, 4129);
	/* mlx5 says 2^64 - 1, which no JSON integer holds: it must not spoil the answer. */
	assert_int_equal(pp_answer_i64(device, "max_mr_size", &value), 0);
	assert_true(value == INT64_MAX);
	assert_int_equal(pp_verbs_active_mtu(device, 1, &value), 0);
	assert_int_equal(value, 1024);
	assert_int_equal(pp_verbs_active_mtu(device, 2, &value), -ENOENT);
	assert_null(pp_verbs_device(&a, "fake_1"));
	pp_answer_done(&a);
	assert_int_equal(setenv("PP_FAKE_VERBS", "open-eacces", 1), 0);
	assert_int_equal(pp_ask_verbs_devices(node.src, &a), 0);
	device = pp_verbs_device(&a, "fake_0");
	assert_int_equal(pp_answer_i64(device, "open_errno", &value), 0);
	assert_int_equal(value, EACCES);
	pp_answer_done(&a);
}

/* rdma-core 33 has no ibv_reg_dmabuf_mr: that is a no, and host memory works all the same. */
static void test_old_library(void **state)
{
	struct pp_probe *p = probe("", true);
	struct pp_answer a;
	bool dmabuf;

	(void)state;
	assert_int_equal(p->row[0].verdict, PP_PASS);
	assert_int_equal(p->row[1].verdict, PP_FAIL);
	assert_non_null(strstr(p->row[1].note, "does not export ibv_reg_dmabuf_mr"));
	pp_probe_free(p);
	assert_int_equal(pp_ask_verbs_library(node.src, &a), 0);
	assert_int_equal(pp_answer_bool(a.data, "reg_dmabuf_mr", &dmabuf), 0);
	assert_false(dmabuf);
	pp_answer_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_works, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stuck_and_crashed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_busy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gpu_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gpu_busy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gpu_stuck, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replay, setup, teardown),
		cmocka_unit_test_setup_teardown(test_library, setup, teardown),
		cmocka_unit_test_setup_teardown(test_devices, setup, teardown),
	};
	const struct CMUnitTest old[] = {
		cmocka_unit_test_setup_teardown(test_old_library, setup, teardown),
	};

	if (!strcmp(getenv("PP_FAKE_CORE") ? getenv("PP_FAKE_CORE") : "", "33"))
		return cmocka_run_group_tests_name("probe, rdma-core 33", old, NULL, NULL);
	return cmocka_run_group_tests_name("probe", tests, NULL, NULL);
}
