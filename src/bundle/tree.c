/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/banned.h"

enum { DEPTH_MAX = 256 };

static int failed(const struct pp_member *m, int code, struct pp_error *err)
{
	char text[128];

	return pp_error_set(err, code, "'%.200s': %s", m->path,
			    pp_errno_text(code, text, sizeof(text)));
}

static int put_file(int dir_fd, const struct pp_member *m, struct pp_error *err)
{
	int fd =
		openat(dir_fd, m->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return failed(m, -errno, err);
	r = pp_fd_write(fd, m->data, m->len);
	if (close(fd) && !r)
		r = -errno;
	return r ? failed(m, r, err) : 0;
}

int pp_tree_put(int dir_fd, const struct pp_member *m, struct pp_error *err)
{
	switch (m->kind) {
	case PP_MEMBER_DIR:
		return mkdirat(dir_fd, m->path, 0700) ? failed(m, -errno, err) : 0;
	case PP_MEMBER_LINK:
		return symlinkat(m->target, dir_fd, m->path) ? failed(m, -errno, err) : 0;
	case PP_MEMBER_FILE:
		break;
	}
	return put_file(dir_fd, m, err);
}

static int remove_at(int parent_fd, const char *name, unsigned int depth);

/* Takes @fd. */
static int empty(int fd, unsigned int depth)
{
	DIR *d = fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!d) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	while (!r && (errno = 0, e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = remove_at(fd, e->d_name, depth);
	if (!r && errno)
		r = -errno;
	(void)closedir(d);
	return r;
}

static int remove_at(int parent_fd, const char *name, unsigned int depth)
{
	int fd, r;

	if (!unlinkat(parent_fd, name, 0))
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (depth == DEPTH_MAX)
		return -EFBIG;
	fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = empty(fd, depth + 1);
	if (!r && unlinkat(parent_fd, name, AT_REMOVEDIR))
		r = -errno;
	return r;
}

int pp_tree_remove(int parent_fd, const char *name)
{
	return remove_at(parent_fd, name, 0);
}

bool pp_tree_empty(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	unsigned int n = 0;

	if (!d) {
		pp_cleanup_close(&fd);
		return false;
	}
	while (n <= 2 && readdir(d))
		n++;
	(void)closedir(d);
	return n <= 2;
}
