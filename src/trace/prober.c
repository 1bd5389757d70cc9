/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting probes into the kernel, reading them, and taking them down.
 */
#include "trace/prober.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "trace/prober_parts.h"
#include "trace/process.h"
#include "base/banned.h"

enum { BUFFER_KB = 1024, PATH = 256 };

void pp_prober_report(struct pp_prober *p, enum pp_surface s, enum pp_surface_state state,
		      const char *fmt, ...)
{
	va_list ap;

	p->report[s].state = state;
	va_start(ap, fmt);
	(void)vsnprintf(p->report[s].why, sizeof(p->report[s].why), fmt, ap);
	va_end(ap);
}

static int index_of(char suffix)
{
	return suffix - 'a';
}

/* What a lockdown of the kernel refuses comes as EPERM. */
static enum pp_surface_state state_of(int error)
{
	return error == -EPERM || error == -EACCES ? PP_SURFACE_REFUSED : PP_SURFACE_ABSENT;
}

static int listen_to(struct pp_prober *p, char suffix, unsigned int buffer_kb, struct pp_error *err)
{
	struct pp_prober_pipe *pipe = &p->pipe[index_of(suffix)];
	char path[PATH];
	int r = pp_tracefs_instance(&p->tracefs, suffix, buffer_kb, err);

	if (r)
		return r;
	pp_tracefs_file(&p->tracefs, suffix, "trace_pipe", path, sizeof(path));
	pipe->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	pipe->piece = pipe->fd >= 0 ? malloc(PP_PROBER_PIECE) : NULL;
	if (!pipe->piece)
		return pp_error_set(err, -errno, "%s: %s", path, pp_errno_name(errno));
	return 0;
}

/* One probe: defined, filtered, listened to. */
static int put(struct pp_prober *p, const struct pp_kprobe *k)
{
	const char *group = k->point ? k->point : p->tracefs.group;
	char path[PATH], file[PATH / 2];
	int r = k->point ? 0 : pp_tracefs_define(&p->tracefs, k->user, k->text);

	if (r)
		return r;
	if (*k->filter) {
		(void)snprintf(file, sizeof(file), "events/%s/%s/filter", group, k->event);
		pp_tracefs_file(&p->tracefs, k->suffix, file, path, sizeof(path));
		(void)pp_tracefs_write(path,
				       k->filter); /* else its reader sees more than regions */
	}
	(void)snprintf(file, sizeof(file), "events/%s/%s/enable", group, k->event);
	pp_tracefs_file(&p->tracefs, k->suffix, file, path, sizeof(path));
	return pp_tracefs_write(path, "1");
}

/* All of one surface; those that the kernel refuses make it not whole. */
static void put_all(struct pp_prober *p, enum pp_surface by)
{
	unsigned int wanted = 0, put_in = 0;
	int first = 0;

	for (unsigned int i = 0; i < p->kprobes.n; i++) {
		int r;

		if (p->kprobes.item[i].by != by)
			continue;
		r = put(p, &p->kprobes.item[i]);
		wanted++;
		put_in += r == 0;
		first = first ? first : r;
	}
	if (!put_in)
		pp_prober_report(p, by, state_of(first), "the kernel takes no probe: %s",
				 pp_errno_name(first));
	else if (put_in < wanted)
		pp_prober_report(p, by, PP_SURFACE_CUT, "%u of %u probes were refused: %s",
				 wanted - put_in, wanted, pp_errno_name(first));
	else
		pp_prober_report(p, by, PP_SURFACE_READ, "%s", "");
}

static void put_live(struct pp_prober *p)
{
	const struct pp_surface_report *points = &p->report[PP_SURFACE_TRACEPOINTS];

	put_all(p, PP_SURFACE_LIVE_PROBE);
	if (points->state != PP_SURFACE_UNASKED)
		return;
	put_all(p, PP_SURFACE_TRACEPOINTS);
	/* it stands for a probe */
	if (points->state != PP_SURFACE_READ)
		pp_prober_report(p, PP_SURFACE_LIVE_PROBE, PP_SURFACE_CUT,
				 "attachments are not watched: %.150s", points->why);
}

/* Only this process, its threads and what it forks. */
static void follow(struct pp_prober *p, pid_t pid)
{
	char path[PATH], text[32], tasks[64];
	struct pp_source *source;
	struct pp_names names;
	struct pp_error err;

	pp_tracefs_file(&p->tracefs, 'a', "options/event-fork", path, sizeof(path));
	(void)pp_tracefs_write(path, "1");
	pp_tracefs_file(&p->tracefs, 'a', "set_event_pid", path, sizeof(path));
	(void)snprintf(text, sizeof(text), "%d", pid);
	(void)pp_tracefs_write(path, text);
	if (pp_source_live(&source, &err))
		return;
	(void)snprintf(tasks, sizeof(tasks), "/proc/%d/task", pid);
	if (!pp_source_list(source, tasks, &names)) {
		for (size_t i = 0; i < names.n; i++) {
			int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

			if (fd < 0)
				break;
			(void)!write(fd, names.name[i], strlen(names.name[i]));
			(void)close(fd);
		}
		pp_names_done(&names);
	}
	pp_source_free(source);
}

static int start(struct pp_prober *p, char suffix)
{
	char path[PATH];

	pp_tracefs_file(&p->tracefs, suffix, "tracing_on", path, sizeof(path));
	return pp_tracefs_write(path, "1");
}

static void want_live(struct pp_prober *p, const struct pp_prober_options *o)
{
	struct pp_error err;
	int r = pp_kprobes_points(&p->kprobes, &p->tracefs, &err);

	if (r)
		pp_prober_report(p, PP_SURFACE_TRACEPOINTS, state_of(r), "%s", err.text);
	r = pp_kprobes_live(&p->kprobes, &p->tracefs, p->btf, &err);
	if (r)
		pp_prober_report(p, PP_SURFACE_LIVE_PROBE, state_of(r), "%s", err.text);
	if (!o->library)
		return;
	if (!p->tracefs.uprobes)
		r = pp_error_set(&err, -ENOENT, "the kernel has no uprobe events");
	else
		r = pp_kprobes_library(&p->kprobes, &p->tracefs, o->library, &err);
	if (r)
		pp_prober_report(p, PP_SURFACE_LIBRARY, state_of(r), "%s", err.text);
}

static void want_self(struct pp_prober *p)
{
	struct pp_error err;
	int r;

	if (!p->btf) {
		pp_prober_report(p, PP_SURFACE_SELF_PROBE, PP_SURFACE_ABSENT,
				 "it needs the layouts of BTF");
		return;
	}
	r = pp_kprobes_self(&p->kprobes, &p->tracefs, p->btf, &err);
	if (r)
		pp_prober_report(p, PP_SURFACE_SELF_PROBE, state_of(r), "%s", err.text);
}

static bool has_any(const struct pp_prober *p, char suffix)
{
	for (unsigned int i = 0; i < p->kprobes.n; i++)
		if (p->kprobes.item[i].suffix == suffix)
			return true;
	return false;
}

/* Everything goes in: instances first, then the probes that they listen to. */
static int put_in(struct pp_prober *p, const struct pp_prober_options *o, struct pp_error *err)
{
	unsigned int kb = o->buffer_kb ? o->buffer_kb : BUFFER_KB;
	bool live = has_any(p, 'a'), self = has_any(p, 'b');
	int r = pp_guard_start(&p->tracefs, &p->guard);

	if (r)
		return pp_error_set(err, r, "no guard process: %s", pp_errno_name(r));
	r = live ? listen_to(p, 'a', kb, err) : 0;
	if (!r && self)
		r = listen_to(p, 'b', kb, err);
	if (r)
		return r;
	if (live)
		put_live(p);
	if (live && o->library && p->report[PP_SURFACE_LIBRARY].state == PP_SURFACE_UNASKED)
		put_all(p, PP_SURFACE_LIBRARY);
	if (live && o->pid)
		follow(p, o->pid);
	if (self)
		put_all(p, PP_SURFACE_SELF_PROBE);
	r = live ? start(p, 'a') : 0;
	if (!r && self)
		r = start(p, 'b');
	return r ? pp_error_set(err, r, "tracing_on: %s", pp_errno_name(r)) : 0;
}

int pp_prober_open(const struct pp_prober_options *o, struct pp_prober **ret, struct pp_error *err)
{
	struct pp_prober *p = calloc(1, sizeof(*p));
	struct pp_error why;
	int r;

	if (!p)
		return pp_error_set(err, -ENOMEM, "no memory");
	p->pipe[0].fd = p->pipe[1].fd = -1;
	p->pending = calloc(PP_PROBER_PENDING, sizeof(*p->pending));
	r = p->pending ? pp_tracefs_open(&p->tracefs, err)
		       : pp_error_set(err, -ENOMEM, "no memory");
	if (!r && !p->tracefs.kprobes)
		r = pp_error_set(
			err, -EOPNOTSUPP,
			"the kernel has no kprobe events (CONFIG_KPROBE_EVENTS, or lockdown)");
	if (!r && pp_btf_open(&p->btf, &why))
		pp_prober_report(p, PP_SURFACE_BTF, PP_SURFACE_ABSENT, "%s", why.text);
	else if (!r)
		pp_prober_report(p, PP_SURFACE_BTF, PP_SURFACE_READ, "%s", "");
	if (!r && o->live)
		want_live(p, o);
	if (!r && o->self)
		want_self(p);
	if (!r && !p->kprobes.n)
		r = pp_error_set(
			err, -EOPNOTSUPP, "nothing can be probed: %s",
			p->report[o->self ? PP_SURFACE_SELF_PROBE : PP_SURFACE_LIVE_PROBE].why);
	if (!r)
		r = put_in(p, o, err);
	if (r) {
		(void)pp_prober_close(p, &why);
		return r == -EACCES ? pp_error_set(err, -EPERM, "%s", err->text) : r;
	}
	*ret = p;
	return 0;
}

int pp_prober_close(struct pp_prober *p, struct pp_error *err)
{
	int r = 0;

	if (!p)
		return 0;
	for (size_t i = 0; i < PP_ARRAY_LEN(p->pipe); i++) {
		if (p->pipe[i].fd >= 0)
			(void)close(p->pipe[i].fd);
		free(p->pipe[i].piece);
	}
	if (p->guard > 0)
		r = pp_tracefs_remove(&p->tracefs, p->tracefs.owner);
	if (r)
		(void)pp_error_set(err, r, "%s: what peerpath has put there stays: %s",
				   p->tracefs.top, pp_errno_name(r));
	pp_guard_end(p->guard);
	pp_btf_free(p->btf);
	free(p->pending);
	free(p->event);
	free(p);
	return r;
}

int pp_prober_fd(const struct pp_prober *p)
{
	return p->pipe[0].fd >= 0 ? p->pipe[0].fd : p->pipe[1].fd;
}

static int take_lines(struct pp_prober *p, struct pp_prober_pipe *pipe)
{
	char *at = pipe->piece, *end = pipe->piece + pipe->len, *stop;
	int r;

	while ((stop = memchr(at, '\n', (size_t)(end - at)))) {
		r = pp_prober_take(p, at, (size_t)(stop - at));
		if (r)
			return r;
		at = stop + 1;
	}
	if (at == pipe->piece && pipe->len == PP_PROBER_PIECE) {
		p->lost++; /* no line is that long */
		at = end;
	}
	pipe->len = (size_t)(end - at);
	memmove(pipe->piece, at, pipe->len);
	return 0;
}

int pp_prober_drain(struct pp_prober *p, struct pp_error *err)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(p->pipe); i++) {
		struct pp_prober_pipe *pipe = &p->pipe[i];
		ssize_t n = 0;

		while (pipe->fd >= 0 && (n = read(pipe->fd, pipe->piece + pipe->len,
						  PP_PROBER_PIECE - pipe->len)) > 0) {
			pipe->len += (size_t)n;
			if (take_lines(p, pipe))
				return pp_error_set(err, -ENOMEM, "no memory");
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return pp_error_set(err, -EIO, "trace_pipe: %s", pp_errno_name(errno));
	}
	return 0;
}
