/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bundle that is a directory: each member once, no link followed, everything bounded as in an
 * archive.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bundle/load.h"
#include "node/source_store.h"
#include "base/banned.h"

/* sysfs is about 25 deep; each level holds a descriptor. */
enum { DEPTH_MAX = 64 };

struct walk {
	pp_member_handler *handler;
	void *arg;
	struct pp_error *err;
	char path[PP_MEMBER_PATH_MAX]; /* of the member at hand */
	size_t members;
	uint64_t total;
};

static int failed(struct walk *w, int code)
{
	return pp_error_set(w->err, code, "'%.300s': %s", w->path, pp_source_why(code));
}

static int visit_file(struct walk *w, int dir, const char *name)
{
	int PP_AUTO_CLOSE fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct pp_member m = {.kind = PP_MEMBER_FILE, .path = w->path};
	char *PP_AUTO_FREE text = NULL;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st))
		return failed(w, -errno);
	if (!S_ISREG(st.st_mode))
		return pp_error_set(w->err, -EBADMSG,
				    "'%.300s' is no file, directory or symbolic link: refused",
				    w->path);
	r = pp_store_slurp(fd, (size_t)PP_MEMBER_BYTES_MAX, &text, &m.len);
	if (r)
		return failed(w, r);
	w->total += m.len;
	if (w->total > PP_ARCHIVE_BYTES_MAX)
		return failed(w, -EFBIG);
	m.data = text;
	return w->handler(w->arg, &m, w->err);
}

static int visit_link(struct walk *w, int dir, const char *name)
{
	char target[PP_MEMBER_PATH_MAX];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n < 0)
		return failed(w, -errno);
	if ((size_t)n == sizeof(target) - 1)
		return failed(w, -ENAMETOOLONG);
	target[n] = '\0';
	return w->handler(
		w->arg,
		&(struct pp_member){.kind = PP_MEMBER_LINK, .path = w->path, .target = target},
		w->err);
}

static int walk_dir(struct walk *w, int fd, unsigned int depth);

static int visit_dir(struct walk *w, int dir, const char *name, unsigned int depth)
{
	int fd, r = w->handler(w->arg, &(struct pp_member){.kind = PP_MEMBER_DIR, .path = w->path},
			       w->err);

	if (r)
		return r;
	if (depth == DEPTH_MAX)
		return pp_error_set(w->err, -EFBIG, "'%.300s': directories too deep", w->path);
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? failed(w, -errno) : walk_dir(w, fd, depth + 1);
}

static int visit(struct walk *w, int dir, const char *name, unsigned int depth)
{
	size_t len = strlen(w->path);
	struct stat st;
	int r;

	if (len + 1 + strlen(name) >= sizeof(w->path))
		return failed(w, -ENAMETOOLONG);
	(void)snprintf(w->path + len, sizeof(w->path) - len, "%s%s", len ? "/" : "", name);
	r = pp_member_path_check(w->path, w->err);
	if (r)
		return r;
	if (++w->members > PP_MEMBERS_MAX)
		return pp_error_set(w->err, -EFBIG, "more than %d files: refused", PP_MEMBERS_MAX);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return failed(w, -errno);
	if (S_ISDIR(st.st_mode))
		r = visit_dir(w, dir, name, depth);
	else if (S_ISLNK(st.st_mode))
		r = visit_link(w, dir, name);
	else
		r = visit_file(w, dir, name);
	w->path[len] = '\0';
	return r;
}

/* Takes @fd. */
static int walk_dir(struct walk *w, int fd, unsigned int depth)
{
	DIR *d = fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!d) {
		r = -errno;
		(void)close(fd);
		return failed(w, r);
	}
	while (!r && (errno = 0, e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		r = visit(w, fd, e->d_name, depth);
	}
	if (!r && errno)
		r = failed(w, -errno);
	(void)closedir(d);
	return r;
}

int pp_bundle_walk(int dir_fd, pp_member_handler *handler, void *arg, struct pp_error *err)
{
	struct walk w = {.handler = handler, .arg = arg, .err = err};
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? failed(&w, -errno) : walk_dir(&w, fd, 0);
}
