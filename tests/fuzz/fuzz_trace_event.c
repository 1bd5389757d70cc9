/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of trace_pipe, in which a process's name may be anything, to events, and those to JSON and
 * back. */
#include "fuzz.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/prober_parts.h"

static void define(struct pp_kprobes *k, const char *event, enum pp_event_kind kind,
		   enum pp_surface by, bool returns, const char *module)
{
	struct pp_kprobe *p = &k->item[k->n++];

	p->kind = kind;
	p->by = by;
	p->returns = returns;
	(void)snprintf(p->event, sizeof(p->event), "%s", event);
	(void)snprintf(p->symbol, sizeof(p->symbol), "f");
	(void)snprintf(p->module, sizeof(p->module), "%s", module);
}

static void read_back(const struct pp_prober *p)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(16 << 20);
	struct pp_json j = PP_JSON(&text, false);
	struct pp_answer a = {.answered = true};
	struct pp_events events;

	pp_json_object(&j, NULL);
	pp_json_array(&j, "events");
	for (size_t i = 0; i < p->n; i++)
		pp_event_write(&j, &p->event[i]);
	pp_json_end_array(&j);
	pp_json_end_object(&j);
	a.data = json_loadb(text.data, text.len, 0, NULL);
	assert(a.data);
	if (pp_events_read(&a, &events))
		abort();
	assert(events.n + events.lost == p->n);
	pp_events_done(&events);
	json_decref(a.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_prober *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->pending = calloc(PP_PROBER_PENDING, sizeof(*p->pending));
	if (!p->pending)
		abort();
	define(&p->kprobes, "a0e", PP_EVENT_HOST, PP_SURFACE_LIVE_PROBE, false, "");
	define(&p->kprobes, "a0r", PP_EVENT_HOST, PP_SURFACE_LIVE_PROBE, true, "");
	define(&p->kprobes, "b0", PP_EVENT_REGION, PP_SURFACE_SELF_PROBE, false, "");
	define(&p->kprobes, "b1", PP_EVENT_REGION, PP_SURFACE_SELF_PROBE, false, "rdma_rxe");
	define(&p->kprobes, "a1", PP_EVENT_ADDED, PP_SURFACE_LIVE_PROBE, false, "rdma_rxe");
	define(&p->kprobes, "a2", PP_EVENT_ADDED, PP_SURFACE_LIVE_PROBE, false, "mlx5_ib");
	define(&p->kprobes, "at", PP_EVENT_ATTACH, PP_SURFACE_TRACEPOINTS, false, "");
	p->kprobes.item[p->kprobes.n - 1].point = "dma_buf";
	for (const uint8_t *end = data + size; data < end;) {
		const uint8_t *stop = memchr(data, '\n', (size_t)(end - data));
		size_t len = (size_t)((stop ? stop : end) - data);

		if (pp_prober_take(p, (const char *)data, len))
			abort();
		data += len + 1;
	}
	read_back(p);
	free(p->pending);
	free(p->event);
	free(p);
	return 0;
}
