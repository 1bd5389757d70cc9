/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A root tree in a directory of its own that counts as this machine's, so that questions are asked
 * of it: it has the running kernel's boot id.
 */
#ifndef PP_TESTS_TRACE_TREE_H
#define PP_TESTS_TRACE_TREE_H

#include "unit.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/source.h"

static char tree_top[256];

static inline void tree_path(char *buf, size_t size, const char *path)
{
	int n = snprintf(buf, size, "%s%s", tree_top, path);

	assert_true(n > 0 && (size_t)n < size);
}

/* The directories above @path. */
static inline void tree_above(const char *path)
{
	char at[1024];

	tree_path(at, sizeof(at), path);
	for (char *p = at + strlen(tree_top) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		assert_true(!mkdir(at, 0755) || errno == EEXIST);
		*p = '/';
	}
}

static inline void tree_file(const char *path, const char *text)
{
	char at[1024];
	FILE *f;

	tree_above(path);
	tree_path(at, sizeof(at), path);
	f = fopen(at, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	assert_int_equal(fclose(f), 0);
}

static inline void tree_dir(const char *path)
{
	char at[1024];

	tree_above(path);
	tree_path(at, sizeof(at), path);
	assert_int_equal(mkdir(at, 0755), 0);
}

static inline void tree_link(const char *path, const char *target)
{
	char at[1024];

	tree_above(path);
	tree_path(at, sizeof(at), path);
	assert_int_equal(symlink(target, at), 0);
}

static inline void tree_new(void)
{
	static const char ID[] = "/proc/sys/kernel/random/boot_id";
	const char *tmp = getenv("TMPDIR");
	char id[64] = "";
	FILE *f = fopen(ID, "re");

	assert_non_null(f);
	assert_non_null(fgets(id, sizeof(id), f));
	(void)fclose(f);
	(void)snprintf(tree_top, sizeof(tree_top), "%s/peerpath-trace-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(tree_top));
	tree_file(ID, id);
}

static inline struct pp_source *tree_source(void)
{
	struct pp_source *s = NULL;
	struct pp_error err;

	assert_int_equal(pp_source_root(tree_top, &s, &err), 0);
	assert_true(pp_source_may_ask(s));
	return s;
}

static inline void tree_done(void)
{
	char command[512];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", tree_top);
	assert_int_equal(system(command), 0);
}

#endif
