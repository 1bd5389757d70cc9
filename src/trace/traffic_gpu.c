/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NVML counts on a GPU's PCIe link. Newer drivers keep byte counters (fields 197 and 198 of
 * nvml.h); older ones give a rate over 20 ms, asked again and again and taken for the whole window.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "node/dl.h"
#include "node/nvml_call.h"
#include "trace/traffic_parts.h"
#include "base/banned.h"

enum { FIELD_TX = 197, FIELD_RX = 198, TYPE_U32 = 1 /* NVML_VALUE_TYPE_UNSIGNED_INT */ };
/*
 * Between two looks at the counters; of a window that lasts, where no counter can wrap meanwhile,
 * the slow one.
 */
static const pp_ns TURN = 10 * PP_MILLISECOND, SLOW_TURN = PP_SECOND, LASTS = 10 * PP_SECOND;
enum { UTIL_TX = 0, UTIL_RX = 1, KB = 1000 };

struct gpu {
	nvml_device device;
	char bdf[33];
	bool counted;
	struct nvml_field last[2]; /* TX, RX */
	double bytes[2];	   /* of its counters so far */
	double rate[2];		   /* sum of what was sampled, bytes a second */
	unsigned int samples;
	int error; /* NVML's; 0 good */
};

struct watch {
	struct pp_nvml nvml;
	struct gpu gpu[PP_TRAFFIC_GPUS];
	unsigned int n;
	int (*fields)(nvml_device, int, struct nvml_field *);
	int (*throughput)(nvml_device, int, unsigned int *);
};

static int read_counters(const struct watch *w, const struct gpu *g, struct nvml_field ret[2])
{
	struct nvml_field f[2] = {{.id = FIELD_TX, .result = -1}, {.id = FIELD_RX, .result = -1}};
	int r = w->fields ? w->fields(g->device, 2, f) : NVML_NOT_SUPPORTED;

	for (int i = 0; i < 2 && !r; i++)
		r = f[i].result;
	if (!r)
		memcpy(ret, f, sizeof(f));
	return r;
}

/* A 32-bit counter wraps. */
static double grown(const struct nvml_field *before, const struct nvml_field *after)
{
	if (after->type == TYPE_U32)
		return (double)(uint32_t)(after->value.u32 - before->value.u32);
	return (double)(after->value.u64 - before->value.u64);
}

static void open_gpu(struct watch *w, unsigned int index)
{
	int (*handle)(unsigned int, nvml_device *) =
		pp_nvml_entry(&w->nvml, "nvmlDeviceGetHandleByIndex_v2");
	int (*where)(nvml_device, struct nvml_pci *) =
		pp_nvml_entry(&w->nvml, "nvmlDeviceGetPciInfo_v3");
	struct nvml_pci pci = {0};
	struct gpu *g = &w->gpu[w->n];

	if (!handle || !where || handle(index, &g->device) || where(g->device, &pci))
		return;
	(void)snprintf(g->bdf, sizeof(g->bdf), "%.32s", pci.id);
	g->counted = !read_counters(w, g, g->last);
	w->n++;
}

/*
 * Counters of 32 bits wrap after 67 ms at 64 GB/s, so they are read again and again, too.
 */
static void add_counters(struct watch *w, struct gpu *g)
{
	struct nvml_field now[2];

	g->error = read_counters(w, g, now);
	for (int i = 0; i < 2 && !g->error; i++) {
		g->bytes[i] += grown(&g->last[i], &now[i]);
		g->last[i] = now[i];
	}
}

static void sample(struct watch *w, struct gpu *g)
{
	unsigned int kb[2];
	int r = NVML_NOT_SUPPORTED;

	for (int i = UTIL_TX; i <= UTIL_RX; i++) {
		r = w->throughput ? w->throughput(g->device, i, &kb[i]) : NVML_NOT_SUPPORTED;
		if (r)
			break;
	}
	g->error = r;
	if (r)
		return;
	for (int i = UTIL_TX; i <= UTIL_RX; i++)
		g->rate[i] += (double)kb[i] * KB;
	g->samples++;
}

/* One turn over all GPUs; false when none of them tells anything. */
static bool look(struct watch *w)
{
	bool any = false;

	for (unsigned int i = 0; i < w->n; i++) {
		struct gpu *g = &w->gpu[i];

		if (g->error)
			continue;
		if (g->counted)
			add_counters(w, g);
		else
			sample(w, g);
		any = any || !g->error;
	}
	return any;
}

static bool may_wrap(const struct watch *w)
{
	for (unsigned int i = 0; i < w->n; i++)
		if (w->gpu[i].counted && w->gpu[i].last[0].type == TYPE_U32)
			return true;
	return false;
}

/* Looks until the window's end. */
static void count_all(struct watch *w, const struct pp_traffic_question *q, pp_ns start)
{
	pp_ns end = start + q->window, turn = TURN, now = start;
	bool stopped = false;

	pp_traffic_ready(q);
	while (!stopped && look(w) && now + turn < end) {
		stopped = pp_traffic_until(q, now + turn);
		now = pp_clock_monotonic();
		if (now - start > LASTS && !may_wrap(w))
			turn = SLOW_TURN;
	}
	if (!stopped)
		(void)pp_traffic_until(q, end);
	(void)look(w);
}

static void write_gpu(struct watch *w, struct gpu *g, double seconds)
{
	struct pp_json *out = w->nvml.out;
	char text[PP_NVML_TEXT];

	pp_json_object(out, NULL);
	pp_json_str(out, "bdf", g->bdf);
	if (g->error || (!g->counted && !g->samples)) {
		pp_json_str(out, "error", pp_nvml_error(g->error, text));
	} else {
		for (int i = 0; i < 2; i++)
			pp_json_u64(out, i ? "received_bytes" : "sent_bytes",
				    (uint64_t)(g->counted ? g->bytes[i]
							  : g->rate[i] / g->samples * seconds));
		pp_json_bool(out, "sampled", !g->counted);
	}
	pp_json_end_object(out);
}

static int open_library(struct watch *w, bool module_absent, struct pp_error *err)
{
	const struct pp_dl_options options = {.module_absent = module_absent};
	int (*init)(void), (*count)(unsigned int *);
	char text[PP_NVML_TEXT];
	unsigned int n = 0;
	int r = pp_dl_permit(&options, PP_NVML_LIBRARY, err);

	if (!r)
		r = pp_dl_open(PP_NVML_LIBRARY, w->nvml.out, &w->nvml.lib, err);
	if (r)
		return r;
	init = pp_nvml_entry(&w->nvml, "nvmlInit_v2");
	count = pp_nvml_entry(&w->nvml, "nvmlDeviceGetCount_v2");
	if (!init || !count)
		return pp_error_set(err, -ENOSYS, "this %s is too old", PP_NVML_LIBRARY);
	(void)pp_nvml_entry(&w->nvml, "nvmlInit_v2");
	r = init();
	if (!r)
		r = count(&n);
	if (r)
		return pp_error_set(err, -EIO, "NVML: %s", pp_nvml_error(r, text));
	w->fields = pp_nvml_entry(&w->nvml, "nvmlDeviceGetFieldValues");
	w->throughput = pp_nvml_entry(&w->nvml, "nvmlDeviceGetPcieThroughput");
	for (unsigned int i = 0; i < n && w->n < PP_TRAFFIC_GPUS; i++)
		open_gpu(w, i);
	return 0;
}

int pp_traffic_gpu_run(struct pp_json *data, const void *arg, struct pp_error *err)
{
	const struct pp_traffic_question *q = arg;
	struct watch *PP_AUTO_FREE w = calloc(1, sizeof(*w));
	pp_ns start;
	int r;

	if (!w)
		return pp_error_set(err, -ENOMEM, "no memory");
	w->nvml = (struct pp_nvml){.out = data, .gpu = -1};
	r = open_library(w, q->module_absent, err);
	if (r) {
		pp_traffic_ready(q); /* there is nothing to wait for */
		return r;
	}
	start = pp_clock_monotonic();
	pp_ask_doing("a window of PCIe counters");
	count_all(w, q, start);
	pp_json_array(data, "gpus");
	for (unsigned int i = 0; i < w->n; i++)
		write_gpu(w, &w->gpu[i], (double)(pp_clock_monotonic() - start) / 1e9);
	pp_json_end_array(data);
	return 0;
}
