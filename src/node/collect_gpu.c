/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of the GPUs from NVML and CUDA, joined by PCI address with the GPU objects that the PCI
 * tree gave. A GPU that only a library knows becomes an object too; what a library does not say
 * of a GPU is unknown, with the library's reason.
 */
#include "node/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "node/cuda.h"
#include "node/gpu_side.h"
#include "node/nvlink.h"
#include "node/nvml.h"
#include "node/smi_compare.h"
#include "base/banned.h"

enum { NVML_PSTATE_UNKNOWN = 32 };

/* Members that are facts as they are: by the fact's type, numbers not negative. */
struct plain {
	enum pp_fact_id id;
	const char *member, *source;
};

static const struct plain nvml_facts[] = {
	{PP_F_GPU_UUID, "uuid", "nvmlDeviceGetUUID"},
	{PP_F_GPU_NAME, "name", "nvmlDeviceGetName"},
	{PP_F_GPU_INDEX, "index", "nvmlDeviceGetHandleByIndex_v2"},
	{PP_F_GPU_SERIAL, "serial", "nvmlDeviceGetSerial"},
	{PP_F_GPU_VBIOS, "vbios", "nvmlDeviceGetVbiosVersion"},
	{PP_F_GPU_FB_TOTAL, "memory_bytes", "nvmlDeviceGetMemoryInfo"},
	{PP_F_GPU_PERSISTENCE, "persistence", "nvmlDeviceGetPersistenceMode"},
	{PP_F_GPU_SM_CLOCK, "sm_clock_mhz", "nvmlDeviceGetClockInfo"},
	{PP_F_GPU_SM_CLOCK_MAX, "sm_clock_max_mhz", "nvmlDeviceGetMaxClockInfo"},
	{PP_F_GPU_PROCESSES, "processes", "nvmlDeviceGetComputeRunningProcesses_v3"},
	{PP_F_GPU_PCIE_GEN_MAX, "pcie_gen_max", "nvmlDeviceGetMaxPcieLinkGeneration"},
	{PP_F_GPU_PCIE_WIDTH_MAX, "pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth"},
	{PP_F_GPU_PCIE_GEN, "pcie_gen", "nvmlDeviceGetCurrPcieLinkGeneration"},
	{PP_F_GPU_PCIE_WIDTH, "pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"},
};

static const struct plain cuda_facts[] = {
	{PP_F_GPU_DMABUF, "dmabuf", "CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED"},
	{PP_F_GPU_GDR, "gdr", "CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED"},
	{PP_F_GPU_GDR_VMM, "gdr_vmm",
	 "CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED"},
	{PP_F_GPU_FLUSH, "flush_options",
	 "CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS"},
	{PP_F_GPU_ORDERING, "writes_ordering",
	 "CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING"},
};

/* Why clocks are what they are; holds: it is power, heat or hardware that holds them down. */
static const struct {
	const char *word;
	bool holds;
} clock_reasons[] = {
	{"idle", false},
	{"application clocks setting", false},
	{"software power cap", true},
	{"hardware slowdown", true},
	{"sync boost", false},
	{"software thermal slowdown", true},
	{"hardware thermal slowdown", true},
	{"hardware power brake", true},
	{"display clock setting", false},
};

static void set_plain(struct pp_node *n, struct pp_object *o, const struct pp_gpu_side *s,
		      unsigned int i, const struct plain *p)
{
	enum pp_type type = pp_fact_table[p->id].type;
	const char *text;
	int64_t v;

	if (type == PP_STR) {
		text = pp_gpu_text(n, s->of[i], p->member);
		if (text)
			return pp_fact_str(&n->facts, o, p->id, text, p->source);
	} else if (!pp_gpu_number(s->of[i], p->member, type == PP_BOOL ? 1 : INT64_MAX, &v)) {
		return pp_fact_int(&n->facts, o, p->id, v, p->source);
	}
	pp_gpu_absent(n, o, p->id, s, i, p->member, p->source);
}

/*
 * C2C: "not supported" is the library's word for a GPU without such a link. An addressing mode
 * that it does not support tells nothing.
 */
static void set_modes(struct pp_node *n, struct pp_object *o, const struct pp_gpu_side *s,
		      unsigned int i)
{
	static const char *const addressing[] = {"none", "HMM", "ATS"};
	static const char c2c[] = "nvmlDeviceGetC2cModeInfoV", mig[] = "nvmlDeviceGetMigMode";
	static const char pstate[] = "nvmlDeviceGetPerformanceState";
	const json_t *gpu = s->of[i];
	int64_t v;

	if (!pp_gpu_number(gpu, "mig", 1, &v))
		pp_fact_str(&n->facts, o, PP_F_GPU_MIG, v ? "on" : "off", mig);
	else if (pp_gpu_unsupported(gpu, "mig"))
		pp_fact_str(&n->facts, o, PP_F_GPU_MIG, "not supported", mig);
	else
		pp_gpu_absent(n, o, PP_F_GPU_MIG, s, i, "mig", mig);
	if (!pp_gpu_number(gpu, "c2c", 1, &v))
		pp_fact_bool(&n->facts, o, PP_F_GPU_C2C, v, c2c);
	else if (pp_gpu_unsupported(gpu, "c2c"))
		pp_fact_bool(&n->facts, o, PP_F_GPU_C2C, false, c2c);
	else
		pp_gpu_absent(n, o, PP_F_GPU_C2C, s, i, "c2c", c2c);
	if (!pp_gpu_number(gpu, "addressing", 2, &v))
		pp_fact_str(&n->facts, o, PP_F_GPU_ADDRESSING, addressing[v],
			    "nvmlDeviceGetAddressingMode");
	else
		pp_gpu_absent(n, o, PP_F_GPU_ADDRESSING, s, i, "addressing",
			      "nvmlDeviceGetAddressingMode");
	if (pp_gpu_number(gpu, "pstate", NVML_PSTATE_UNKNOWN, &v))
		pp_gpu_absent(n, o, PP_F_GPU_PSTATE, s, i, "pstate", pstate);
	else if (v == NVML_PSTATE_UNKNOWN)
		pp_fact_unknown(&n->facts, o, PP_F_GPU_PSTATE, pstate,
				"NVML says that it does not know it");
	else
		pp_fact_int(&n->facts, o, PP_F_GPU_PSTATE, v, pstate);
}

/* The window onto GPU memory: a GPU whose memory the CPU addresses itself has none, and needs none.
 */
static void set_bar1(struct pp_node *n, struct pp_object *o, const struct pp_gpu_side *s,
		     unsigned int i)
{
	static const char source[] = "nvmlDeviceGetBAR1MemoryInfo";
	int64_t total, used, memory = pp_fact_int_or(o, PP_F_GPU_FB_TOTAL, 0);
	bool coherent = pp_fact_is(o, PP_F_GPU_C2C) ||
			!strcmp(pp_fact_str_or(o, PP_F_GPU_ADDRESSING, ""), "ATS");

	if (coherent && pp_gpu_unsupported(s->of[i], "bar1")) {
		pp_fact_int(&n->facts, o, PP_F_GPU_BAR1_TOTAL, 0, source);
		pp_fact_int(&n->facts, o, PP_F_GPU_BAR1_USED, 0, source);
		pp_fact_int(&n->facts, o, PP_F_GPU_BAR1_FREE, 0, source);
		pp_fact_unknown(&n->facts, o, PP_F_GPU_BAR1_COVERS, source,
				"no BAR1 window: GPU memory is coherent with the CPU's");
		return;
	}
	if (pp_gpu_number(s->of[i], "bar1_total_bytes", INT64_MAX, &total)) {
		pp_gpu_absent(n, o, PP_F_GPU_BAR1_TOTAL, s, i, "bar1", source);
		pp_gpu_absent(n, o, PP_F_GPU_BAR1_USED, s, i, "bar1", source);
		pp_gpu_absent(n, o, PP_F_GPU_BAR1_FREE, s, i, "bar1", source);
		pp_gpu_absent(n, o, PP_F_GPU_BAR1_COVERS, s, i, "bar1", source);
		return;
	}
	pp_fact_int(&n->facts, o, PP_F_GPU_BAR1_TOTAL, total, source);
	if (!pp_gpu_number(s->of[i], "bar1_used_bytes", total, &used)) {
		pp_fact_int(&n->facts, o, PP_F_GPU_BAR1_USED, used, source);
		pp_fact_int(&n->facts, o, PP_F_GPU_BAR1_FREE, total - used, source);
	} else {
		pp_gpu_absent(n, o, PP_F_GPU_BAR1_USED, s, i, "bar1_used_bytes", source);
		pp_gpu_absent(n, o, PP_F_GPU_BAR1_FREE, s, i, "bar1_used_bytes", source);
	}
	/* A window is a power of two, and memory sizes are not: whole cover shows as larger. */
	if (memory > 0 && total > 0)
		pp_fact_bool(&n->facts, o, PP_F_GPU_BAR1_COVERS, total >= memory, source);
	else
		pp_fact_unknown(&n->facts, o, PP_F_GPU_BAR1_COVERS, source, "%s",
				total ? "the size of GPU memory is unknown" : "no BAR1 window");
}

static void set_clocks(struct pp_node *n, struct pp_object *o, const struct pp_gpu_side *s,
		       unsigned int i)
{
	static const char source[] = "nvmlDeviceGetCurrentClocksEventReasons";
	const char *words[64];
	char other[64][16];
	bool held = false;
	size_t n_words = 0;
	int64_t bits;

	if (pp_gpu_number(s->of[i], "clock_reasons", INT64_MAX, &bits)) {
		pp_gpu_absent(n, o, PP_F_GPU_THROTTLE, s, i, "clock_reasons", source);
		pp_gpu_absent(n, o, PP_F_GPU_THROTTLED, s, i, "clock_reasons", source);
		return;
	}
	for (size_t bit = 1; bit < 63; bit++) { /* bit 0 is idle */
		if (!(bits >> bit & 1))
			continue;
		if (bit < PP_ARRAY_LEN(clock_reasons)) {
			words[n_words++] = clock_reasons[bit].word;
			held |= clock_reasons[bit].holds;
			continue;
		}
		(void)snprintf(other[n_words], sizeof(other[0]), "reason bit %zu", bit);
		words[n_words] = other[n_words];
		n_words++;
	}
	pp_fact_list(&n->facts, o, PP_F_GPU_THROTTLE, words, n_words, source);
	pp_fact_bool(&n->facts, o, PP_F_GPU_THROTTLED, held, source);
}

/* What one library lacks and the other says: NVML may block where CUDA does not. */
static void set_cuda(struct pp_node *n, struct pp_object *o, const struct pp_gpu_side *s,
		     unsigned int i)
{
	static const struct plain spare[] = {
		{PP_F_GPU_UUID, "uuid", "cuDeviceGetUuid"},
		{PP_F_GPU_NAME, "name", "cuDeviceGetName"},
	};
	static const char source[] = "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR";
	int64_t major, minor;
	char text[32];

	for (size_t k = 0; k < PP_ARRAY_LEN(cuda_facts); k++)
		set_plain(n, o, s, i, &cuda_facts[k]);
	if (!pp_gpu_number(s->of[i], "compute_major", 999, &major) &&
	    !pp_gpu_number(s->of[i], "compute_minor", 999, &minor)) {
		(void)snprintf(text, sizeof(text), "%" PRId64 ".%" PRId64, major, minor);
		pp_fact_str(&n->facts, o, PP_F_GPU_CC, text, source);
	} else {
		pp_gpu_absent(n, o, PP_F_GPU_CC, s, i, "compute_major", source);
	}
	for (size_t k = 0; k < PP_ARRAY_LEN(spare); k++)
		if (!pp_fact_get(o, spare[k].id)->known &&
		    pp_gpu_text(n, s->of[i], spare[k].member))
			set_plain(n, o, s, i, &spare[k]);
}

/* A version that the library gives of itself. */
static void set_version(struct pp_node *n, const struct pp_gpu_side *s, enum pp_fact_id id,
			const char *member, const char *source)
{
	const char *text = pp_gpu_text(n, s->answer.data, member), *why;
	char key[64];
	int64_t v;

	if (text && pp_fact_table[id].type != PP_INT)
		return pp_fact_str(&n->facts, n->self, id, text, source);
	if (!pp_gpu_number(s->answer.data, member, INT32_MAX, &v))
		return pp_fact_int(&n->facts, n->self, id, v, source);
	(void)snprintf(key, sizeof(key), "%s_error", member);
	why = pp_gpu_text(n, s->answer.data, key);
	why = why ? why : s->why ? s->why : "its answer does not hold it";
	pp_fact_unknown(&n->facts, n->self, id, source, "%s", why);
}

static void set_all_nvml(struct pp_node *n, struct pp_gpu_side *s)
{
	struct pp_object *o = NULL;

	set_version(n, s, PP_F_NVML_VERSION, "nvml_version", "nvmlSystemGetNVMLVersion");
	set_version(n, s, PP_F_NVML_DRIVER, "driver_version", "nvmlSystemGetDriverVersion");
	if (pp_gpu_side_match(n, s))
		return;
	for (unsigned int i = 0; (o = pp_object_next(&n->facts, PP_GPU, o)); i++) {
		for (size_t k = 0; k < PP_ARRAY_LEN(nvml_facts); k++)
			set_plain(n, o, s, i, &nvml_facts[k]);
		set_modes(n, o, s, i);
		set_bar1(n, o, s, i);
		set_clocks(n, o, s, i);
	}
	pp_nvlink_fill(n, s->of, s->why_not, n->facts.count[PP_GPU]);
}

static void set_all_cuda(struct pp_node *n, struct pp_gpu_side *s)
{
	struct pp_object *o = NULL;

	set_version(n, s, PP_F_CUDA_DRIVER, "driver_api", "cuDriverGetVersion");
	set_version(n, s, PP_F_CUDA_LIB, "library", "dlopen");
	if (pp_gpu_side_match(n, s))
		return;
	for (unsigned int i = 0; (o = pp_object_next(&n->facts, PP_GPU, o)); i++) {
		set_cuda(n, o, s, i);
		o->name = pp_fact_str_or(o, PP_F_GPU_NAME, o->name);
	}
}

void pp_collect_gpu(struct pp_node *n)
{
	const struct pp_fact *loaded = pp_fact_get(n->self, PP_F_NVIDIA_LOADED);
	const struct pp_dl_options options = {
		.module_absent = loaded && loaded->known && !loaded->i64,
	};
	struct pp_gpu_side nvml, cuda;
	struct pp_answer answer;

	pp_cuda_ahead(n->src, &options);
	pp_smi_ahead(n);
	if (pp_nvml_ask(n->src, &options, &answer))
		return;
	pp_gpu_side_init(&nvml, "NVML", answer, "gpus");
	if (!pp_cuda_ask(n->src, &options, &answer)) {
		pp_gpu_side_init(&cuda, "CUDA", answer, "devices");
		pp_gpu_side_add(n, &nvml);
		pp_gpu_side_add(n, &cuda);
		set_all_nvml(n, &nvml);
		set_all_cuda(n, &cuda);
		pp_gpu_side_done(&cuda);
	}
	pp_gpu_side_done(&nvml);
}
