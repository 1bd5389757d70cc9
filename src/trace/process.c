/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer "rdma-processes" to structures: hostile, since a recording may hold anything.
 */
#include "trace/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/process_parts.h"
#include "trace/surface_report.h"
#include "base/banned.h"

static int by_pid(const void *a, const void *b)
{
	const struct pp_process *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static int by_number(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return x < y ? -1 : x > y;
}

/* The number, or @without when it is absent or out of range. */
static int64_t number(const json_t *object, const char *key, int64_t min, int64_t max,
		      int64_t without)
{
	int64_t n;

	return pp_answer_i64(object, key, &n) || n < min || n > max ? without : n;
}

static void text(const json_t *object, const char *key, char *buf, size_t size)
{
	const char *t = pp_answer_str(object, key);

	(void)snprintf(buf, size, "%s", t ? t : "");
}

static bool yes(const json_t *object, const char *key)
{
	bool b = false;

	(void)pp_answer_bool(object, key, &b);
	return b;
}

static void read_buffer(const json_t *object, struct pp_process_buffer *b)
{
	b->fd = (int)number(object, "fd", 0, INT32_MAX, -1);
	b->inode = (uint64_t)number(object, "inode", INT64_MIN, INT64_MAX, 0);
	b->has_info = yes(object, "info");
	if (!b->has_info)
		return;
	b->size = (uint64_t)number(object, "size", INT64_MIN, INT64_MAX, 0);
	b->count = (uint64_t)number(object, "count", 0, INT64_MAX, 0);
	text(object, "exporter", b->exporter, sizeof(b->exporter));
}

/* Lists of a process; -ENOMEM. What is beyond a maximum is cut. */
static int read_lists(const json_t *object, struct pp_process *p, struct pp_processes *all)
{
	const json_t *buffers = json_object_get(object, "buffers"), *v;
	const json_t *threads = json_object_get(object, "threads");
	size_t n = json_array_size(buffers), n_threads = json_array_size(threads), i;
	json_int_t tid;

	if (n > PP_PROCESS_BUFFERS) {
		n = PP_PROCESS_BUFFERS;
		pp_surface_cut(&all->fdinfo, "more descriptors of process %d than are taken",
			       p->pid);
	}
	p->buffer = calloc(n + 1, sizeof(*p->buffer));
	p->thread = calloc(n_threads + 1, sizeof(*p->thread));
	if (!p->buffer || !p->thread)
		return -ENOMEM;
	for (; p->n_buffers < n; p->n_buffers++)
		read_buffer(json_array_get(buffers, p->n_buffers), &p->buffer[p->n_buffers]);
	json_array_foreach(threads, i, v)
	{
		tid = json_integer_value(v);
		if (tid > 0 && tid <= PP_PID_MAX)
			p->thread[p->n_threads++] = (pid_t)tid;
	}
	qsort(p->thread, p->n_threads, sizeof(*p->thread), by_number);
	json_array_foreach(json_object_get(object, "uverbs"), i, v)
	{
		if (p->n_uverbs < PP_PROCESS_DEVICES && json_is_string(v))
			(void)snprintf(p->uverbs[p->n_uverbs++], sizeof(p->uverbs[0]), "%s",
				       json_string_value(v));
		else
			pp_surface_cut(&all->processes,
				       "more uverbs devices of process %d than are taken", p->pid);
	}
	return 0;
}

/* 0, -EBADMSG when @object is no process, -ENOMEM. */
static int read_process(const json_t *object, struct pp_process *p, struct pp_processes *all)
{
	*p = (struct pp_process){.pid = (pid_t)number(object, "pid", 1, PP_PID_MAX, 0)};
	p->started = (uint64_t)number(object, "started", 0, INT64_MAX, 0);
	if (!p->pid || !json_is_integer(json_object_get(object, "started")))
		return -EBADMSG;
	p->pid_ns = (uint64_t)number(object, "pid_ns", 0, INT64_MAX, 0);
	p->uid = (uint32_t)number(object, "uid", 0, UINT32_MAX, UINT32_MAX);
	text(object, "comm", p->comm, sizeof(p->comm));
	text(object, "cgroup", p->cgroup, sizeof(p->cgroup));
	p->pinned_kb = number(object, "pinned_kb", 0, INT64_MAX, -1);
	p->descriptors_read = yes(object, "descriptors");
	p->gpu_descriptors = (unsigned int)number(object, "gpu_descriptors", 0, UINT32_MAX, 0);
	return read_lists(object, p, all);
}

static bool read_state(const struct pp_answer *a, struct pp_processes *ret)
{
	int64_t error = number(a->data, "errno", 1, 4095, 0);

	if (!pp_surface_answered(&ret->processes, a))
		return false;
	if (error)
		pp_surface_set(&ret->processes, pp_surface_of_error((int)-error), "/proc: %s",
			       pp_source_why((int)-error));
	else if (!json_is_array(json_object_get(a->data, "processes")))
		pp_surface_set(&ret->processes, PP_SURFACE_CUT, "the answer lists no processes");
	return ret->processes.state == PP_SURFACE_READ;
}

/* What a whole list would have had. Of several reasons the first is told: the widest first. */
static void read_limits(const struct pp_answer *a, struct pp_processes *ret)
{
	const char *cut = pp_answer_str(a->data, "cut");
	struct pp_surface_report *r = &ret->processes;

	ret->host_pid_ns = yes(a->data, "first_pid_namespace");
	ret->own_pid_ns = (uint64_t)number(a->data, "pid_ns", 0, INT64_MAX, 0);
	ret->unreadable = (uint64_t)number(a->data, "unreadable", 0, INT64_MAX, INT64_MAX);
	if (!yes(a->data, "own_proc"))
		pp_surface_cut(r, "/proc is of another PID namespace than ours: threads that "
				  "netlink names are not found in it");
	if (!ret->host_pid_ns)
		pp_surface_cut(r, "processes of other PID namespaces cannot be seen");
	if (!yes(a->data, "init_listed"))
		pp_surface_cut(r, "/proc hides processes of others (hidepid)");
	if (ret->unreadable)
		pp_surface_cut(r, "descriptors of %llu processes could not be read",
			       (unsigned long long)ret->unreadable);
	if (cut)
		pp_surface_cut(r, "%.120s", cut);
}

static void read_fdinfo_state(struct pp_processes *ret)
{
	size_t buffers = 0, with = 0;

	for (size_t i = 0; i < ret->n; i++) {
		buffers += ret->item[i].n_buffers;
		for (size_t b = 0; b < ret->item[i].n_buffers; b++)
			with += ret->item[i].buffer[b].has_info;
	}
	if (buffers && !with && ret->fdinfo.state == PP_SURFACE_READ)
		pp_surface_set(&ret->fdinfo, PP_SURFACE_ABSENT,
			       "this kernel tells nothing of a dma-buf's descriptor");
	else if (with < buffers)
		pp_surface_cut(&ret->fdinfo, "of %zu dma-buf descriptors %zu tell nothing", buffers,
			       buffers - with);
	if (ret->processes.state != PP_SURFACE_READ)
		pp_surface_cut(&ret->fdinfo, "%.180s", ret->processes.why);
}

/* One entry a process: of twins the first stays. */
static void drop_twins(struct pp_processes *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (!n || r->item[n - 1].pid != r->item[i].pid) {
			r->item[n++] = r->item[i];
			continue;
		}
		free(r->item[i].buffer);
		free(r->item[i].thread);
	}
	r->n = n;
}

int pp_processes_read(const struct pp_answer *a, struct pp_processes *ret)
{
	const json_t *list = json_object_get(a->data, "processes"), *object;
	size_t n = json_array_size(list), i;
	int r = 0;

	*ret = (struct pp_processes){0};
	if (!read_state(a, ret)) {
		ret->fdinfo = ret->processes;
		return 0;
	}
	ret->fdinfo.state = PP_SURFACE_READ;
	if (n > PP_PROCESSES_MAX) {
		n = PP_PROCESSES_MAX;
		pp_surface_cut(&ret->processes, "more processes than %d", PP_PROCESSES_MAX);
	}
	ret->item = calloc(n + 1, sizeof(*ret->item));
	if (!ret->item)
		return -ENOMEM;
	json_array_foreach(list, i, object)
	{
		if (i >= n)
			break;
		r = read_process(object, &ret->item[ret->n], ret);
		if (r == -EBADMSG)
			pp_surface_cut(&ret->processes, "a process is malformed in the answer");
		else
			ret->n++;
		if (r == -ENOMEM) {
			pp_processes_done(ret);
			return r;
		}
	}
	qsort(ret->item, ret->n, sizeof(*ret->item), by_pid);
	drop_twins(ret);
	read_limits(a, ret);
	read_fdinfo_state(ret);
	return 0;
}

void pp_processes_done(struct pp_processes *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->item[i].buffer);
		free(p->item[i].thread);
	}
	free(p->item);
	p->item = NULL;
	p->n = 0;
}

const struct pp_process *pp_process_find(const struct pp_processes *p, pid_t pid)
{
	const struct pp_process key = {.pid = pid};

	return p->n ? bsearch(&key, p->item, p->n, sizeof(*p->item), by_pid) : NULL;
}

const struct pp_process *pp_process_of_thread(const struct pp_processes *p, pid_t tid)
{
	const struct pp_process *main_thread = pp_process_find(p, tid);

	if (main_thread)
		return main_thread;
	for (size_t i = 0; i < p->n; i++)
		if (bsearch(&tid, p->item[i].thread, p->item[i].n_threads,
			    sizeof(*p->item[i].thread), by_number))
			return &p->item[i];
	return NULL;
}

bool pp_process_is(pid_t pid, uint64_t started)
{
	char path[32], stat[1024];
	uint64_t now;
	size_t n;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(stat, 1, sizeof(stat) - 1, f);
	(void)fclose(f);
	stat[n] = '\0';
	return !pp_process_started(stat, &now) && now == started;
}
