/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/run_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "node/library.h"
#include "base/banned.h"

/* A process with CUDA and PyTorch has some thousand lines. */
static const uint64_t MAPS_MOST = (uint64_t)16 << 20;

const char *pp_nccl_library_of_line(const char *line)
{
	const char *path = strchr(line, '/'), *name;

	if (!path)
		return NULL;
	name = strrchr(path, '/') + 1;
	/* libnccl.so.2.28.9; plug-ins are libnccl-net.so and so on */
	return !strncmp(name, "libnccl.so", 10) ? path : NULL;
}

static bool knows(const struct pp_nccl_libraries *l, pid_t pid)
{
	for (unsigned int i = 0; i < l->n_pids; i++)
		if (l->pid[i] == pid)
			return true;
	return false;
}

static void find_version(struct pp_source *s, pid_t pid, const char *path, char *ret, size_t size)
{
	char seen[PP_PATH_MAX];

	*ret = '\0';
	if (!pp_library_version_of_name(path, ret, size))
		return;
	/* As that process sees it: it may live in a container. */
	if ((size_t)snprintf(seen, sizeof(seen), "/proc/%d/root%s", pid, path) >= sizeof(seen) ||
	    (pp_library_version_inside(s, seen, "NCCL version ", ret, size) &&
	     pp_library_version_inside(s, path, "NCCL version ", ret, size)))
		*ret = '\0';
}

static void add(struct pp_nccl_libraries *l, struct pp_source *s, pid_t pid, const char *path)
{
	char version[64];

	if (!knows(l, pid) && l->n_pids < PP_NCCL_LIBRARY_PIDS)
		l->pid[l->n_pids++] = pid;
	for (unsigned int i = 0; i < l->n; i++)
		if (!strcmp(l->item[i].path, path))
			return;
	if (l->n == PP_NCCL_LIBRARIES)
		return;
	find_version(s, pid, path, version, sizeof(version));
	(void)snprintf(l->item[l->n].path, sizeof(l->item[0].path), "%s", path);
	(void)snprintf(l->item[l->n].version, sizeof(l->item[0].version), "%.31s", version);
	l->item[l->n++].pid = pid;
}

void pp_nccl_libraries_look(struct pp_nccl_libraries *l, struct pp_source *s, pid_t pid)
{
	char name[64], *PP_AUTO_FREE line = NULL;
	size_t room = 0;
	uint64_t all = 0;
	ssize_t len;
	FILE *maps;

	if (knows(l, pid))
		return;
	(void)snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	maps = fopen(name, "re");
	if (!maps)
		return;
	while (all < MAPS_MOST && (len = getline(&line, &room, maps)) > 0) {
		const char *path;

		all += (uint64_t)len;
		line[len - 1] = '\0';
		l->verbs = l->verbs || strstr(line, "/libibverbs.so");
		path = pp_nccl_library_of_line(line);
		if (path)
			add(l, s, pid, path);
	}
	(void)fclose(maps);
}

static void append(char *text, size_t size, const char *what)
{
	size_t len = strlen(text);

	if (*what)
		(void)snprintf(text + len, size - len, "%s%s", len ? ", " : "", what);
}

void pp_nccl_libraries_tell(const struct pp_nccl_libraries *l, struct pp_nccl_run *r)
{
	for (unsigned int i = 0; i < l->n; i++) {
		append(r->library, sizeof(r->library), l->item[i].path);
		append(r->library_version, sizeof(r->library_version), l->item[i].version);
	}
	pp_sanitize(r->library, false);
	pp_sanitize(r->library_version, false);
}
