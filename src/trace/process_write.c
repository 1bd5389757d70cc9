/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/process_parts.h"

#include "base/banned.h"

static void write_buffers(struct pp_json *j, const struct pp_process *p)
{
	pp_json_array(j, "buffers");
	for (size_t i = 0; i < p->n_buffers; i++) {
		const struct pp_process_buffer *b = &p->buffer[i];

		pp_json_object(j, NULL);
		pp_json_i64(j, "fd", b->fd);
		pp_json_i64(j, "inode", (int64_t)b->inode);
		pp_json_bool(j, "info", b->has_info);
		if (b->has_info) {
			pp_json_i64(j, "size", (int64_t)b->size);
			pp_json_i64(j, "count", (int64_t)b->count);
			pp_json_str(j, "exporter", b->exporter);
		}
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
}

void pp_process_write(struct pp_json *j, const struct pp_process *p, const char *why)
{

	pp_json_object(j, NULL);
	pp_json_i64(j, "pid", p->pid);
	pp_json_i64(j, "started", (int64_t)p->started);
	pp_json_i64(j, "pid_ns", (int64_t)p->pid_ns);
	pp_json_u64(j, "uid", p->uid);
	pp_json_str(j, "comm", p->comm);
	pp_json_str(j, "cgroup", p->cgroup);
	pp_json_i64(j, "pinned_kb", p->pinned_kb);
	pp_json_bool(j, "descriptors", p->descriptors_read);
	if (why)
		pp_json_str(j, "why", why);
	pp_json_array(j, "uverbs");
	for (unsigned int i = 0; i < p->n_uverbs; i++)
		pp_json_str(j, NULL, p->uverbs[i]);
	pp_json_end_array(j);
	pp_json_u64(j, "gpu_descriptors", p->gpu_descriptors);
	write_buffers(j, p);
	pp_json_array(j, "threads");
	for (size_t i = 0; i < p->n_threads; i++)
		pp_json_i64(j, NULL, p->thread[i]);
	pp_json_end_array(j);
	pp_json_end_object(j);
}
