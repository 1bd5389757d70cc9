/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of locked memory where it is decided: of the first process, which services inherit; of
 * services that start jobs; of users, in limits.conf; of systemd's own configuration. The monitor's
 * own limit says nothing of a job's, so it is not looked at on a live machine; a recording holds
 * that of the process that made it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "daemon/watch.h"
#include "node/limits.h"
#include "base/banned.h"

enum { TEXT = 64 << 10, SHOWN = 400, PIDS = 65536 };

static const char *const starters[] = {"slurmd", "kubelet", "containerd", "crio", "dockerd"};

/* Lines of configuration that name the limit; a folder's files are read in the order of names. */
static const struct {
	const char *path, *folder, *word;
} files[] = {
	{"/etc/security/limits.conf", "/etc/security/limits.d", "memlock"},
	{"/etc/systemd/system.conf", "/etc/systemd/system.conf.d", "DefaultLimitMEMLOCK"},
};

static const char *amount(int64_t bytes, char *text, size_t size)
{
	if (bytes < 0)
		(void)snprintf(text, size, "unlimited");
	else
		(void)snprintf(text, size, "%lld", (long long)bytes);
	return text;
}

/* Of /proc/@pid. A process that went in between is none. */
static int of_process(struct pp_watch_context *at, const char *pid, const char *object,
		      struct pp_looks *into)
{
	char path[64], text[4096], a[32], b[32];
	int64_t soft, hard;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%.32s/limits", pid);
	r = pp_source_text(at->source, path, text, sizeof(text));
	if (r == -ENOENT || r == -ESRCH)
		return 0;
	if (!r)
		r = pp_limits_memlock(text, &soft, &hard);
	if (r)
		return pp_look_unknown(into, PP_SIGNAL_MEMLOCK, object, "%s: %s", path,
				       pp_source_why(r));
	return pp_look_state(into, PP_SIGNAL_MEMLOCK, object, path, "soft %s, hard %s",
			     amount(soft, a, sizeof(a)), amount(hard, b, sizeof(b)));
}

/* The first process of each name that starts jobs. */
static int services(struct pp_watch_context *at, struct pp_looks *into)
{
	bool seen[PP_ARRAY_LEN(starters)] = {false};
	struct pp_names names;
	char path[64], comm[32];
	uint64_t pid;
	int r = pp_source_list(at->source, "/proc", &names);

	if (r)
		return r == -ENOMEM ? r : 0;
	for (size_t i = 0; !r && i < names.n && i < PIDS; i++) {
		if (pp_parse_u64(names.name[i], 2, INT32_MAX, &pid))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/comm", names.name[i]);
		if (pp_source_text(at->source, path, comm, sizeof(comm)))
			continue;
		for (size_t k = 0; !r && k < PP_ARRAY_LEN(starters); k++) {
			if (seen[k] || strcmp(comm, starters[k]) != 0)
				continue;
			seen[k] = true;
			r = of_process(at, names.name[i], starters[k], into);
		}
	}
	pp_names_done(&names);
	return r;
}

/* Adds the lines of one file; what is commented out does not count. */
static int add_lines(struct pp_watch_context *at, const char *path, const char *word,
		     struct pp_buf *to)
{
	char *PP_AUTO_FREE text = malloc(TEXT + 1), *rest, *line;
	size_t len = 0;
	int r = text ? pp_source_read(at->source, path, text, TEXT, &len) : -ENOMEM;

	if (r)
		return r;
	text[len] = '\0';
	for (rest = text; (line = strsep(&rest, "\n"));) {
		line[strcspn(line, "#")] = '\0';
		line = pp_trim(line);
		if (*line && strstr(line, word))
			pp_buf_printf(to, "%s%s", to->len ? "; " : "", line);
	}
	return 0;
}

static int of_files(struct pp_watch_context *at, size_t i, struct pp_looks *into)
{
	struct pp_buf PP_AUTO_BUF lines = PP_BUF(TEXT);
	struct pp_names names = {0};
	char path[PP_PATH_MAX];
	int r = add_lines(at, files[i].path, files[i].word, &lines);

	if (r == -ENOMEM)
		return r;
	if (r && r != -ENOENT)
		return pp_look_unknown(into, PP_SIGNAL_MEMLOCK, files[i].path, "%s: %s",
				       files[i].path, pp_source_why(r));
	if (!pp_source_list(at->source, files[i].folder, &names)) {
		for (size_t k = 0; k < names.n; k++)
			if (!pp_path_join(files[i].folder, names.name[k], path))
				(void)add_lines(at, path, files[i].word, &lines);
		pp_names_done(&names);
	} else if (r == -ENOENT) {
		return 0; /* neither file nor folder: this system does not work so */
	}
	return pp_look_state(into, PP_SIGNAL_MEMLOCK, files[i].path, NULL, "%.*s", SHOWN,
			     lines.len ? pp_buf_text(&lines) : "not set");
}

static int look(struct pp_watch_context *at, void **state, struct pp_looks *into,
		struct pp_error *err)
{
	int r = of_process(at, "1", "services", into);

	(void)state;
	if (!r && !at->live)
		r = of_process(at, "self", "process", into);
	if (!r)
		r = services(at, into);
	for (size_t i = 0; !r && i < PP_ARRAY_LEN(files); i++)
		r = of_files(at, i, into);
	return r ? pp_error_set(err, r, "watching limits: %s", pp_source_why(r)) : 0;
}

const struct pp_watcher pp_watch_memlock = {.name = "memlock", .period_ms = 300000, .look = look};
