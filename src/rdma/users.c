/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scan runs in a helper: a process table of any size costs the deadline at most. Descriptors
 * are read by readlink(), which opens nothing.
 */
#include "rdma/users.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/banned.h"

enum { MAX_USERS = 256, MAX_PID = 1 << 22 };

/* Inode of the initial PID namespace (PROC_PID_INIT_INO of the kernel's proc_ns.h). */
static const char INITIAL_PID_NS[] = "pid:[4026531836]";

struct scan {
	struct pp_json *data;
	int64_t processes, unreadable;
	unsigned int users;
};

/* Reports the first descriptor of this process on each uverbs device. */
static void look_at(struct scan *s, int64_t pid, DIR *fds)
{
	char target[256], last[sizeof(target)] = "";
	const struct dirent *e;
	const char *name;
	ssize_t n;

	while ((e = readdir(fds)) && s->users < MAX_USERS) {
		n = readlinkat(dirfd(fds), e->d_name, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		name = strrchr(target, '/');
		if (!name || strncmp(name + 1, "uverbs", 6) != 0 || !strcmp(name + 1, last))
			continue;
		(void)snprintf(last, sizeof(last), "%s", name + 1);
		pp_json_object(s->data, NULL);
		pp_json_i64(s->data, "pid", pid);
		pp_json_str(s->data, "uverbs", name + 1);
		pp_json_end_object(s->data);
		s->users++;
	}
}

static void look_at_process(struct scan *s, DIR *proc, const char *pid_text)
{
	char path[64];
	uint64_t pid;
	DIR *fds;
	int fd;

	if (pp_parse_u64(pid_text, 1, MAX_PID, &pid) || (pid_t)pid == getpid() ||
	    (pid_t)pid == getppid())
		return;
	s->processes++;
	(void)snprintf(path, sizeof(path), "%lld/fd", (long long)pid);
	fd = openat(dirfd(proc), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		/* A process that ended meanwhile holds nothing. */
		s->unreadable += errno != ENOENT && errno != ESRCH;
		return;
	}
	fds = fdopendir(fd);
	if (!fds) {
		(void)close(fd);
		s->unreadable++;
		return;
	}
	look_at(s, (int64_t)pid, fds);
	(void)closedir(fds);
}

static int run(struct pp_json *data, const void *arg, struct pp_error *err)
{
	struct scan s = {.data = data};
	char ns[64] = "";
	const struct dirent *e;
	DIR *proc;

	(void)arg;
	pp_ask_doing("reading /proc/*/fd");
	proc = opendir("/proc");
	if (!proc)
		return pp_error_set(err, -errno, "/proc: %s", pp_source_why(-errno));
	pp_json_array(data, "users");
	while ((e = readdir(proc)))
		look_at_process(&s, proc, e->d_name);
	pp_json_end_array(data);
	(void)closedir(proc);
	pp_json_bool(data, "cut", s.users == MAX_USERS);
	pp_json_i64(data, "processes", s.processes);
	pp_json_i64(data, "unreadable", s.unreadable);
	(void)!readlink("/proc/self/ns/pid", ns, sizeof(ns) - 1);
	pp_json_bool(data, "host_pid_namespace", !strcmp(ns, INITIAL_PID_NS));
	return 0;
}

int pp_users_ask(struct pp_source *s, struct pp_answer *ret)
{
	const struct pp_question q = {.name = "uverbs-users", .run = run};

	return pp_ask(s, &q, ret);
}

int64_t pp_users_pid(const struct pp_answer *a, const char *uverbs)
{
	const json_t *user;
	const char *its;
	int64_t pid;
	size_t i;

	json_array_foreach(json_object_get(a->data, "users"), i, user)
	{
		its = pp_answer_str(user, "uverbs");
		if (its && !strcmp(its, uverbs) && !pp_answer_i64(user, "pid", &pid) && pid > 0)
			return pid;
	}
	return 0;
}

bool pp_users_whole(const struct pp_answer *a, char *why, size_t size)
{
	int64_t unreadable = 0;
	bool host = false, cut = false, told;

	if (!a->answered) {
		(void)snprintf(why, size, "whether others use it is unknown: %s", a->detail);
		return false;
	}
	told = !pp_answer_i64(a->data, "unreadable", &unreadable);
	(void)pp_answer_bool(a->data, "cut", &cut);
	if (!told || cut) {
		(void)snprintf(why, size, "whether others use it is unknown: %s",
			       told ? "more users than are listed" : "the answer does not say");
		return false;
	}
	(void)pp_answer_bool(a->data, "host_pid_namespace", &host);
	if (unreadable > 0) {
		(void)snprintf(why, size,
			       "descriptors of %lld processes could not be read (run as root): one "
			       "of them may use it",
			       (long long)unreadable);
		return false;
	}
	if (!host) {
		(void)snprintf(why, size,
			       "processes of other PID namespaces cannot be seen (run "
			       "in the host's): one of them may use it");
		return false;
	}
	if (size)
		*why = '\0';
	return true;
}
