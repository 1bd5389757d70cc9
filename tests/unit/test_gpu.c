/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPU collector against the libraries of tests/fake/ and against made recordings.
 *
 * Expected values: NVML and CUDA as they answered on a machine with two H200 (memory 143771 MiB,
 * BAR1 256 GiB, 18 links to NVSwitch, nvidia-smi's NV18); matrices as nvidia-smi prints them.
 */
#include "unit.h"

#include <dlfcn.h>
#include <jansson.h>

#include "base/buf.h"
#include "node/cuda.h"
#include "node/node.h"
#include "node/nvml.h"

static const char GPU0[] = "0000:3b:00.0", GPU1[] = "0000:9a:00.0";

enum { MAX_LOADED = 4 };

/* A node under test; only the GPU collector runs. */
struct rig {
	struct pp_source *src;
	struct pp_record *record; /* of a live run */
	struct pp_node n;
	void *loaded[MAX_LOADED];
	unsigned int n_loaded;
};

/* dlopen by name finds a library that is loaded already by its soname. */
static void load(struct rig *r, const char *file)
{
	char path[1024];
	void *lib;

	assert_non_null(getenv("PP_FAKE_DIR"));
	(void)snprintf(path, sizeof(path), "%s/%s", getenv("PP_FAKE_DIR"), file);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		fail_msg("%s", dlerror());
	r->loaded[r->n_loaded++] = lib;
}

static void unload(struct rig *r)
{
	while (r->n_loaded)
		assert_int_equal(dlclose(r->loaded[--r->n_loaded]), 0);
}

static void start(struct rig *r, struct pp_source *src)
{
	*r = (struct rig){.src = src};
	r->n = (struct pp_node){.src = src, .arena = PP_ARENA((size_t)64 << 20)};
	r->n.facts.arena = &r->n.arena;
	r->n.self = pp_object_add(&r->n.facts, PP_NODE, "node");
	(void)unsetenv("PP_FAKE_NVML");
	(void)unsetenv("PP_FAKE_CUDA");
}

static void start_live(struct rig *r)
{
	struct pp_source *src;
	struct pp_error err;

	assert_int_equal(pp_source_live(&src, &err), 0);
	start(r, src);
	assert_int_equal(pp_record_new((size_t)4 << 20, &r->record), 0);
	pp_source_set_record(src, r->record);
}

/* @nvml, @cuda: the data of an answer; NULL: not in the recording. */
static void start_replay(struct rig *r, const char *nvml, const char *cuda)
{
	static const char frame[] = "{\"outcome\": \"answered\", \"data\": %s}";
	const char *const answers[][2] = {{"nvml", nvml}, {"cuda", cuda}};
	struct pp_record *record;
	struct pp_source *src;
	struct pp_error err;
	char *doc;

	assert_int_equal(pp_record_new((size_t)8 << 20, &record), 0);
	for (size_t i = 0; i < 2; i++) {
		if (!answers[i][1])
			continue;
		assert_true(asprintf(&doc, frame, answers[i][1]) > 0);
		assert_int_equal(
			pp_record_put(record, PP_ENTRY_ANSWER, answers[i][0], doc, strlen(doc), 0),
			0);
		free(doc);
	}
	assert_int_equal(pp_source_replay_record(record, &src, &err), 0);
	start(r, src);
}

static void done(struct rig *r)
{
	assert_false(r->n.arena.failed);
	unload(r);
	pp_arena_done(&r->n.arena);
	pp_source_free(r->src);
	pp_record_free(r->record);
}

static const struct pp_object *gpu(const struct rig *r, const char *id)
{
	const struct pp_object *o = pp_object_find(&r->n.facts, PP_GPU, id);

	assert_non_null(o);
	return o;
}

/* Every fact as a person reads it: "143771", "yes", "unknown: ...". */
static void says(const struct pp_object *o, enum pp_fact_id id, const char *expected)
{
	char text[512];

	assert_string_equal(pp_fact_text(pp_fact_get(o, id), text, sizeof(text)), expected);
}

static void test_two_h200(void **state)
{
	const struct pp_object *o;
	struct rig r;

	(void)state;
	start_live(&r);
	load(&r, "nvml/libnvidia-ml.so.1");
	load(&r, "cuda/libcuda.so.1");
	(void)pp_object_add(&r.n.facts, PP_GPU, GPU0); /* as the PCI collector does */
	/* Neither may hide or reorder GPUs. */
	(void)setenv("CUDA_VISIBLE_DEVICES", "", 1);
	(void)setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST", 1);
	pp_collect_gpu(&r.n);
	assert_string_equal(getenv("CUDA_VISIBLE_DEVICES"), "");
	(void)unsetenv("CUDA_VISIBLE_DEVICES");

	says(r.n.self, PP_F_NVML_DRIVER, "580.159.04");
	says(r.n.self, PP_F_NVML_VERSION, "13.580.159.04");
	says(r.n.self, PP_F_CUDA_DRIVER, "13000");
	assert_int_equal(r.n.facts.count[PP_GPU], 2);
	o = gpu(&r, GPU0);
	assert_string_equal(o->name, "NVIDIA H200");
	says(o, PP_F_GPU_NAME, "NVIDIA H200");
	says(o, PP_F_GPU_UUID, "GPU-11111111-aaaa-bbbb-cccc-111111111111");
	says(o, PP_F_GPU_INDEX, "0");
	says(o, PP_F_GPU_SERIAL, "1650000000001");
	says(o, PP_F_GPU_VBIOS, "96.00.B3.00.02");
	says(o, PP_F_GPU_FB_TOTAL, "150754820096");   /* 143771 MiB */
	says(o, PP_F_GPU_BAR1_TOTAL, "274877906944"); /* 256 GiB */
	says(o, PP_F_GPU_BAR1_USED, "1048576");
	says(o, PP_F_GPU_BAR1_COVERS, "yes");
	says(o, PP_F_GPU_MIG, "off");
	says(o, PP_F_GPU_PERSISTENCE, "yes");
	says(o, PP_F_GPU_PSTATE, "0");
	says(o, PP_F_GPU_SM_CLOCK, "345");
	says(o, PP_F_GPU_SM_CLOCK_MAX, "1980");
	says(o, PP_F_GPU_THROTTLE, "none");
	says(o, PP_F_GPU_THROTTLED, "no");
	says(o, PP_F_GPU_PROCESSES, "0");
	says(o, PP_F_GPU_NVLINKS, "18");
	says(o, PP_F_GPU_NVLINKS_DOWN, "0");
	says(o, PP_F_GPU_C2C, "no");
	says(o, PP_F_GPU_ADDRESSING, "HMM");
	says(o, PP_F_GPU_PCIE_GEN, "5");
	says(o, PP_F_GPU_PCIE_GEN_MAX, "5");
	says(o, PP_F_GPU_PCIE_WIDTH, "16");
	says(o, PP_F_GPU_PCIE_WIDTH_MAX, "16");
	says(o, PP_F_GPU_CC, "9.0");
	says(o, PP_F_GPU_DMABUF, "yes");
	says(o, PP_F_GPU_GDR, "yes");
	says(o, PP_F_GPU_GDR_VMM, "yes");
	says(o, PP_F_GPU_FLUSH, "1");
	says(o, PP_F_GPU_ORDERING, "100");
	o = gpu(&r, GPU1);
	says(o, PP_F_GPU_UUID, "GPU-22222222-aaaa-bbbb-cccc-222222222222");
	says(o, PP_F_GPU_PERSISTENCE, "no");
	says(o, PP_F_GPU_THROTTLE, "software power cap, software thermal slowdown, reason bit 13");
	says(o, PP_F_GPU_THROTTLED, "yes");
	says(o, PP_F_GPU_PROCESSES, "4");
	says(o, PP_F_GPU_NUMA, "unknown: the PCI tree does not list it");
	assert_int_equal(r.n.n_gpus, 2);
	assert_int_equal(r.n.nvlinks[0 * 2 + 1], 18);
	assert_int_equal(r.n.nvlinks[1 * 2 + 0], 18);
	done(&r);
}

/* All facts of all objects, one a line. */
static void dump(const struct pp_node *n, struct pp_buf *b)
{
	const struct pp_object *o;
	char text[512];

	pp_objects_foreach (&n->facts, o)
		for (unsigned int i = 0; i < o->n; i++)
			pp_buf_printf(b, "%s %s = %s\n", o->id, pp_fact_table[o->facts[i].id].key,
				      pp_fact_text(&o->facts[i], text, sizeof(text)));
	for (unsigned int i = 0; i < n->n_gpus * n->n_gpus; i++)
		pp_buf_printf(b, "%d ", n->nvlinks[i]);
}

static void test_replay_is_live(void **state)
{
	struct pp_buf PP_AUTO_BUF first = PP_BUF((size_t)1 << 20);
	struct pp_buf PP_AUTO_BUF again = PP_BUF((size_t)1 << 20);
	struct pp_source *src;
	struct pp_error err;
	struct rig live, replay;

	(void)state;
	start_live(&live);
	load(&live, "nvml/libnvidia-ml.so.1");
	load(&live, "cuda/libcuda.so.1");
	pp_collect_gpu(&live.n);
	dump(&live.n, &first);
	unload(&live); /* what follows cannot ask a library */
	pp_source_set_record(live.src, NULL);
	assert_int_equal(pp_source_replay_record(pp_take(live.record), &src, &err), 0);
	start(&replay, src);
	pp_collect_gpu(&replay.n);
	dump(&replay.n, &again);
	assert_non_null(strstr(pp_buf_text(&first), "gpu.dmabuf_supported = yes"));
	assert_string_equal(pp_buf_text(&first), pp_buf_text(&again));
	done(&replay);
	done(&live);
}

static void test_few_symbols(void **state)
{
	const struct pp_object *o;
	struct rig r;

	(void)state;
	start_live(&r);
	load(&r, "nvml-few/libnvidia-ml.so.1");
	load(&r, "cuda/libcuda.so.1");
	(void)setenv("PP_FAKE_CUDA", "old", 1);
	pp_collect_gpu(&r.n);
	o = gpu(&r, GPU1);
	says(o, PP_F_GPU_NAME, "NVIDIA H200");
	says(o, PP_F_GPU_THROTTLED, "yes"); /* by the call's old name */
	says(o, PP_F_GPU_PROCESSES, "4");
	says(o, PP_F_GPU_C2C, "unknown: this libnvidia-ml.so.1 has no nvmlDeviceGetC2cModeInfoV");
	says(o, PP_F_GPU_ADDRESSING,
	     "unknown: this libnvidia-ml.so.1 has no nvmlDeviceGetAddressingMode");
	says(o, PP_F_GPU_NVLINKS, "18");
	/* Nobody says where the links lead. */
	assert_int_equal(r.n.nvlinks[1], -1);
	assert_int_equal(r.n.nvlinks[2], -1);
	says(o, PP_F_GPU_GDR, "yes");
	says(o, PP_F_GPU_DMABUF, "unknown: CUDA_ERROR_INVALID_VALUE (1)");
	done(&r);
}

static void test_refused(void **state)
{
	const struct pp_object *o;
	struct rig r;

	(void)state;
	start_live(&r);
	load(&r, "nvml/libnvidia-ml.so.1");
	load(&r, "cuda/libcuda.so.1");
	(void)setenv("PP_FAKE_NVML", "error", 1);
	(void)setenv("PP_FAKE_CUDA", "one", 1);
	pp_collect_gpu(&r.n);
	o = gpu(&r, GPU1);
	says(o, PP_F_GPU_SERIAL, "unknown: NVML_ERROR_NO_PERMISSION (4)");
	says(o, PP_F_GPU_BAR1_TOTAL, "unknown: NVML_ERROR_NOT_SUPPORTED (3)");
	says(o, PP_F_GPU_BAR1_COVERS, "unknown: NVML_ERROR_NOT_SUPPORTED (3)");
	says(o, PP_F_GPU_PERSISTENCE, "unknown: NVML_ERROR_NO_PERMISSION (4)");
	says(o, PP_F_GPU_MIG, "not supported");
	says(o, PP_F_GPU_PSTATE, "unknown: NVML says that it does not know it");
	says(o, PP_F_GPU_NVLINKS, "17");
	says(o, PP_F_GPU_NVLINKS_DOWN, "1");
	says(o, PP_F_GPU_DMABUF, "unknown: CUDA does not list it");
	says(gpu(&r, GPU0), PP_F_GPU_DMABUF, "yes");
	/* The smaller number of the two; the switches join them. */
	assert_int_equal(r.n.nvlinks[1], 17);
	assert_int_equal(r.n.nvlinks[2], 17);
	done(&r);
}

static void test_proprietary_and_lost(void **state)
{
	const struct pp_object *o;
	struct rig r;

	(void)state;
	start_live(&r);
	load(&r, "nvml/libnvidia-ml.so.1");
	load(&r, "cuda/libcuda.so.1");
	(void)setenv("PP_FAKE_NVML", "lost", 1);
	(void)setenv("PP_FAKE_CUDA", "proprietary", 1);
	(void)pp_object_add(&r.n.facts, PP_GPU, GPU0);
	(void)pp_object_add(&r.n.facts, PP_GPU, GPU1);
	pp_collect_gpu(&r.n);
	says(gpu(&r, GPU0), PP_F_GPU_DMABUF, "no");
	o = gpu(&r, GPU1);
	says(o, PP_F_GPU_FB_TOTAL,
	     "unknown: NVML does not list it; of its GPU 1 it says: NVML_ERROR_GPU_IS_LOST (15)");
	/* CUDA still knows its name. */
	says(o, PP_F_GPU_UUID, "GPU-22222222-aaaa-bbbb-cccc-222222222222");
	assert_int_equal(r.n.nvlinks[1], -1);
	assert_int_equal(r.n.nvlinks[2], -1);
	done(&r);
}

static void test_no_driver(void **state)
{
	struct rig r;

	(void)state;
	start_live(&r);
	load(&r, "nvml/libnvidia-ml.so.1");
	(void)setenv("PP_FAKE_NVML", "unloaded", 1);
	(void)pp_object_add(&r.n.facts, PP_GPU, GPU0);
	pp_collect_gpu(&r.n);
	says(r.n.self, PP_F_NVML_VERSION, "13.580.159.04"); /* the library's own */
	says(r.n.self, PP_F_NVML_DRIVER, "unknown: nvmlInit_v2: NVML_ERROR_DRIVER_NOT_LOADED (9)");
	says(gpu(&r, GPU0), PP_F_GPU_UUID,
	     "unknown: nvmlInit_v2: NVML_ERROR_DRIVER_NOT_LOADED (9)");
	done(&r);
}

static void test_no_library(void **state)
{
	struct rig r;
	void *real = dlopen("libnvidia-ml.so.1", RTLD_LAZY);

	(void)state;
	if (real) {
		(void)dlclose(real);
		print_message("this machine has a libnvidia-ml.so.1\n");
		skip();
	}
	start_live(&r);
	(void)pp_object_add(&r.n.facts, PP_GPU, GPU0);
	pp_collect_gpu(&r.n);
	says(r.n.self, PP_F_NVML_VERSION, "unknown: libnvidia-ml.so.1 not found");
	says(r.n.self, PP_F_CUDA_DRIVER, "unknown: libcuda.so.1 not found");
	says(gpu(&r, GPU0), PP_F_GPU_BAR1_COVERS, "unknown: libnvidia-ml.so.1 not found");
	says(gpu(&r, GPU0), PP_F_GPU_DMABUF, "unknown: libcuda.so.1 not found");
	assert_int_equal(r.n.n_gpus, 1);
	done(&r);
}

/* A library that blocks or dies costs its own facts only, and the call is named. */
static void test_block_and_crash(void **state)
{
	const struct pp_dl_options hasty = {.deadline = 300 * PP_MILLISECOND};
	struct pp_answer a;
	struct rig r;
	pp_ns before;

	(void)state;
	start_live(&r);
	load(&r, "nvml/libnvidia-ml.so.1");
	load(&r, "cuda/libcuda.so.1");
	(void)setenv("PP_FAKE_NVML", "block", 1);
	(void)setenv("PP_FAKE_CUDA", "block", 1);
	before = pp_clock_monotonic();
	assert_int_equal(pp_nvml_ask(r.src, &hasty, &a), 0);
	assert_false(a.answered);
	assert_string_equal(a.detail, "nvmlInit_v2 did not return in 300 ms");
	pp_answer_done(&a);
	assert_int_equal(pp_cuda_ask(r.src, &hasty, &a), 0);
	assert_string_equal(a.detail, "cuInit did not return in 300 ms");
	pp_answer_done(&a);
	assert_in_range(pp_clock_monotonic() - before, 600 * PP_MILLISECOND, 3 * PP_SECOND);

	(void)unsetenv("PP_FAKE_CUDA");
	(void)setenv("PP_FAKE_NVML", "crash", 1);
	pp_collect_gpu(&r.n);
	says(gpu(&r, GPU0), PP_F_GPU_FB_TOTAL,
	     "unknown: nvmlDeviceGetMemoryInfo (GPU 0) crashed with signal 11 (SEGV)");
	says(gpu(&r, GPU0), PP_F_GPU_NVLINKS,
	     "unknown: nvmlDeviceGetMemoryInfo (GPU 0) crashed with signal 11 (SEGV)");
	says(gpu(&r, GPU0), PP_F_GPU_DMABUF, "yes");
	says(gpu(&r, GPU0), PP_F_GPU_NAME, "NVIDIA H200"); /* by CUDA */
	done(&r);
}

/* Examining a machine must not load a kernel module. */
static void test_not_asked(void **state)
{
	const struct pp_dl_options absent = {.module_absent = true, .loader = "/bin/sh"};
	const struct pp_dl_options no_loader = {.module_absent = true, .loader = "/nonexistent"};
	struct pp_answer a;
	struct rig r;

	(void)state;
	start_live(&r);
	load(&r, "nvml/libnvidia-ml.so.1");
	load(&r, "cuda/libcuda.so.1");
	assert_int_equal(pp_nvml_ask(r.src, &absent, &a), 0);
	assert_false(a.answered);
	assert_string_equal(a.detail,
			    "not asked: the kernel module is not loaded, and libnvidia-ml.so.1 "
			    "would load it through /bin/sh");
	pp_answer_done(&a);
	assert_int_equal(pp_cuda_ask(r.src, &absent, &a), 0);
	assert_false(a.answered);
	assert_null(json_object_get(a.data, "library"));
	pp_answer_done(&a);
	assert_int_equal(pp_nvml_ask(r.src, &no_loader, &a), 0);
	assert_true(a.answered);
	pp_answer_done(&a);
	done(&r);
}

/* V100 machine of three: two links, one link, none; as nvidia-smi shows NV2, NV1 and no NV. */
static void test_mesh(void **state)
{
	static const char nvml[] =
		"{\"gpus\": ["
		"{\"bdf\": \"00000000:0A:00.0\", \"links\": ["
		"{\"active\": true, \"remote_bdf\": \"00000000:0B:00.0\"},"
		"{\"active\": true, \"remote\": \"gpu\", \"remote_bdf\": \"00000000:0B:00.0\"},"
		"{\"active\": false}]},"
		"{\"bdf\": \"00000000:0B:00.0\", \"links\": ["
		"{\"active\": true, \"remote_bdf\": \"00000000:0A:00.0\"},"
		"{\"active\": true, \"remote_bdf\": \"00000000:0A:00.0\"},"
		"{\"active\": true, \"remote_bdf\": \"00000000:0C:00.0\"}]},"
		"{\"bdf\": \"00000000:0C:00.0\", \"links\": ["
		"{\"active\": true, \"remote_bdf\": \"00000000:0B:00.0\"},"
		"{\"active\": true, \"remote\": \"npu\"}]},"
		"{\"bdf\": \"00000000:0D:00.0\", \"links\": [{\"active\": true}]},"
		"{\"bdf\": \"00000000:0E:00.0\", \"links\": [{\"error\": 1}]},"
		"{\"bdf\": \"00000000:0F:00.0\", \"links\": []},"
		"{\"bdf\": \"00000000:10:00.0\", \"links\": [], \"links_error\": \"odd\"}]}";
	static const int16_t expected[7][7] = {
		{0, 2, 0, 0, 0, 0, 0},	     {2, 0, 1, 0, 0, 0, 0},	  {0, 1, 0, 0, 0, 0, 0},
		{-1, -1, -1, 0, -1, -1, -1}, {-1, -1, -1, -1, 0, -1, -1}, {0, 0, 0, 0, 0, 0, 0},
		{-1, -1, -1, -1, -1, -1, 0},
	};
	struct rig r;

	(void)state;
	start_replay(&r, nvml, NULL);
	pp_collect_gpu(&r.n);
	assert_int_equal(r.n.n_gpus, 7);
	for (size_t i = 0; i < 7; i++)
		for (size_t j = 0; j < 7; j++)
			assert_int_equal(r.n.nvlinks[i * 7 + j], expected[i][j]);
	says(gpu(&r, "0000:0a:00.0"), PP_F_GPU_NVLINKS, "2");
	says(gpu(&r, "0000:0a:00.0"), PP_F_GPU_NVLINKS_DOWN, "1");
	says(gpu(&r, "0000:0e:00.0"), PP_F_GPU_NVLINKS,
	     "unknown: the state of a link could not be read");
	says(gpu(&r, "0000:0f:00.0"), PP_F_GPU_NVLINKS, "0");
	says(gpu(&r, "0000:10:00.0"), PP_F_GPU_NVLINKS, "unknown: odd");
	says(gpu(&r, "0000:0a:00.0"), PP_F_GPU_DMABUF, "unknown: not in the recording");
	done(&r);
}

/* Grace Hopper: nvidia-smi shows BAR1 as N/A, and that is no error. MIG hides the rest from CUDA.
 */
static void test_coherent_and_mig(void **state)
{
	static const char nvml[] =
		"{\"gpus\": [{\"bdf\": \"00000009:01:00.0\", \"memory_bytes\": 102005473280, "
		"\"bar1_error\": \"NVML_ERROR_NOT_SUPPORTED (3)\", \"c2c\": 1, \"addressing\": 2, "
		"\"mig\": 1, \"pstate\": 0},"
		"{\"bdf\": \"00000000:01:00.0\", \"memory_bytes\": 25757220864, "
		"\"bar1_total_bytes\": 268435456, \"bar1_used_bytes\": 268435457}]}";
	const struct pp_object *o;
	struct rig r;

	(void)state;
	start_replay(&r, nvml, "{\"devices\": []}");
	pp_collect_gpu(&r.n);
	o = gpu(&r, "0009:01:00.0");
	says(o, PP_F_GPU_C2C, "yes");
	says(o, PP_F_GPU_ADDRESSING, "ATS");
	says(o, PP_F_GPU_BAR1_TOTAL, "0");
	says(o, PP_F_GPU_BAR1_COVERS,
	     "unknown: no BAR1 window: GPU memory is coherent with the CPU's");
	says(o, PP_F_GPU_MIG, "on");
	says(o, PP_F_GPU_GDR,
	     "unknown: CUDA does not list it: with MIG on, a process sees one instance only");
	/* A 24 GB card whose firmware gives a window of 256 MiB. */
	o = gpu(&r, "0000:01:00.0");
	says(o, PP_F_GPU_BAR1_COVERS, "no");
	says(o, PP_F_GPU_BAR1_USED, "unknown: its answer does not hold it"); /* over the total */
	done(&r);
}

/* A recording is input: wrong types, signs, lengths and control bytes give unknown facts. */
static void test_hostile_recording(void **state)
{
	struct pp_buf PP_AUTO_BUF many = PP_BUF((size_t)4 << 20);
	const struct pp_object *o;
	struct rig r;

	(void)state;
	start_replay(
		&r,
		"{\"nvml_version\": [1], \"driver_version\": \"580\\u001b[31m\", \"gpus\": [7, "
		"{\"bdf\": 3}, {\"bdf\": \"0000:01:00.0\", \"name\": \"H\\u0007200\", "
		"\"uuid\": \"\", \"memory_bytes\": -1, \"persistence\": 2, \"pstate\": 32, "
		"\"clock_reasons\": 9223372036854775807, \"addressing\": 3, \"links\": 5},"
		"{\"bdf\": \"0000:01:00.0\", \"name\": \"second\"}]}",
		"{\"driver_api\": \"x\", \"devices\": {\"bdf\": \"0000:01:00.0\"}}");
	pp_collect_gpu(&r.n);
	says(r.n.self, PP_F_NVML_VERSION, "unknown: its answer does not hold it");
	says(r.n.self, PP_F_NVML_DRIVER, "580?[31m");
	says(r.n.self, PP_F_CUDA_DRIVER, "unknown: the answer holds no list of GPUs");
	assert_int_equal(r.n.facts.count[PP_GPU], 1);
	o = gpu(&r, "0000:01:00.0");
	says(o, PP_F_GPU_NAME, "H?200");
	says(o, PP_F_GPU_UUID, "unknown: its answer does not hold it");
	says(o, PP_F_GPU_FB_TOTAL, "unknown: its answer does not hold it");
	says(o, PP_F_GPU_PERSISTENCE, "unknown: its answer does not hold it");
	says(o, PP_F_GPU_ADDRESSING, "unknown: its answer does not hold it");
	says(o, PP_F_GPU_THROTTLED, "yes");
	says(o, PP_F_GPU_NVLINKS, "unknown: its answer does not hold it");
	done(&r);

	pp_buf_str(&many, "{\"gpus\": [");
	for (unsigned int i = 0; i < 5000; i++)
		pp_buf_printf(&many, "%s{\"bdf\": \"%x:00:00.0\"}", i ? "," : "", i);
	pp_buf_str(&many, "]}");
	start_replay(&r, pp_buf_text(&many), "[]");
	pp_collect_gpu(&r.n);
	assert_int_equal(r.n.facts.count[PP_GPU], PP_NVML_GPUS);
	done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_h200),
		cmocka_unit_test(test_replay_is_live),
		cmocka_unit_test(test_few_symbols),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_proprietary_and_lost),
		cmocka_unit_test(test_no_driver),
		cmocka_unit_test(test_no_library),
		cmocka_unit_test(test_block_and_crash),
		cmocka_unit_test(test_not_asked),
		cmocka_unit_test(test_mesh),
		cmocka_unit_test(test_coherent_and_mig),
		cmocka_unit_test(test_hostile_recording),
	};

	return cmocka_run_group_tests_name("gpu", tests, NULL, NULL);
}
