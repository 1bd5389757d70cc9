/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/tracefs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "trace/process_parts.h"
#include "base/banned.h"

enum { LIST_BYTES = 1 << 20, REMOVALS = 4096, TRIES = 50, PAUSE_MS = 20 };

static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
static const char INSTANCE[] = "peerpath-", GROUP[] = "peerpath_";

/* A whole file of tracefs, malloc'ed; NULL: errno says why. */
static char *slurp(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = fd >= 0 ? malloc(LIST_BYTES) : NULL;
	size_t len = 0;
	ssize_t n;

	while (text && len < LIST_BYTES - 1 && (n = read(fd, text + len, LIST_BYTES - 1 - len)) > 0)
		len += (size_t)n;
	if (text)
		text[len] = '\0';
	if (fd >= 0)
		(void)close(fd);
	return text;
}

static void name_owner(struct pp_tracefs *t)
{
	char *stat_text = slurp("/proc/self/stat");
	struct stat ns = {0};
	uint64_t started = 0;
	unsigned long long start;

	if (stat_text)
		(void)pp_process_started(stat_text, &started);
	free(stat_text);
	start = started;

	(void)stat("/proc/self/ns/pid", &ns);
	(void)snprintf(t->owner, sizeof(t->owner), "%ld-%llu-%llu", (long)getpid(), start,
		       (unsigned long long)ns.st_ino);
	(void)snprintf(t->group, sizeof(t->group), "%s%ld_%llu_%llu", GROUP, (long)getpid(), start,
		       (unsigned long long)ns.st_ino);
}

static bool has(const struct pp_tracefs *t, const char *file)
{
	char path[PP_TRACEFS_PATH + 32];

	(void)snprintf(path, sizeof(path), "%s/%s", t->top, file);
	return !access(path, W_OK);
}

int pp_tracefs_open(struct pp_tracefs *ret, struct pp_error *err)
{
	struct pp_tracefs t = {0};
	char path[PP_TRACEFS_PATH + 32], *readme;
	int error = ENOENT;

	for (size_t i = 0; i < PP_ARRAY_LEN(places) && error; i++) {
		(void)snprintf(path, sizeof(path), "%s/instances", places[i]);
		error = access(path, W_OK | X_OK) ? errno : 0;
		(void)snprintf(t.top, sizeof(t.top), "%s", places[i]);
		if (error == EACCES || error == EPERM)
			break;
	}
	if (error == EACCES || error == EPERM || error == EROFS)
		return pp_error_set(err, -EACCES, "%s: %s: probes need root", t.top,
				    pp_errno_name(error));
	if (error)
		return pp_error_set(err, -ENOENT,
				    "no tracefs: mount -t tracefs none /sys/kernel/tracing");
	(void)snprintf(path, sizeof(path), "%s/README", t.top);
	readme = slurp(path);
	t.arguments = readme && strstr(readme, "$arg<N>");
	free(readme);
	t.kprobes = has(&t, "kprobe_events");
	t.uprobes = has(&t, "uprobe_events");
	name_owner(&t);
	*ret = t;
	return 0;
}

void pp_tracefs_file(const struct pp_tracefs *t, char suffix, const char *file, char *ret,
		     size_t size)
{
	(void)snprintf(ret, size, "%s/instances/%s%s-%c/%s", t->top, INSTANCE, t->owner, suffix,
		       file);
}

bool pp_tracefs_has_event(const struct pp_tracefs *t, const char *group, const char *event)
{
	char file[2 * PP_TRACEFS_NAME], path[PP_TRACEFS_PATH + sizeof(file)];

	(void)snprintf(file, sizeof(file), "events/%s/%s/enable", group, event);
	(void)snprintf(path, sizeof(path), "%s/%s", t->top, file);
	return !access(path, F_OK);
}

int pp_tracefs_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_TRUNC), r = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		r = -errno;
	(void)close(fd);
	return r;
}

int pp_tracefs_define(const struct pp_tracefs *t, bool user, const char *definition)
{
	char path[PP_TRACEFS_PATH + 32];
	int fd, r = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", t->top,
		       user ? "uprobe_events" : "kprobe_events");
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, definition, strlen(definition)) < 0)
		r = -errno;
	(void)close(fd);
	return r;
}

int pp_tracefs_instance(const struct pp_tracefs *t, char suffix, unsigned int buffer_kb,
			struct pp_error *err)
{
	const struct {
		const char *file, *text;
		bool needed;
	} settings[] = {
		{"tracing_on", "0", true},
		{"trace_clock", "mono", true},
		{"options/irq-info", "0", false},
	};
	char path[PP_TRACEFS_PATH + 2 * PP_TRACEFS_NAME], size[16];
	int r;

	pp_tracefs_file(t, suffix, "", path, sizeof(path));
	if (mkdir(path, 0700))
		return pp_error_set(err, -errno, "%s: %s", path, pp_errno_name(errno));
	(void)snprintf(size, sizeof(size), "%u", buffer_kb);
	pp_tracefs_file(t, suffix, "buffer_size_kb", path, sizeof(path));
	r = pp_tracefs_write(path, size);
	for (size_t i = 0; i < PP_ARRAY_LEN(settings) && !r; i++) {
		pp_tracefs_file(t, suffix, settings[i].file, path, sizeof(path));
		r = pp_tracefs_write(path, settings[i].text);
		if (!settings[i].needed)
			r = 0;
	}
	return r ? pp_error_set(err, r, "%s: %s", path, pp_errno_name(r)) : 0;
}

/* "peerpath-5-77-4026531836-a" is of owner "5-77-4026531836"; groups have '_' for '-'. */
static bool owner_of(const char *name, const char *prefix, char end, char owner[PP_TRACEFS_NAME])
{
	size_t len = strlen(prefix), n;

	if (strncmp(name, prefix, len) != 0)
		return false;
	name += len;
	n = strspn(name, "0123456789-_");
	if (end == '-' && n)
		n--; /* the one before the suffix */
	if (!n || n >= PP_TRACEFS_NAME || name[n] != end)
		return false;
	memcpy(owner, name, n);
	owner[n] = '\0';
	for (char *c = owner; *c; c++)
		*c = *c == '_' ? '-' : *c;
	return true;
}

static int remove_instances(const struct pp_tracefs *t, const char *owner)
{
	char path[PP_TRACEFS_PATH + 512], seen[PP_TRACEFS_NAME];
	const struct dirent *e;
	DIR *dir;
	int r = 0;

	(void)snprintf(path, sizeof(path), "%s/instances", t->top);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		if (!owner_of(e->d_name, INSTANCE, '-', seen) || strcmp(seen, owner) != 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/instances/%s/events/enable", t->top,
			       e->d_name);
		(void)pp_tracefs_write(path, "0");
		(void)snprintf(path, sizeof(path), "%s/instances/%s", t->top, e->d_name);
		/* A reader of its pipe may be on its way out. */
		for (int i = 0; rmdir(path) && errno == EBUSY && i < TRIES; i++)
			(void)poll(NULL, 0, PAUSE_MS);
		if (!access(path, F_OK))
			r = -EBUSY;
	}
	(void)closedir(dir);
	return r;
}

/* Lines "p:GROUP/EVENT PLACE ..." or "r4:GROUP/EVENT ...": the part GROUP/EVENT; NULL for others.
 */
static char *probe_of(char *line, const char *owner)
{
	char *name = strchr(line, ':'), *slash, seen[PP_TRACEFS_NAME];

	if (!name++)
		return NULL;
	name[strcspn(name, " \t")] = '\0';
	slash = strchr(name, '/');
	if (!slash || !owner_of(name, GROUP, '/', seen) || (owner && strcmp(seen, owner) != 0))
		return NULL;
	return name;
}

static int remove_probes(const struct pp_tracefs *t, bool user, const char *owner)
{
	char path[PP_TRACEFS_PATH + 32], command[256], *text, *save, *line, *name;
	int r = 0, one;

	(void)snprintf(path, sizeof(path), "%s/%s", t->top,
		       user ? "uprobe_events" : "kprobe_events");
	text = slurp(path);
	save = text;
	for (int i = 0; text && i < REMOVALS && (line = strsep(&save, "\n")); i++) {
		name = probe_of(line, owner);
		if (!name)
			continue;
		(void)snprintf(command, sizeof(command), "-:%s", name);
		one = pp_tracefs_define(t, user, command);
		r = r ? r : one;
	}
	free(text);
	return r;
}

int pp_tracefs_remove(const struct pp_tracefs *t, const char *owner)
{
	int instances = remove_instances(t, owner), kernel, user;

	kernel = t->kprobes ? remove_probes(t, false, owner) : 0;
	user = t->uprobes ? remove_probes(t, true, owner) : 0;
	return instances ? instances : kernel ? kernel : user;
}

static void each_probe(const struct pp_tracefs *t, bool user,
		       void (*each)(void *arg, const char *owner), void *arg)
{
	char path[PP_TRACEFS_PATH + 32], *text, *save, *line, *name, owner[PP_TRACEFS_NAME];

	(void)snprintf(path, sizeof(path), "%s/%s", t->top,
		       user ? "uprobe_events" : "kprobe_events");
	text = slurp(path);
	save = text;
	for (int i = 0; text && i < REMOVALS && (line = strsep(&save, "\n")); i++) {
		name = probe_of(line, NULL);
		if (name && owner_of(name, GROUP, '/', owner))
			each(arg, owner);
	}
	free(text);
}

int pp_tracefs_owners(const struct pp_tracefs *t, void (*each)(void *arg, const char *owner),
		      void *arg)
{
	char path[PP_TRACEFS_PATH + 32], owner[PP_TRACEFS_NAME];
	const struct dirent *e;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s/instances", t->top);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((e = readdir(dir)))
		if (owner_of(e->d_name, INSTANCE, '-', owner))
			each(arg, owner);
	(void)closedir(dir);
	if (t->kprobes)
		each_probe(t, false, each, arg);
	if (t->uprobes)
		each_probe(t, true, each, arg);
	return 0;
}
