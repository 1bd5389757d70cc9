/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing. Everything goes to ".NAME.tmp-PID-RANDOM" beside the target, is synced, and then
 * renamed; whatever fails before that removes it again.
 */
#include "bundle/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bundle/plan.h"
#include "bundle/tree.h"
#include "bundle/zst.h"
#include "base/banned.h"

enum { NAME_LEN_MAX = 255 };

static const char SUFFIX[] = ".tar.zst";

struct target {
	const char *path;	      /* as the caller wrote it, for messages */
	int parent;		      /* directory that holds it */
	char name[NAME_LEN_MAX + 1];  /* its last part */
	char temporary[NAME_LEN_MAX]; /* beside it */
};

bool pp_bundle_is_archive(const char *path)
{
	size_t len = strlen(path);

	return len > sizeof(SUFFIX) - 1 && !strcmp(path + len - (sizeof(SUFFIX) - 1), SUFFIX);
}

static int failed(const struct target *t, int code, const char *what, struct pp_error *err)
{
	char text[128];

	return pp_error_set(err, code, "'%.200s': %s: %s", t->path, what,
			    pp_errno_text(code, text, sizeof(text)));
}

/* Splits the path and opens its directory. */
static int find_target(const char *path, struct target *ret, struct pp_error *err)
{
	struct target t = {.path = path};
	char dir[4096], random_text[17];
	size_t len = strlen(path), start;
	uint8_t random[8];

	while (len > 1 && path[len - 1] == '/')
		len--;
	for (start = len; start && path[start - 1] != '/';)
		start--;
	if (len == start || len - start > NAME_LEN_MAX || start >= sizeof(dir) ||
	    !strncmp(path + start, "..", len - start) || !strncmp(path + start, ".", len - start))
		return pp_error_set(err, -EINVAL, "'%.200s' is no name for a bundle", path);
	memcpy(t.name, path + start, len - start);
	memcpy(dir, start ? path : ".", start ? start : 1);
	dir[start ? start : 1] = '\0';
	if (sodium_init() < 0)
		return pp_error_set(err, -ENOMEM, "no random numbers");
	randombytes_buf(random, sizeof(random));
	(void)snprintf(t.temporary, sizeof(t.temporary), ".%.100s.tmp-%d-%s", t.name, (int)getpid(),
		       pp_hex(random, sizeof(random), random_text));
	t.parent = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t.parent < 0)
		return failed(&t, -errno, "its directory", err);
	*ret = t;
	return 0;
}

/* Is it empty, or does it hold a manifest of this program? Nothing else is removed by force. */
static bool replaceable_dir(const struct target *t)
{
	char head[128] = "";
	int PP_AUTO_CLOSE dir = openat(t->parent, t->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int PP_AUTO_CLOSE fd = -1;

	if (dir < 0)
		return false;
	fd = openat(dir, PP_MANIFEST_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		return read(fd, head, sizeof(head) - 1) > 0 && strstr(head, "\"peerpath.manifest/");
	return pp_tree_empty(dir);
}

/* *ret_there: something is to be replaced. */
static int check_target(const struct target *t, bool archive, bool force, bool *ret_there,
			struct pp_error *err)
{
	struct stat st;

	*ret_there = false;
	if (fstatat(t->parent, t->name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : failed(t, -errno, "stat", err);
	if (!force)
		return pp_error_set(err, -EEXIST, "'%.200s' exists; --force replaces it", t->path);
	if (archive ? !S_ISREG(st.st_mode) : !S_ISDIR(st.st_mode) || !replaceable_dir(t))
		return pp_error_set(err, -EEXIST,
				    "'%.200s' exists and is no bundle: not replaced even with "
				    "--force",
				    t->path);
	*ret_there = true;
	return 0;
}

int pp_bundle_check(const char *path, bool force, struct pp_error *err)
{
	struct target t;
	bool there;
	int r = find_target(path, &t, err);

	if (r)
		return r;
	r = check_target(&t, pp_bundle_is_archive(path), force, &there, err);
	if (!r && faccessat(t.parent, ".", W_OK | X_OK, AT_EACCESS))
		r = failed(&t, -errno, "its directory", err);
	(void)close(t.parent);
	return r;
}

static int interrupted(struct pp_error *err)
{
	return pp_error_set(err, -EINTR, "interrupted: nothing was written");
}

static int write_archive(int fd, const struct pp_plan *p, const struct pp_bundle_options *o,
			 struct pp_error *err)
{
	pp_ns mtime = o->created ? o->created : pp_clock_wall();
	struct pp_zst_writer *z = NULL;
	struct pp_sink sink;
	int r = pp_zst_writer_new(fd, &z, err);

	if (r)
		return r;
	sink = pp_zst_sink(z);
	for (size_t i = 0; !r && i < p->n; i++) {
		r = pp_ustar_put(&sink, &p->members[i], mtime, err);
		if (!r && o->stopped && o->stopped())
			r = interrupted(err);
	}
	if (!r)
		r = pp_ustar_end(&sink, err);
	if (!r)
		r = pp_zst_finish(z, err);
	pp_zst_writer_free(z);
	return r;
}

static int write_dir(int fd, const struct pp_plan *p, const struct pp_bundle_options *o,
		     struct pp_error *err)
{
	int r = 0;

	for (size_t i = 0; !r && i < p->n; i++) {
		r = pp_tree_put(fd, &p->members[i], err);
		if (!r && o->stopped && o->stopped())
			r = interrupted(err);
	}
	return r;
}

/* Writes and syncs the temporary. */
static int write_temporary(const struct target *t, bool archive, const struct pp_plan *p,
			   const struct pp_bundle_options *o, struct pp_error *err)
{
	int PP_AUTO_CLOSE fd = -1;
	int r;

	if (!archive && mkdirat(t->parent, t->temporary, 0700))
		return failed(t, -errno, "mkdir", err);
	fd = openat(t->parent, t->temporary,
		    archive ? O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
			    : O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return failed(t, -errno, "open", err);
	r = archive ? write_archive(fd, p, o, err) : write_dir(fd, p, o, err);
	if (r)
		return r == -EINTR ? r : pp_error_prefix(err, "'%.200s'", t->path);
	/* One sync of the file system instead of one of each of thousands of files. */
	if (archive ? fsync(fd) : syncfs(fd))
		return failed(t, -errno, "sync", err);
	return 0;
}

/* Puts the temporary in its place; what was there is removed. */
static int publish(const struct target *t, bool archive, bool there, struct pp_error *err)
{
	unsigned int flags = !there ? RENAME_NOREPLACE : archive ? 0 : RENAME_EXCHANGE;
	int r = renameat2(t->parent, t->temporary, t->parent, t->name, flags) ? -errno : 0;

	/* Some network file systems know no flags; the target was looked for just before. */
	if ((r == -EINVAL || r == -ENOSYS) && flags != RENAME_EXCHANGE)
		r = renameat(t->parent, t->temporary, t->parent, t->name) ? -errno : 0;
	if (r)
		return failed(t, r, "rename", err);
	if (flags == RENAME_EXCHANGE)
		(void)pp_tree_remove(t->parent, t->temporary);
	if (fsync(t->parent) && errno != EINVAL)
		return failed(t, -errno, "sync of its directory", err);
	return 0;
}

static void count(const struct pp_plan *p, struct pp_bundle_written *ret)
{
	*ret = (struct pp_bundle_written){.errors = p->n_errors, .dropped = p->dropped};
	(void)snprintf(ret->id, sizeof(ret->id), "%s", p->manifest->id);
	for (size_t i = 1; i < p->n; i++) {
		ret->files += p->members[i].kind == PP_MEMBER_FILE;
		ret->links += p->members[i].kind == PP_MEMBER_LINK;
		ret->directories += p->members[i].kind == PP_MEMBER_DIR;
		ret->bytes += p->members[i].len;
	}
}

int pp_bundle_write(const char *path, const struct pp_bundle_content *content,
		    const struct pp_bundle_options *options, struct pp_bundle_written *ret,
		    struct pp_error *err)
{
	bool archive = pp_bundle_is_archive(path), there = false;
	struct pp_plan *plan = NULL;
	struct target t;
	int r = find_target(path, &t, err);

	if (r)
		return r;
	r = check_target(&t, archive, options->force, &there, err);
	if (!r)
		r = pp_plan_make(content, options, &plan, err);
	if (!r) {
		r = write_temporary(&t, archive, plan, options, err);
		if (!r && options->stopped && options->stopped())
			r = interrupted(err);
		if (!r)
			r = publish(&t, archive, there, err);
		if (r)
			(void)pp_tree_remove(t.parent, t.temporary);
		else
			count(plan, ret);
	}
	pp_plan_free(plan);
	(void)close(t.parent);
	return r;
}
