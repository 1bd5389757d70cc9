/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cgroup of this process, and the limits on RDMA objects that it and those above it set.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "node/collect_limits.h"
#include "node/limits.h"
#include "base/banned.h"

enum { MAX_LIMITS = 256, MAX_RDMA_TEXT = 16 << 10 };

static const char CGROUP[] = "/proc/self/cgroup";

struct limits {
	const char *line[MAX_LIMITS];
	size_t n;
	char text[MAX_RDMA_TEXT];
};

/* "mlx5_0 hca_handle=2 hca_object=max": is any of its values a number? */
static bool sets_limit(const char *line)
{
	for (const char *p = line; (p = strchr(p, '=')) != NULL; p++)
		if (p[1] >= '0' && p[1] <= '9')
			return true;
	return false;
}

static void add_lines(struct pp_node *n, struct limits *l, const char *dir)
{
	char *line, *rest = l->text;

	while ((line = strsep(&rest, "\n")) != NULL && l->n < MAX_LIMITS)
		if (sets_limit(line))
			l->line[l->n++] = pp_arena_printf(&n->arena, "%s: %s", dir, line);
}

/*
 * One level: 0 with its limits added; no rdma.max in a cgroup that is there is no limit; else
 * the error.
 */
static int read_level(struct pp_node *n, struct limits *l, const char *dir)
{
	char path[PP_PATH_MAX];
	int r = pp_path_join(dir, "rdma.max", path);

	if (r)
		return r;
	r = pp_source_text(n->src, path, l->text, sizeof(l->text));
	if (!r)
		add_lines(n, l, dir);
	if (r != -ENOENT || pp_path_join(dir, "cgroup.procs", path))
		return r;
	return pp_source_exists(n->src, path) ? 0 : -ENOENT;
}

/* From the process's cgroup up to the mount: each of them limits. */
static int read_levels(struct pp_node *n, struct limits *l, const char *mount, const char *path)
{
	char dir[PP_PATH_MAX];
	size_t top = strlen(mount);
	int r = pp_path_join(mount, path + strspn(path, "/"), dir);

	if (r || strncmp(dir, mount, top) != 0)
		return r ? r : -EINVAL;
	for (;;) {
		r = read_level(n, l, dir);
		if (r || strlen(dir) <= top)
			return r;
		*strrchr(dir, '/') = '\0';
	}
}

/* Is the controller offered at this mount of version 2? -errno when that cannot be told. */
static int offered(struct pp_node *n, const char *mount, bool *ret)
{
	char path[PP_PATH_MAX], text[512];
	const char *word = text;
	int r = pp_path_join(mount, "cgroup.controllers", path);

	if (!r)
		r = pp_source_text(n->src, path, text, sizeof(text));
	if (r)
		return r;
	*ret = false;
	while ((word = strstr(word, "rdma")) != NULL) {
		*ret = *ret || ((word == text || word[-1] == ' ') && (!word[4] || word[4] == ' '));
		word += 4;
	}
	return 0;
}

static int read_all(struct pp_node *n, struct limits *l, const char *cgroup)
{
	static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char path[PP_PATH_MAX];
	bool there = false;
	int r = -ENOENT;

	if (!pp_limits_cgroup(cgroup, "rdma", path, sizeof(path)))
		return read_levels(n, l, "/sys/fs/cgroup/rdma", path);
	if (pp_limits_cgroup(cgroup, "", path, sizeof(path)))
		return -ENOENT;
	for (size_t i = 0; i < PP_ARRAY_LEN(mounts) && r == -ENOENT; i++) {
		r = offered(n, mounts[i], &there);
		if (!r && there)
			r = read_levels(n, l, mounts[i], path);
	}
	return r;
}

static void collect_rdma(struct pp_node *n, const char *cgroup)
{
	struct limits *PP_AUTO_FREE l = calloc(1, sizeof(*l));
	int r = l ? read_all(n, l, cgroup) : -ENOMEM;

	if (r)
		pp_fact_unknown(&n->facts, n->self, PP_F_CGROUP_RDMA_MAX, "/sys/fs/cgroup",
				"rdma controller of the cgroup: %s", pp_source_why(r));
	else
		pp_fact_list(&n->facts, n->self, PP_F_CGROUP_RDMA_MAX, l->line, l->n,
			     "/sys/fs/cgroup");
}

void pp_cgroup_collect(struct pp_node *n, const char *cgroup, int error)
{
	static const char *const order[] = {"rdma", "", "memory", "devices"};
	char path[PP_PATH_MAX];
	int r = error ? error : -ENOENT;

	for (size_t i = 0; !error && r && i < PP_ARRAY_LEN(order); i++)
		r = pp_limits_cgroup(cgroup, order[i], path, sizeof(path));
	if (r) {
		pp_fact_unknown(&n->facts, n->self, PP_F_CGROUP, CGROUP, "%s: %s", CGROUP,
				pp_source_why(r));
		pp_fact_unknown(&n->facts, n->self, PP_F_CGROUP_RDMA_MAX, CGROUP, "%s: %s", CGROUP,
				pp_source_why(r));
		return;
	}
	pp_fact_str(&n->facts, n->self, PP_F_CGROUP, path, CGROUP);
	collect_rdma(n, cgroup);
}
