/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "node/ask.h"
#include "base/banned.h"

enum { PREFIXES = 64 };

static const char SONAME[] = "libnccl.so.2";
static const char INSIDE[] = "nvidia/nccl/lib/libnccl.so.2";

#define ENTRY(member, name, optional)                                  \
	{                                                              \
		name, offsetof(struct pp_nccl_calls, member), optional \
	}

static const struct {
	const char *name;
	size_t offset;
	bool optional;
} entries[] = {
	ENTRY(version, "ncclGetVersion", false),
	ENTRY(error_string, "ncclGetErrorString", false),
	ENTRY(last_error, "ncclGetLastError", true),
	ENTRY(unique_id, "ncclGetUniqueId", false),
	ENTRY(init_rank, "ncclCommInitRank", false),
	ENTRY(destroy, "ncclCommDestroy", false),
	ENTRY(abort, "ncclCommAbort", false),
	ENTRY(async_error, "ncclCommGetAsyncError", false),
	ENTRY(all_reduce, "ncclAllReduce", false),
	ENTRY(reduce_scatter, "ncclReduceScatter", false),
	ENTRY(all_gather, "ncclAllGather", false),
	ENTRY(send, "ncclSend", false),
	ENTRY(receive, "ncclRecv", false),
	ENTRY(group_start, "ncclGroupStart", false),
	ENTRY(group_end, "ncclGroupEnd", false),
};

void pp_nccl_version_split(int number, unsigned int *ret_major, unsigned int *ret_minor,
			   unsigned int *ret_patch)
{
	unsigned int n = number > 0 ? (unsigned int)number : 0,
		     thousand = n >= 10000 ? 10000 : 1000;

	*ret_major = n / thousand;
	*ret_minor = n % thousand / 100;
	*ret_patch = n % 100;
}

int pp_nccl_library_fail(const struct pp_nccl_library *l, void *comm, const char *call, int code,
			 struct pp_error *err)
{
	const char *text = l->call.error_string(code);
	const char *last = l->call.last_error ? l->call.last_error(comm) : NULL;

	(void)pp_error_set(err, -EIO, "%s: %s (%d)%s%.300s", call, text ? text : "error", code,
			   last && *last ? ": " : "", last ? last : "");
	err->text[strcspn(err->text, "\n")] = '\0';
	pp_sanitize(err->text, false);
	return -EIO;
}

/* Is the file in one of the directories of the variable? */
static bool in_search_path(const char *path)
{
	const char *list = getenv("LD_LIBRARY_PATH");
	const char *slash = strrchr(path, '/');
	size_t len, dir = slash ? (size_t)(slash - path) : 0;
	char *PP_AUTO_FREE one = NULL;

	for (const char *p = list ? list : ""; *p && dir; p += len + (p[len] != '\0')) {
		char *real;
		bool same;

		len = strcspn(p, ":");
		if (!len || asprintf(&one, "%.*s/%s", (int)len, p, SONAME) < 0) {
			one = NULL;
			continue;
		}
		real = realpath(one, NULL);
		same = real && !strcmp(real, path);
		free(real);
		free(one);
		one = NULL;
		if (same)
			return true;
	}
	return false;
}

static bool in_prefix(const char *prefix, char ret[PP_NCCL_PATH])
{
	static const char *const kinds[] = {"site-packages", "dist-packages"};
	char pattern[PP_NCCL_PATH];
	bool found = false;
	glob_t g;

	if (!prefix || prefix[0] != '/' || strpbrk(prefix, "*?["))
		return false;
	for (size_t i = 0; i < PP_ARRAY_LEN(kinds) && !found; i++) {
		(void)snprintf(pattern, sizeof(pattern), "%s/lib/python3*/%s/%s", prefix, kinds[i],
			       INSIDE);
		if (glob(pattern, 0, NULL, &g))
			continue;
		found = g.gl_pathc && strlen(g.gl_pathv[0]) < PP_NCCL_PATH;
		if (found)
			(void)snprintf(ret, PP_NCCL_PATH, "%s", g.gl_pathv[0]);
		globfree(&g);
	}
	return found;
}

/* .../bin/python3 of PATH belongs to the prefix above it. */
static bool in_path(char ret[PP_NCCL_PATH])
{
	const char *list = getenv("PATH");
	char prefix[PP_NCCL_PATH];
	unsigned int left = PREFIXES;
	size_t len;

	for (const char *p = list ? list : ""; *p && left; p += len + (p[len] != '\0'), left--) {
		len = strcspn(p, ":");
		if (len < 5 || len >= sizeof(prefix) || strncmp(p + len - 4, "/bin", 4) != 0)
			continue;
		(void)snprintf(prefix, sizeof(prefix), "%.*s", (int)len - 4, p);
		if (in_prefix(prefix, ret))
			return true;
	}
	return false;
}

/* The first libnccl that a package of Python brings. */
static bool of_python(char ret[PP_NCCL_PATH])
{
	static const char *const named[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
	static const char *const fixed[] = {"/usr", "/usr/local", "/opt/conda"};
	const char *home = getenv("HOME");
	char local[PP_NCCL_PATH];

	for (size_t i = 0; i < PP_ARRAY_LEN(named); i++)
		if (in_prefix(getenv(named[i]), ret))
			return true;
	if (in_path(ret))
		return true;
	(void)snprintf(local, sizeof(local), "%s/.local", home ? home : "");
	if (home && in_prefix(local, ret))
		return true;
	for (size_t i = 0; i < PP_ARRAY_LEN(fixed); i++)
		if (in_prefix(fixed[i], ret))
			return true;
	return false;
}

static void take_path(struct pp_nccl_library *l)
{
	struct link_map *map = NULL;
	char *real = NULL;

	if (!dlinfo(l->handle, RTLD_DI_LINKMAP, &map) && map && map->l_name)
		real = realpath(map->l_name, NULL);
	(void)snprintf(l->path, sizeof(l->path), "%s",
		       real				    ? real
		       : map && map->l_name && *map->l_name ? map->l_name
							    : "?");
	free(real);
	pp_sanitize(l->path, false);
}

/* One that is there and does not load is another fault than none. */
static bool is_absent(const char *why, const char *name)
{
	return !strncmp(why, name, strlen(name)) && strstr(why, "No such file");
}

static int search(const char *given, struct pp_nccl_library *l, struct pp_error *err)
{
	char python[PP_NCCL_PATH] = "", why[400] = "";
	const char *said;

	pp_ask_doing("loading libnccl.so.2");
	l->handle = dlopen(given ? given : SONAME, RTLD_NOW | RTLD_LOCAL);
	said = l->handle ? NULL : dlerror();
	(void)snprintf(why, sizeof(why), "%s", said ? said : "");
	if (!l->handle && (given || !is_absent(why, SONAME)))
		return pp_error_set(err, -ELIBACC, "NCCL cannot be loaded: %s", why);
	if (l->handle) {
		take_path(l);
		l->by = given			  ? "--library"
			: in_search_path(l->path) ? "LD_LIBRARY_PATH"
						  : "the loader's directories";
		if (!given && of_python(python)) {
			char *real = realpath(python, NULL);

			if (real && strcmp(real, l->path) != 0)
				(void)snprintf(l->other, sizeof(l->other), "%s", real);
			free(real);
		}
		return 0;
	}
	if (!of_python(python))
		return pp_error_set(
			err, -ENOENT,
			"no NCCL here: the loader finds no %s (LD_LIBRARY_PATH), and no "
			"Python of PATH has nvidia/nccl; --library FILE names one",
			SONAME);
	l->handle = dlopen(python, RTLD_NOW | RTLD_LOCAL);
	said = l->handle ? NULL : dlerror();
	if (!l->handle)
		return pp_error_set(err, -ELIBACC, "NCCL cannot be loaded: %.400s",
				    said ? said : python);
	take_path(l);
	l->by = "a package of Python";
	return 0;
}

int pp_nccl_library_open(const char *given, struct pp_nccl_library *ret, struct pp_error *err)
{
	struct pp_nccl_library l = {0};
	int r = search(given, &l, err);

	if (r)
		return r;
	for (size_t i = 0; i < PP_ARRAY_LEN(entries); i++) {
		void *fn = dlsym(l.handle, entries[i].name);

		if (!fn && !entries[i].optional)
			return pp_error_set(err, -ENOSYS, "%.300s has no %s (NCCL 2.7 has)", l.path,
					    entries[i].name);
		memcpy((char *)&l.call + entries[i].offset, &fn, sizeof(fn));
	}
	if (l.call.version(&l.number))
		return pp_error_set(err, -ENOSYS, "%.300s does not tell its version", l.path);
	pp_nccl_version_split(l.number, &l.major, &l.minor, &l.patch);
	*ret = l;
	return 0;
}
