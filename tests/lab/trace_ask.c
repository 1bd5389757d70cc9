/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: trace_ask [PID [UID]]
 *
 * The collectors of src/trace as a program that runs in a guest. Prints one JSON object: the
 * answers the surfaces, and what the readers make of them. With UID it is that user, without a
 * right.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/parse.h"
#include "trace/buffer.h"
#include "trace/peermem.h"
#include "trace/process.h"

static const char *const kinds[] = {"mr", "pd", "ctx", "qp"};

static void put_report(struct pp_json *j, enum pp_surface s, const struct pp_surface_report *r)
{
	pp_json_object(j, pp_surface_name(s));
	pp_json_str(j, "state", pp_surface_state_name(r->state));
	pp_json_str(j, "why", r->why);
	pp_json_end_object(j);
}

/* Objects with the thread and the process that are behind them. */
static void put_objects(struct pp_json *j, const struct pp_resources *r,
			const struct pp_processes *p)
{
	enum pp_resource_kind by = PP_RESOURCE_MR;
	const struct pp_process *owner;
	uint32_t tid;

	pp_json_array(j, "objects");
	for (size_t i = 0; i < r->n; i++) {
		const struct pp_resource *o = &r->item[i];

		pp_json_object(j, NULL);
		pp_json_str(j, "device", r->device[o->device].name);
		pp_json_str(j, "kind", kinds[o->kind]);
		pp_json_u64(j, "id", o->id);
		if (o->has_parent)
			pp_json_u64(j, "parent", o->parent);
		if (o->has_length)
			pp_json_u64(j, "length", o->length);
		if (o->has_keys) {
			pp_json_u64(j, "lkey", o->lkey);
			pp_json_u64(j, "rkey", o->rkey);
		}
		pp_json_u64(j, "tid", o->tid);
		pp_json_str(j, "kernel", o->kernel_user);
		tid = pp_resource_thread(r, o, &by);
		owner = tid ? pp_process_of_thread(p, (pid_t)tid) : NULL;
		pp_json_u64(j, "thread", tid);
		pp_json_str(j, "thread_of", tid ? kinds[by] : "");
		pp_json_i64(j, "pid", owner ? owner->pid : 0);
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
}

static void put_descriptors(struct pp_json *j, const struct pp_process *p)
{
	pp_json_array(j, "buffers");
	for (size_t i = 0; i < p->n_buffers; i++) {
		pp_json_object(j, NULL);
		pp_json_i64(j, "fd", p->buffer[i].fd);
		pp_json_u64(j, "size", p->buffer[i].size);
		pp_json_u64(j, "inode", p->buffer[i].inode);
		pp_json_u64(j, "count", p->buffer[i].count);
		pp_json_str(j, "exporter", p->buffer[i].exporter);
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
}

static void put_processes(struct pp_json *j, const struct pp_processes *p)
{
	pp_json_array(j, "processes");
	for (size_t i = 0; i < p->n; i++) {
		const struct pp_process *o = &p->item[i];

		pp_json_object(j, NULL);
		pp_json_i64(j, "pid", o->pid);
		pp_json_str(j, "comm", o->comm);
		pp_json_i64(j, "pinned_kb", o->pinned_kb);
		pp_json_u64(j, "started", o->started);
		pp_json_u64(j, "pid_ns", o->pid_ns);
		pp_json_bool(j, "is", pp_process_is(o->pid, o->started));
		put_descriptors(j, o);
		pp_json_array(j, "uverbs");
		for (unsigned int u = 0; u < o->n_uverbs; u++)
			pp_json_str(j, NULL, o->uverbs[u]);
		pp_json_end_array(j);
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
}

static void put_buffers(struct pp_json *j, const struct pp_buffers *b)
{
	pp_json_array(j, "dmabufs");
	for (size_t i = 0; i < b->n; i++) {
		pp_json_object(j, NULL);
		pp_json_u64(j, "size", b->item[i].size);
		pp_json_u64(j, "inode", b->item[i].inode);
		pp_json_str(j, "exporter", b->item[i].exporter);
		pp_json_u64(j, "count", b->item[i].count);
		pp_json_array(j, "devices");
		for (uint32_t d = 0; d < b->item[i].n_attached; d++)
			pp_json_str(j, NULL, b->attached[b->item[i].first + d]);
		pp_json_end_array(j);
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
}

static int look(struct pp_source *s, pid_t pid, struct pp_json *j)
{
	struct pp_answer a = {0};
	struct pp_resources resources;
	struct pp_processes processes;
	struct pp_buffers buffers;
	struct pp_peermem peermem;
	pp_ns start = pp_clock_monotonic();
	int r;

	r = pp_resources_ask(s, &a) || pp_resources_read(&a, &resources);
	pp_answer_done(&a);
	r = r || pp_processes_ask(s, &resources, pid, &a) || pp_processes_read(&a, &processes);
	pp_answer_done(&a);
	r = r || pp_buffers_ask(s, &a) || pp_buffers_read(&a, &buffers);
	pp_answer_done(&a);
	if (r)
		return 1;
	pp_peermem_read(s, &peermem);
	pp_json_i64(j, "took_ms", (pp_clock_monotonic() - start) / PP_MILLISECOND);
	pp_json_object(j, "surfaces");
	put_report(j, PP_SURFACE_RESOURCES, &resources.resources);
	put_report(j, PP_SURFACE_KEYS, &resources.keys);
	put_report(j, PP_SURFACE_PROCESSES, &processes.processes);
	put_report(j, PP_SURFACE_FDINFO, &processes.fdinfo);
	put_report(j, PP_SURFACE_BUFINFO, &buffers.report);
	put_report(j, PP_SURFACE_PEERMEM, &peermem.report);
	pp_json_end_object(j);
	put_objects(j, &resources, &processes);
	put_processes(j, &processes);
	put_buffers(j, &buffers);
	pp_resources_done(&resources);
	pp_processes_done(&processes);
	pp_buffers_done(&buffers);
	return 0;
}

int main(int argc, char **argv)
{
	struct pp_buf out = PP_BUF((size_t)64 << 20);
	struct pp_json j = PP_JSON(&out, false);
	struct pp_source *s = NULL;
	struct pp_error err = {0};
	uint64_t pid = 0, uid = 0;

	if ((argc > 1 && pp_parse_u64(argv[1], 0, INT32_MAX, &pid)) ||
	    (argc > 2 && (pp_parse_u64(argv[2], 1, INT32_MAX, &uid) || setgid((gid_t)uid) ||
			  setuid((uid_t)uid))) ||
	    pp_source_live(&s, &err)) {
		(void)fprintf(stderr, "trace_ask: %s\n", err.text);
		return 64;
	}
	pp_json_object(&j, NULL);
	if (look(s, (pid_t)pid, &j))
		return 1;
	pp_json_end_object(&j);
	(void)puts(pp_buf_text(&out));
	pp_buf_done(&out);
	pp_source_free(s);
	return 0;
}
