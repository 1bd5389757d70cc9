/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of NVML, in the helper. Only reads, and makes no CUDA context.
 */
#include "node/nvml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/dl.h"
#include "node/nvml_call.h"
#include "base/banned.h"

enum { MAX_PROCESSES = 4096, PROCESS_TRIES = 3 };

/*
 * One entry of the process list has 16 to 32 bytes, by version of the call and, for one driver
 * branch, against it. Only their number is wanted: room for the largest is enough.
 */
enum { PROCESS_BYTES = 64 };

static void write_system_text(const struct pp_nvml *t, const char *member, const char *name)
{
	int (*fn)(char *, unsigned int) = pp_nvml_entry_for(t, member, name);
	char text[PP_NVML_TEXT + 1] = "";

	if (fn && pp_nvml_good(t, member, fn(text, PP_NVML_TEXT)))
		pp_json_str(t->out, member, text);
}

static void write_texts(const struct pp_nvml *t)
{
	static const struct {
		const char *member, *name;
	} texts[] = {
		{"name", "nvmlDeviceGetName"},
		{"uuid", "nvmlDeviceGetUUID"},
		{"serial", "nvmlDeviceGetSerial"},
		{"vbios", "nvmlDeviceGetVbiosVersion"},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(texts); i++) {
		int (*fn)(nvml_device, char *, unsigned int) =
			pp_nvml_entry_for(t, texts[i].member, texts[i].name);
		char text[PP_NVML_TEXT + 1] = "";

		if (fn && pp_nvml_good(t, texts[i].member, fn(t->device, text, PP_NVML_TEXT)))
			pp_json_str(t->out, texts[i].member, text);
	}
}

/* Calls that give one unsigned int, or a structure of one (C2C). */
static void write_numbers(const struct pp_nvml *t)
{
	static const struct {
		const char *member, *name;
	} numbers[] = {
		{"persistence", "nvmlDeviceGetPersistenceMode"},
		{"pstate", "nvmlDeviceGetPerformanceState"},
		{"pcie_gen", "nvmlDeviceGetCurrPcieLinkGeneration"},
		{"pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"},
		{"pcie_gen_max", "nvmlDeviceGetMaxPcieLinkGeneration"},
		{"pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth"},
		{"c2c", "nvmlDeviceGetC2cModeInfoV"},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(numbers); i++) {
		int (*fn)(nvml_device, unsigned int *) =
			pp_nvml_entry_for(t, numbers[i].member, numbers[i].name);
		unsigned int value = 0;

		if (fn && pp_nvml_good(t, numbers[i].member, fn(t->device, &value)))
			pp_json_u64(t->out, numbers[i].member, value);
	}
}

static void write_clock(const struct pp_nvml *t, const char *member, const char *name)
{
	int (*fn)(nvml_device, int, unsigned int *) = pp_nvml_entry_for(t, member, name);
	unsigned int mhz = 0;

	if (fn && pp_nvml_good(t, member, fn(t->device, NVML_CLOCK_SM, &mhz)))
		pp_json_u64(t->out, member, mhz);
}

static void write_memory(const struct pp_nvml *t)
{
	/* The first version of the structure: its total is the one nvidia-smi prints. */
	int (*memory)(nvml_device, struct nvml_memory *) =
		pp_nvml_entry_for(t, "memory_bytes", "nvmlDeviceGetMemoryInfo");
	int (*bar1)(nvml_device, struct nvml_memory *);
	struct nvml_memory m = {0};

	if (memory && pp_nvml_good(t, "memory_bytes", memory(t->device, &m)))
		pp_json_u64(t->out, "memory_bytes", m.total);
	bar1 = pp_nvml_entry_for(t, "bar1", "nvmlDeviceGetBAR1MemoryInfo");
	if (bar1 && pp_nvml_good(t, "bar1", bar1(t->device, &m))) {
		pp_json_u64(t->out, "bar1_total_bytes", m.total);
		pp_json_u64(t->out, "bar1_used_bytes", m.used);
	}
}

static void write_modes(const struct pp_nvml *t)
{
	struct nvml_addressing mode = {.version = NVML_STRUCT(struct nvml_addressing, 1)};
	int (*mig)(nvml_device, unsigned int *, unsigned int *) =
		pp_nvml_entry_for(t, "mig", "nvmlDeviceGetMigMode");
	int (*addressing)(nvml_device, struct nvml_addressing *);
	unsigned int now = 0, pending = 0;

	if (mig && pp_nvml_good(t, "mig", mig(t->device, &now, &pending)))
		pp_json_u64(t->out, "mig", now);
	addressing = pp_nvml_entry_for(t, "addressing", "nvmlDeviceGetAddressingMode");
	if (addressing && pp_nvml_good(t, "addressing", addressing(t->device, &mode)))
		pp_json_u64(t->out, "addressing", mode.value);
}

/* Why clocks are what they are. R535 renamed the call; the old name goes away one day. */
static void write_clock_reasons(const struct pp_nvml *t)
{
	int (*fn)(nvml_device, unsigned long long *) =
		pp_nvml_entry(t, "nvmlDeviceGetCurrentClocksEventReasons");
	unsigned long long bits = 0;

	if (!fn)
		fn = pp_nvml_entry_for(t, "clock_reasons",
				       "nvmlDeviceGetCurrentClocksThrottleReasons");
	if (fn && pp_nvml_good(t, "clock_reasons", fn(t->device, &bits)))
		pp_json_u64(t->out, "clock_reasons", bits);
}

/* The list may grow between being measured and being read. */
static void write_processes(const struct pp_nvml *t)
{
	static const char *const names[] = {"nvmlDeviceGetComputeRunningProcesses_v3",
					    "nvmlDeviceGetComputeRunningProcesses_v2",
					    "nvmlDeviceGetComputeRunningProcesses"};
	int (*fn)(nvml_device, unsigned int *, void *) = NULL;
	unsigned int n = 0;
	void *list;
	int code;

	for (size_t i = 0; i < PP_ARRAY_LEN(names) && !fn; i++)
		fn = i + 1 < PP_ARRAY_LEN(names) ? pp_nvml_entry(t, names[i])
						 : pp_nvml_entry_for(t, "processes", names[i]);
	if (!fn)
		return;
	code = fn(t->device, &n, NULL);
	for (int i = 0; i < PROCESS_TRIES && code == NVML_INSUFFICIENT_SIZE; i++) {
		if (n > MAX_PROCESSES)
			break;
		n += 16;
		list = calloc(n, PROCESS_BYTES);
		if (!list)
			break;
		code = fn(t->device, &n, list);
		free(list);
	}
	if (pp_nvml_good(t, "processes", code))
		pp_json_u64(t->out, "processes", n);
}

/* State of the registration with the NVSwitch fabric: it tells what a link leads to. */
static void write_fabric(const struct pp_nvml *t)
{
	int (*fn)(nvml_device, struct nvml_fabric *) =
		pp_nvml_entry_for(t, "fabric_state", "nvmlDeviceGetGpuFabricInfoV");
	struct nvml_fabric fabric = {.version = NVML_STRUCT(struct nvml_fabric, 2)};

	if (fn && pp_nvml_good(t, "fabric_state", fn(t->device, &fabric)))
		pp_json_u64(t->out, "fabric_state", fabric.state);
}

static void write_remote(const struct pp_nvml *t, unsigned int link)
{
	static const char *const kinds[] = {"gpu", "npu", "switch"};
	int (*kind)(nvml_device, unsigned int, int *) =
		pp_nvml_entry_for(t, "remote", "nvmlDeviceGetNvLinkRemoteDeviceType");
	int (*where)(nvml_device, unsigned int, struct nvml_pci *);
	struct {
		struct nvml_pci pci;
		char end; /* ends an id that the library left open */
	} remote = {0};
	int type = -1;

	if (kind && pp_nvml_good(t, "remote", kind(t->device, link, &type)))
		pp_json_str(t->out, "remote",
			    type >= 0 && (size_t)type < PP_ARRAY_LEN(kinds) ? kinds[type]
									    : "unknown");
	where = pp_nvml_entry_for(t, "remote_bdf", "nvmlDeviceGetNvLinkRemotePciInfo_v2");
	if (where && pp_nvml_good(t, "remote_bdf", where(t->device, link, &remote.pci)))
		pp_json_str(t->out, "remote_bdf", remote.pci.id);
}

/* Links of the board; the library's own maximum when it does not say. */
static unsigned int link_count(const struct pp_nvml *t)
{
	int (*fn)(nvml_device, int, struct nvml_field *) =
		pp_nvml_entry(t, "nvmlDeviceGetFieldValues");
	struct nvml_field field = {.id = NVML_FIELD_LINK_COUNT, .result = -1};

	if (!fn || fn(t->device, 1, &field) != NVML_SUCCESS || field.result != NVML_SUCCESS)
		return PP_NVML_LINKS;
	return field.value.u32 < PP_NVML_LINKS ? field.value.u32 : PP_NVML_LINKS;
}

static void write_links(const struct pp_nvml *t)
{
	unsigned int n = link_count(t), told = 0;
	int (*fn)(nvml_device, unsigned int, int *) =
		pp_nvml_entry_for(t, "links", "nvmlDeviceGetNvLinkState");
	int active, code;

	if (!fn)
		return;
	pp_json_array(t->out, "links");
	for (unsigned int link = 0; link < n; link++) {
		active = 0;
		(void)pp_nvml_entry(t, "nvmlDeviceGetNvLinkState");
		code = fn(t->device, link, &active);
		/* Both say that the board has no such link. */
		if (code == NVML_INVALID_ARGUMENT || code == NVML_NOT_SUPPORTED)
			continue;
		told++;
		pp_json_object(t->out, NULL);
		pp_json_u64(t->out, "link", link);
		if (pp_nvml_good(t, "active", code)) {
			pp_json_bool(t->out, "active", active);
			if (active)
				write_remote(t, link);
		}
		pp_json_end_object(t->out);
	}
	pp_json_end_array(t->out);
	if (n && n < PP_NVML_LINKS && !told)
		pp_dl_missing(t->out, "links", "NVML counts %u links and tells the state of none",
			      n);
}

static void write_gpu(struct pp_nvml *t, unsigned int index)
{
	int (*handle)(unsigned int, nvml_device *), (*where)(nvml_device, struct nvml_pci *);
	struct {
		struct nvml_pci pci;
		char end;
	} self = {0};

	t->gpu = (int)index;
	t->device = NULL;
	pp_json_object(t->out, NULL);
	pp_json_u64(t->out, "index", index);
	handle = pp_nvml_entry_for(t, "bdf", "nvmlDeviceGetHandleByIndex_v2");
	if (handle && pp_nvml_good(t, "bdf", handle(index, &t->device))) {
		where = pp_nvml_entry_for(t, "bdf", "nvmlDeviceGetPciInfo_v3");
		if (where && pp_nvml_good(t, "bdf", where(t->device, &self.pci)))
			pp_json_str(t->out, "bdf", self.pci.id);
		write_texts(t);
		write_memory(t);
		write_modes(t);
		write_numbers(t);
		write_clock(t, "sm_clock_mhz", "nvmlDeviceGetClockInfo");
		write_clock(t, "sm_clock_max_mhz", "nvmlDeviceGetMaxClockInfo");
		write_clock_reasons(t);
		write_processes(t);
		write_fabric(t);
		write_links(t);
	}
	pp_json_end_object(t->out);
	t->gpu = -1;
}

static void write_gpus(struct pp_nvml *t)
{
	int (*count)(unsigned int *) = pp_nvml_entry_for(t, "gpus", "nvmlDeviceGetCount_v2");
	unsigned int n = 0;

	if (!count || !pp_nvml_good(t, "gpus", count(&n)))
		return;
	pp_json_array(t->out, "gpus");
	for (unsigned int i = 0; i < n && i < PP_NVML_GPUS; i++)
		write_gpu(t, i);
	pp_json_end_array(t->out);
}

/* In the helper. */
static int run(struct pp_json *out, const void *arg, struct pp_error *err)
{
	const struct pp_dl_options *options = arg;
	struct pp_nvml t = {.out = out, .gpu = -1};
	char text[PP_NVML_TEXT];
	int (*init)(void), (*end)(void);
	int r;

	r = pp_dl_permit(options, PP_NVML_LIBRARY, err);
	if (!r)
		r = pp_dl_open(PP_NVML_LIBRARY, out, &t.lib, err);
	if (r)
		return r;
	/* Needs no driver, and tells the library's version when the driver refuses it. */
	write_system_text(&t, "nvml_version", "nvmlSystemGetNVMLVersion");
	init = pp_nvml_entry(&t, "nvmlInit_v2");
	if (!init)
		return pp_error_set(err, -ENOSYS, "this %s has no nvmlInit_v2", PP_NVML_LIBRARY);
	r = init();
	if (r != NVML_SUCCESS)
		return pp_error_set(err, -EIO, "nvmlInit_v2: %s", pp_nvml_error(r, text));
	write_system_text(&t, "driver_version", "nvmlSystemGetDriverVersion");
	write_gpus(&t);
	end = pp_nvml_entry(&t, "nvmlShutdown");
	if (end)
		(void)end();
	return 0;
}

int pp_nvml_ask(struct pp_source *s, const struct pp_dl_options *options, struct pp_answer *ret)
{
	const struct pp_question q = {
		.name = "nvml", .run = run, .arg = options, .deadline = options->deadline};

	return pp_ask(s, &q, ret);
}
