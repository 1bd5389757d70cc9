/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace_soft.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/soft_ask.h"
#include "soft/engine/show.h"
#include "soft/link/slot.h"
#include "base/banned.h"

enum { ROWS_MAX = 1 << 16 };
static const size_t LIMIT = (size_t)64 << 20;

static size_t count(const json_t *processes)
{
	size_t n = 0, i, k;
	json_t *process, *device;

	json_array_foreach(processes, i, process)
		json_array_foreach(json_object_get(process, "devices"), k, device) n +=
		json_array_size(json_object_get(device, "memory_regions"));
	return n < ROWS_MAX ? n : ROWS_MAX;
}

static void add(struct pp_trace_registry *s, const json_t *process, const json_t *device,
		const json_t *region)
{
	struct pp_trace_software *row = &s->item[s->n++];

	*row = (struct pp_trace_software){
		.hca = pp_arena_str(&s->arena, pp_soft_text(device, "name")),
		.program = pp_arena_str(&s->arena, pp_soft_text(process, "program")),
		.pid = (pid_t)pp_soft_number(process, "pid"),
		.lkey = (uint32_t)pp_soft_number(region, "lkey"),
		.length = (uint64_t)pp_soft_number(region, "length_bytes"),
		.address = (uint64_t)pp_soft_number(region, "iova"),
		.dmabuf = !strcmp(pp_soft_text(region, "registration"), "dmabuf"),
		.gpu = json_is_string(json_object_get(region, "gpu")),
	};
}

static void add_all(struct pp_trace_registry *s, const json_t *processes, size_t room)
{
	size_t i, k, m;
	json_t *process, *device, *region;

	json_array_foreach(processes, i, process)
		json_array_foreach(json_object_get(process, "devices"), k, device)
			json_array_foreach(json_object_get(device, "memory_regions"), m,
					   region) if (s->n < room) add(s, process, device, region);
}

int pp_trace_soft_ask(struct pp_trace_registry *ret)
{
	struct pp_trace_registry s = {.arena = PP_ARENA(LIMIT)};
	json_t *processes = json_array();
	int r = processes ? 0 : -ENOMEM;
	size_t room;

	for (unsigned int slot = 0; !r && slot < SOFT_SLOTS; slot++) {
		json_t *process = NULL;
		int e = pp_soft_ask(slot, SOFT_SHOW_REQUEST, "devices", &process);

		if (!e)
			r = json_array_append_new(processes, process) ? -ENOMEM : 0;
		else if (e != -ENOENT) {
			s.silent++;
			(void)snprintf(s.why, sizeof(s.why), "%s", pp_soft_ask_why(e));
		}
	}
	room = r ? 0 : count(processes);
	s.item = pp_arena_array(&s.arena, room + 1, sizeof(*s.item));
	if (!r && s.item)
		add_all(&s, processes, room);
	json_decref(processes);
	if (r || s.arena.failed) {
		pp_trace_soft_done(&s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

/* Of one queue pair; NULL: nothing has gone by it. */
static const char *link_of(const json_t *qp)
{
	static const char *const words[] = {"direct", "staged", "wire"};
	const char *memory = pp_soft_text(qp, "gpu_memory"), *link = pp_soft_text(qp, "link");

	for (size_t i = 0; i < PP_ARRAY_LEN(words); i++)
		if (!strcmp(memory, words[i]))
			return words[i];
	return !strncmp(link, "same-host", 9) ? "same-host" : !strcmp(link, "wire") ? "wire" : NULL;
}

static const char *link_of_process(const json_t *process)
{
	const char *all = NULL, *one;
	json_t *device, *qp;
	size_t i, k;

	json_array_foreach(json_object_get(process, "devices"), i, device)
	{
		json_array_foreach(json_object_get(device, "queue_pairs"), k, qp)
		{
			one = link_of(qp);
			all = all && one && strcmp(all, one) != 0 ? "mixed" : one ? one : all;
		}
	}
	return all;
}

const char *pp_trace_soft_link(pid_t pid)
{
	const char *link = NULL;

	for (unsigned int slot = 0; !link && slot < SOFT_SLOTS; slot++) {
		json_t *process = NULL;

		if (pp_soft_ask(slot, SOFT_SHOW_REQUEST, "devices", &process))
			continue;
		if (pp_soft_number(process, "pid") == pid)
			link = link_of_process(process);
		json_decref(process);
	}
	return link;
}

void pp_trace_soft_done(struct pp_trace_registry *s)
{
	pp_arena_done(&s->arena);
	*s = (struct pp_trace_registry){0};
}
