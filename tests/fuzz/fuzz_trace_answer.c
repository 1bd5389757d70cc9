/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded answers of the collectors: hostile JSON as the data of each. */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "trace/buffer.h"
#include "trace/process.h"

static void read_resources(const struct pp_answer *a)
{
	enum pp_resource_kind by;
	struct pp_resources r;

	if (pp_resources_read(a, &r))
		abort();
	assert(r.resources.state == PP_SURFACE_READ || r.resources.why[0]);
	assert(r.keys.state == PP_SURFACE_READ || r.keys.why[0]);
	for (size_t i = 0; i < r.n; i++) {
		const struct pp_resource *o = &r.item[i];

		assert(o->device < r.n_devices);
		assert(pp_resource_find(&r, o->device, o->kind, o->id) == o);
		(void)pp_resource_thread(&r, o, &by);
	}
	pp_resources_done(&r);
}

static void read_processes(const struct pp_answer *a)
{
	struct pp_processes p;

	if (pp_processes_read(a, &p))
		abort();
	assert(p.processes.state == PP_SURFACE_READ || p.processes.why[0]);
	for (size_t i = 0; i < p.n; i++) {
		assert(p.item[i].pid > 0 && p.item[i].n_uverbs <= PP_PROCESS_DEVICES);
		assert(pp_process_find(&p, p.item[i].pid) == &p.item[i]);
		for (size_t t = 0; t < p.item[i].n_threads; t++)
			assert(pp_process_of_thread(&p, p.item[i].thread[t]));
	}
	pp_processes_done(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_answer a = {.answered = true, .outcome = PP_ANSWERED};
	struct pp_buffers b;

	a.data = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	if (json_is_object(a.data)) {
		read_resources(&a);
		read_processes(&a);
		if (pp_buffers_read(&a, &b))
			abort();
		assert(b.report.state == PP_SURFACE_READ || b.report.why[0]);
		pp_buffers_done(&b);
	}
	json_decref(a.data);
	return 0;
}
