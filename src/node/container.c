/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.container: the kind of container, from the marks that managers leave.
 *
 * "none" needs more than the absence of marks: the namespaces that the kernel made at boot have
 * fixed numbers, and a process in them is in no container (or in one that hides nothing, whose
 * cgroup path then has its manager's name).
 */
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "node/collect_limits.h"
#include "node/limits.h"
#include "base/banned.h"

enum { WORD = 64, MAX_ENVIRON = 256 << 10 };

enum initial { UNREADABLE, INITIAL, OTHER };

/* Numbers of the first namespaces, part of the kernel's ABI (include/linux/proc_ns.h). */
static enum initial namespace_of(struct pp_node *n, const char *path, const char *first)
{
	char target[WORD];
	int r = pp_source_link(n->src, path, target, sizeof(target));

	if (r)
		return UNREADABLE;
	return strcmp(target, first) != 0 ? OTHER : INITIAL;
}

struct view {
	enum initial pid, cgroup;
	const char *cgroup_text;
};

static bool all_initial(const struct view *v)
{
	/* Without cgroup namespaces (before 4.6) the path is the whole one. */
	return v->pid == INITIAL && v->cgroup_text && v->cgroup != OTHER;
}

/* A short word in a file that the manager put into the container. */
static bool word_in(struct pp_node *n, const char *path, char word[WORD])
{
	return !pp_source_text(n->src, path, word, WORD) && word[0] && !strpbrk(word, " \t\n");
}

static enum pp_scan_step keep_container(void *arg, const char *piece, size_t len)
{
	char *word = arg;

	if (strncmp(piece, "container=", 10) != 0 || len - 10 >= WORD || len == 10)
		return PP_SCAN_DROP;
	memcpy(word, piece + 10, len - 10 + 1);
	return PP_SCAN_LAST;
}

static bool init_environ(struct pp_node *n, char word[WORD])
{
	const struct pp_scan scan = {
		.separator = '\0', .max = MAX_ENVIRON, .filter = keep_container, .arg = word};

	word[0] = '\0';
	return !pp_source_scan(n->src, "/proc/1/environ", &scan) && word[0];
}

/* The kind and where it was seen; NULL when no mark was found. */
static const char *mark(struct pp_node *n, const struct view *v, char word[WORD],
			const char **ret_source)
{
	static const char *const told[] = {"/run/systemd/container", "/run/host/container-manager"};
	static const struct {
		const char *path, *kind;
	} left[] = {
		{"/run/.containerenv", "podman"},
		{"/run/secrets/kubernetes.io", "kubernetes"},
		{"/.singularity.d", "apptainer"},
	};
	const char *manager = v->cgroup_text ? pp_limits_cgroup_manager(v->cgroup_text) : NULL;

	*ret_source = "/proc/self/cgroup";
	if (manager)
		return manager;
	for (size_t i = 0; i < PP_ARRAY_LEN(left); i++) {
		*ret_source = left[i].path;
		if (pp_source_exists(n->src, left[i].path))
			return left[i].kind;
	}
	for (size_t i = 0; i < PP_ARRAY_LEN(told); i++) {
		*ret_source = told[i];
		if (word_in(n, told[i], word))
			return word;
	}
	*ret_source = "/proc/1/environ";
	if (init_environ(n, word))
		return word;
	/* An image unpacked as the file system of a whole machine keeps this one. */
	*ret_source = "/.dockerenv";
	return pp_source_exists(n->src, *ret_source) && !all_initial(v) ? "docker" : NULL;
}

void pp_container_collect(struct pp_node *n, const char *cgroup)
{
	static const char PID_NS[] = "/proc/self/ns/pid", CGROUP_NS[] = "/proc/self/ns/cgroup";
	const struct view v = {
		.pid = namespace_of(n, PID_NS, "pid:[4026531836]"),
		.cgroup = namespace_of(n, CGROUP_NS, "cgroup:[4026531835]"),
		.cgroup_text = cgroup,
	};
	char word[WORD];
	const char *source, *kind = mark(n, &v, word, &source);

	if (kind)
		pp_fact_str(&n->facts, n->self, PP_F_CONTAINER, kind, source);
	else if (all_initial(&v))
		pp_fact_str(&n->facts, n->self, PP_F_CONTAINER, "none", PID_NS);
	else if (v.pid == OTHER || v.cgroup == OTHER)
		pp_fact_str(&n->facts, n->self, PP_F_CONTAINER, "other",
			    v.pid == OTHER ? PID_NS : CGROUP_NS);
	else
		pp_fact_unknown(&n->facts, n->self, PP_F_CONTAINER, PID_NS,
				"no container manager's mark, and %s cannot be read to say that "
				"there is none",
				v.pid == UNREADABLE ? PID_NS : "/proc/self/cgroup");
}
