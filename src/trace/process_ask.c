/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The question "rdma-processes": a scan of /proc in a helper. Descriptors are read by their links,
 * which opens nothing.
 *
 * Data: {"processes": [{"pid", "started", "pid_ns", "uid", "comm", "cgroup", "pinned_kb",
 *    "descriptors": bool, "why", "uverbs": [...], "gpu_descriptors",
 *    "buffers": [{"fd", "inode", "info": bool, "size", "count", "exporter"}], "threads": [...]}],
 *  "looked_at", "unreadable", "first_pid_namespace", "pid_ns", "own_proc", "init_listed",
 *  "cut": text}, or {"errno"} when /proc cannot be listed.
 */
#include "trace/process_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"
#include "node/limits.h"
#include "base/banned.h"

enum {
	TEXT_BYTES = 256 << 10,	 /* a status may list 65536 groups */
	ANSWER_BYTES = 14 << 20, /* a helper's answer is refused above 16 MiB */
	BREATH = 32,		 /* processes between two signs of life */
	THREADS_MAX = 1 << 16,
};

/* Inode of the first PID namespace (PROC_PID_INIT_INO of the kernel's proc_ns.h). */
static const char FIRST_PID_NS[] = "pid:[4026531836]";

struct owner {
	pid_t tid, pid; /* pid 0: no such thread here */
};

struct question {
	struct pp_source *source;
	pid_t pid;
	struct owner *thread; /* by tid; then, in the helper, by pid */
	size_t n_threads;
};

struct scan {
	struct pp_source *source;
	struct pp_json *json;
	const struct question *q;
	struct pp_process p; /* the one being looked at; its lists are ours */
	const char *why;     /* its descriptors could not be read */
	char *text;
	unsigned int taken;
	int64_t looked_at, unreadable;
	const char *cut;
};

static int by_tid(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static int by_pid(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	return x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) : by_tid(a, b);
}

/* A file of /proc/PID into the scan's text; false when it is not readable. */
static bool read_text(struct scan *s, pid_t pid, const char *file)
{
	char path[96];
	size_t len = 0;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	r = pp_source_read(s->source, path, s->text, TEXT_BYTES, &len);
	s->text[r && r != -EFBIG ? 0 : len] = '\0';
	return !r || r == -EFBIG;
}

/* A link of /proc/PID. */
static bool read_link(struct scan *s, pid_t pid, const char *name, char *buf, size_t size)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return !pp_source_link(s->source, path, buf, size);
}

static bool read_number(const char *status, const char *key, unsigned int index, uint64_t *ret)
{
	char word[24];

	return !pp_limits_status_word(status, key, index, word, sizeof(word)) &&
	       !pp_parse_u64(word, 0, INT64_MAX, ret);
}

/* Which process each thread of netlink's lives in: one that is not listed is found all the same. */
static void resolve(struct scan *s, struct owner *thread, size_t n)
{
	uint64_t pid;

	for (size_t i = 0; i < n; i++) {
		if (i % BREATH == 0)
			pp_ask_doing("reading /proc/TID/status");
		if (read_text(s, thread[i].tid, "status") &&
		    read_number(s->text, "Tgid", 0, &pid) && pid <= PP_PID_MAX)
			thread[i].pid = (pid_t)pid;
	}
	qsort(thread, n, sizeof(*thread), by_pid);
}

static void take_uverbs(struct scan *s, const char *name)
{
	struct pp_process *p = &s->p;

	for (unsigned int i = 0; i < p->n_uverbs; i++)
		if (!strcmp(p->uverbs[i], name))
			return;
	if (p->n_uverbs == PP_PROCESS_DEVICES || strlen(name) >= sizeof(p->uverbs[0]))
		s->cut = "more uverbs devices of one process than are taken";
	else
		memcpy(p->uverbs[p->n_uverbs++], name, strlen(name) + 1);
}

static void take_buffer(struct scan *s, const char *fd_name)
{
	struct pp_process *p = &s->p;
	uint64_t fd;

	if (pp_parse_u64(fd_name, 0, INT32_MAX, &fd))
		return;
	if (p->n_buffers == PP_PROCESS_BUFFERS)
		s->cut = "more dma-buf descriptors of one process than are taken";
	else
		p->buffer[p->n_buffers++] = (struct pp_process_buffer){.fd = (int)fd};
}

static void take_descriptor(struct scan *s, const char *fd_name, const char *target)
{
	static const char UVERBS[] = "uverbs", GPU[] = "/dev/nvidia", BUFFER[] = "/dmabuf:";
	const char *last = strrchr(target, '/');

	if (!strncmp(target, BUFFER, strlen(BUFFER)))
		take_buffer(s, fd_name);
	else if (!strncmp(target, GPU, strlen(GPU)))
		s->p.gpu_descriptors++;
	else if (last && !strncmp(last + 1, UVERBS, strlen(UVERBS)))
		take_uverbs(s, last + 1);
}

/* The links of one process's descriptors. False: it ended, or it is a thing of no interest. */
static void read_descriptors(struct scan *s, pid_t pid)
{
	char path[96], target[PP_PATH_MAX];
	struct pp_names names = {0};
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	r = pp_source_list(s->source, path, &names);
	s->p.descriptors_read = !r;
	s->why = r ? pp_source_why(r) : NULL;
	/* A process that ended meanwhile holds nothing. */
	s->unreadable += r && r != -ENOENT && r != -ESRCH;
	if (r)
		return;
	for (size_t i = 0; i < names.n; i++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, names.name[i]);
		if (!pp_source_link(s->source, path, target, sizeof(target)))
			take_descriptor(s, names.name[i], target);
	}
	pp_names_done(&names);
}

static void read_fdinfo(struct scan *s, pid_t pid, struct pp_process_buffer *b)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "fdinfo/%d", b->fd);
	if (read_text(s, pid, path))
		(void)pp_fdinfo_parse(s->text, strlen(s->text), b);
	if (b->inode || pp_source_mode(s->source) != PP_SOURCE_LIVE)
		return;
	/* Kernels before 5.14 show no inode there, but it is the file's. */
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, b->fd);
	if (!stat(path, &st))
		b->inode = st.st_ino;
}

/* All but descriptors; false when it is gone. */
static bool read_identity(struct scan *s, pid_t pid)
{
	struct pp_process *p = &s->p;
	char link[64] = "";
	uint64_t n;

	if (!read_text(s, pid, "stat") || pp_process_started(s->text, &p->started) ||
	    !read_text(s, pid, "status"))
		return false;
	p->pid = pid;
	p->uid = read_number(s->text, "Uid", 1, &n) && n <= UINT32_MAX ? (uint32_t)n : UINT32_MAX;
	p->pinned_kb = read_number(s->text, "VmPin", 0, &n) ? (int64_t)n : -1;
	if (read_text(s, pid, "comm"))
		(void)snprintf(p->comm, sizeof(p->comm), "%s", pp_trim(s->text));
	if (read_text(s, pid, "cgroup"))
		pp_process_cgroup(s->text, p->cgroup, sizeof(p->cgroup));
	if (read_link(s, pid, "ns/pid", link, sizeof(link)))
		p->pid_ns = pp_process_ns(link);
	return true;
}

/* Is it the same process still as when its identity was read? */
static bool still(struct scan *s, pid_t pid)
{
	uint64_t started;

	return read_text(s, pid, "stat") && !pp_process_started(s->text, &started) &&
	       started == s->p.started;
}

/* Its threads into s->p; is it asked for, by one of them or by itself? */
static bool is_named(struct scan *s, pid_t pid)
{
	for (size_t i = 0; i < s->q->n_threads; i++)
		if (s->q->thread[i].pid == pid)
			s->p.thread[s->p.n_threads++] = s->q->thread[i].tid;
	return s->p.n_threads || pid == s->q->pid;
}

static void look_at(struct scan *s, const char *name)
{
	struct pp_process_buffer *buffer = s->p.buffer;
	pid_t *thread = s->p.thread;
	uint64_t pid;
	bool named;

	/* The helper has its parent's descriptors. */
	if (pp_parse_u64(name, 1, PP_PID_MAX, &pid) || (pid_t)pid == getpid())
		return;
	if (s->looked_at++ % BREATH == 0)
		pp_ask_doing("reading /proc/PID/fd");
	s->p = (struct pp_process){.buffer = buffer, .thread = thread};
	read_descriptors(s, (pid_t)pid);
	named = is_named(s, (pid_t)pid);
	if (!s->p.n_uverbs && !s->p.n_buffers && !named)
		return;
	if (s->taken == PP_PROCESSES_MAX || s->json->out->len > ANSWER_BYTES) {
		s->cut = "more processes than are taken";
		return;
	}
	if (!read_identity(s, (pid_t)pid))
		return;
	for (size_t i = 0; i < s->p.n_buffers; i++)
		read_fdinfo(s, (pid_t)pid, &s->p.buffer[i]);
	if (!still(s, (pid_t)pid))
		return;
	pp_process_write(s->json, &s->p, s->why);
	s->taken++;
}

/* Does /proc count processes as we and netlink do? One number of NSpid: it does. */
static bool own_proc(struct scan *s)
{
	char word[24];
	size_t len = 0;

	if (pp_source_read(s->source, "/proc/self/status", s->text, TEXT_BYTES, &len))
		return false;
	s->text[len] = '\0';
	/* Kernels before 4.1 show no NSpid. */
	return pp_limits_status_word(s->text, "NSpid", 1, word, sizeof(word)) != 0;
}

static void scan_all(struct scan *s, const struct pp_names *names)
{
	char link[64] = "";
	bool own = own_proc(s), init = false;

	if (own)
		resolve(s, s->q->thread, s->q->n_threads);
	pp_json_array(s->json, "processes");
	for (size_t i = 0; i < names->n; i++) {
		init = init || !strcmp(names->name[i], "1");
		look_at(s, names->name[i]);
	}
	pp_json_end_array(s->json);
	pp_json_i64(s->json, "looked_at", s->looked_at);
	pp_json_i64(s->json, "unreadable", s->unreadable);
	if (!pp_source_link(s->source, "/proc/self/ns/pid", link, sizeof(link))) {
		pp_json_bool(s->json, "first_pid_namespace", !strcmp(link, FIRST_PID_NS));
		pp_json_i64(s->json, "pid_ns", (int64_t)pp_process_ns(link));
	}
	pp_json_bool(s->json, "own_proc", own);
	pp_json_bool(s->json, "init_listed", init);
	if (s->cut)
		pp_json_str(s->json, "cut", s->cut);
}

static int run(struct pp_json *data, const void *arg, struct pp_error *err)
{
	const struct question *q = arg;
	struct pp_process_buffer *PP_AUTO_FREE buffer = calloc(PP_PROCESS_BUFFERS, sizeof(*buffer));
	pid_t *PP_AUTO_FREE thread = calloc(q->n_threads + 1, sizeof(*thread));
	char *PP_AUTO_FREE text = malloc(TEXT_BYTES + 1);
	struct scan s = {.source = q->source, .json = data, .q = q, .text = text};
	struct pp_names names = {0};
	int r;

	if (!buffer || !text || !thread)
		return pp_error_set(err, -ENOMEM, "out of memory");
	s.p.buffer = buffer;
	s.p.thread = thread;
	pp_ask_doing("reading /proc");
	r = pp_source_list(q->source, "/proc", &names);
	if (r) {
		pp_json_i64(data, "errno", -r);
		return 0;
	}
	scan_all(&s, &names);
	pp_names_done(&names);
	return 0;
}

/* Threads that own something of netlink's, each once. -ENOMEM. */
static int collect_threads(const struct pp_resources *r, struct owner **ret, size_t *ret_n)
{
	struct owner *list = calloc(r ? r->n + 1 : 1, sizeof(*list));
	size_t n = 0, kept = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; r && i < r->n; i++)
		if (r->item[i].tid && r->item[i].tid <= PP_PID_MAX)
			list[n++].tid = (pid_t)r->item[i].tid;
	qsort(list, n, sizeof(*list), by_tid);
	for (size_t i = 0; i < n && kept < THREADS_MAX; i++)
		if (!kept || list[kept - 1].tid != list[i].tid)
			list[kept++] = list[i];
	*ret = list;
	*ret_n = kept;
	return 0;
}

int pp_processes_ask(struct pp_source *s, const struct pp_resources *resources, pid_t pid,
		     struct pp_answer *ret)
{
	struct question arg = {.source = s, .pid = pid};
	const struct pp_question q = {.name = "rdma-processes", .run = run, .arg = &arg};
	int r = collect_threads(resources, &arg.thread, &arg.n_threads);

	if (r)
		return r;
	r = pp_ask(s, &q, ret);
	free(arg.thread);
	return r;
}
