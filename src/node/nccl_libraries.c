/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every libnccl that a process here could load: those of the loader's directories, and those that
 * Python packages bring and load by their own path.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "node/collect_software.h"
#include "base/banned.h"

enum { MAX_LIBRARIES = 64, MAX_VERSION = 64, PYTHON_MINORS = 20, MAX_PATH_DIRS = 64 };

static const char SONAME[] = "libnccl.so.2";
static const char PYTHON_PLACE[] = "nvidia/nccl/lib";

struct found {
	const char *path[MAX_LIBRARIES], *line[MAX_LIBRARIES];
	size_t n;
};

static int version_of(struct pp_source *s, const char *path, char version[MAX_VERSION])
{
	int r = pp_library_version_of_name(path, version, MAX_VERSION);

	return r ? pp_library_version_inside(s, path, "NCCL version ", version, MAX_VERSION) : 0;
}

/* Adds a library once; its version in @version, "" when it cannot be told. */
static void add(struct pp_software *sw, struct found *f, const char *path,
		char version[MAX_VERSION])
{
	struct pp_node *n = sw->node;
	int r;

	version[0] = '\0';
	for (size_t i = 0; i < f->n; i++)
		if (!strcmp(f->path[i], path))
			return;
	if (f->n == MAX_LIBRARIES)
		return;
	r = version_of(n->src, path, version);
	if (r)
		version[0] = '\0';
	f->path[f->n] = pp_arena_str(&n->arena, path);
	f->line[f->n++] = r ? pp_arena_printf(&n->arena, "%s (version unknown: %s)", path,
					      r == -ENOENT ? "no version in it" : pp_source_why(r))
			    : pp_arena_printf(&n->arena, "%s %s", path, version);
}

/* What the loader takes is the first; without LD_LIBRARY_PATH nobody knows which that is. */
static void set_first(struct pp_software *sw, const struct found *f, const char *version)
{
	struct pp_node *n = sw->node;

	if (!sw->env.known)
		pp_fact_unknown(&n->facts, n->self, PP_F_NCCL_VERSION, NULL,
				"LD_LIBRARY_PATH is not known: %s", sw->env.why);
	else if (!f->n)
		pp_fact_unknown(&n->facts, n->self, PP_F_NCCL_VERSION, NULL,
				"%s is in none of the %zu directories that the loader searches",
				SONAME, sw->libraries.n);
	else if (!version[0])
		pp_fact_unknown(&n->facts, n->self, PP_F_NCCL_VERSION, f->path[0], "%s",
				f->line[0]);
	else
		pp_fact_str(&n->facts, n->self, PP_F_NCCL_VERSION, version, f->path[0]);
}

static void add_file(struct pp_software *sw, struct found *f, const char *dir, const char *rest)
{
	char path[PP_PATH_MAX], real[PP_PATH_MAX], version[MAX_VERSION];

	if (!pp_path_join(dir, rest, path) && !pp_path_join(path, SONAME, path) &&
	    !pp_library_real(sw->node->src, path, real))
		add(sw, f, real, version);
}

/* The packages of every Python 3 below @prefix. Asked for by name: such folders are large. */
static void add_python(struct pp_software *sw, struct found *f, const char *prefix)
{
	static const char *const kinds[] = {"site-packages", "dist-packages"};
	char dir[PP_PATH_MAX], rest[PP_PATH_MAX];

	if (prefix[0] != '/')
		return;
	for (int minor = -1; minor <= PYTHON_MINORS; minor++) {
		/* Debian's packages for all versions are below python3. */
		(void)snprintf(rest, sizeof(rest), minor < 0 ? "lib/python3" : "lib/python3.%d",
			       minor);
		if (pp_path_join(prefix, rest, dir) || !pp_source_exists(sw->node->src, dir))
			continue;
		for (size_t k = 0; k < PP_ARRAY_LEN(kinds); k++) {
			(void)snprintf(rest, sizeof(rest), "%s/%s", kinds[k], PYTHON_PLACE);
			add_file(sw, f, dir, rest);
		}
	}
}

/* The Pythons of PATH: .../bin/python3 belongs to the prefix above it. */
static void add_pythons_of_path(struct pp_software *sw, struct found *f)
{
	const char *list = pp_environment_get(&sw->env, "PATH");
	char dir[PP_PATH_MAX], path[PP_PATH_MAX];
	unsigned int left = MAX_PATH_DIRS;
	size_t len;

	for (const char *p = list ? list : ""; *p && left; p += len + (p[len] != '\0'), left--) {
		len = strcspn(p, ":");
		if (p[0] != '/' || len >= sizeof(dir))
			continue;
		memcpy(dir, p, len);
		dir[len] = '\0';
		if (!pp_path_join(dir, "python3", path) && pp_source_exists(sw->node->src, path) &&
		    !pp_path_join(dir, "..", path))
			add_python(sw, f, path);
	}
}

void pp_nccl_libraries_collect(struct pp_software *sw)
{
	static const char *const fixed[] = {"/usr", "/usr/local", "/opt/conda"};
	static const char *const named[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
	char path[PP_PATH_MAX], first[MAX_VERSION] = "", version[MAX_VERSION];
	struct pp_node *n = sw->node;
	struct found f = {.n = 0};
	const char *prefix;
	size_t at = 0;

	while (!pp_library_find(n->src, &sw->libraries, SONAME, &at, path))
		add(sw, &f, path, f.n ? version : first);
	set_first(sw, &f, first);
	for (size_t i = 0; i < PP_ARRAY_LEN(named); i++) {
		prefix = pp_environment_get(&sw->env, named[i]);
		if (!prefix || prefix[0] != '/')
			continue;
		add_file(sw, &f, prefix, "lib");
		add_python(sw, &f, prefix);
	}
	add_pythons_of_path(sw, &f);
	prefix = pp_environment_get(&sw->env, "HOME");
	if (prefix && !pp_path_join(prefix, ".local", path))
		add_python(sw, &f, path);
	for (size_t i = 0; i < PP_ARRAY_LEN(fixed); i++)
		add_python(sw, &f, fixed[i]);
	if (sw->env.known)
		pp_fact_list(&n->facts, n->self, PP_F_NCCL_LIBS, f.line, f.n, NULL);
	else
		pp_fact_unknown(&n->facts, n->self, PP_F_NCCL_LIBS, NULL, "%s", sw->env.why);
}
