/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk store. A live machine is read from "/" as it is; any other directory is read so that
 * no link, absolute or with "..", leads out of it: openat2(RESOLVE_IN_ROOT), or where the kernel
 * or a seccomp filter refuses that call, a walk that follows links by hand.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "node/source_store.h"
#include "base/banned.h"

enum { MAX_LINKS = 40, MAX_NAMES = 65536, MAX_NAME_BYTES = 8 << 20, MAX_ANSWER = 16 << 20 };

/*
 * The walk: rewrites *path until it holds no link. Each link found restarts from the root with
 * the target spliced in, so "cur" never leaves the root.
 */
static int walk(int root_fd, const char *path, int flags)
{
	char now[PP_PATH_MAX], target[PP_PATH_MAX], dir[PP_PATH_MAX], next[PP_PATH_MAX];
	size_t done = 1, end;
	int links = 0, fd;
	struct stat st;
	ssize_t n;
	char saved;

	memcpy(now, path, strlen(path) + 1);
	while (now[done]) {
		end = done + strcspn(now + done, "/");
		saved = now[end];
		now[end] = '\0';
		if (fstatat(root_fd, now + 1, &st, AT_SYMLINK_NOFOLLOW))
			return -errno;
		if (!S_ISLNK(st.st_mode) || (!saved && (flags & O_NOFOLLOW))) {
			now[end] = saved;
			done = saved ? end + 1 : end;
			continue;
		}
		if (++links > MAX_LINKS)
			return -ELOOP;
		n = readlinkat(root_fd, now + 1, target, sizeof(target) - 1);
		if (n < 0)
			return -errno;
		target[n] = '\0';
		memcpy(dir, now, done - 1);
		dir[done - 1] = '\0';
		if (pp_path_join(dir, target, next) ||
		    pp_path_join(next, saved ? now + end + 1 : "", now))
			return -ENAMETOOLONG;
		done = 1;
	}
	fd = openat(root_fd, now[1] ? now + 1 : ".", flags | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

static int open_in_root(const struct pp_store *st, const char *path, int flags)
{
	struct open_how how = {.flags = (unsigned int)(flags | O_CLOEXEC),
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	long fd;

	if (st->root_fd < 0) {
		fd = open(path, flags | O_CLOEXEC);
		return fd < 0 ? -errno : (int)fd;
	}
	fd = syscall(SYS_openat2, st->root_fd, path, &how, sizeof(how));
	if (fd >= 0)
		return (int)fd;
	if (errno == ENOSYS || errno == EPERM)
		return walk(st->root_fd, path, flags | O_CLOEXEC);
	return -errno;
}

/* A recorded error stands for a file that could not be read on the recorded node. */
static int recorded_error(const struct pp_store *st, const char *path)
{
	const struct pp_entry *e = st->errors ? pp_record_get(st->errors, path) : NULL;

	return e ? e->error : 0;
}

static int read_all(int fd, char *buf, size_t size, size_t *ret_len)
{
	size_t len = 0;
	ssize_t n;
	char more;

	while (len < size) {
		n = read(fd, buf + len, size - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0) {
			*ret_len = len;
			return 0;
		}
		len += (size_t)n;
	}
	*ret_len = len;
	do
		n = read(fd, &more, 1);
	while (n < 0 && errno == EINTR);
	return n > 0 ? -EFBIG : n < 0 ? -errno : 0;
}

static int disk_open(struct pp_store *st, const char *path, struct pp_stream *ret)
{
	int r = recorded_error(st, path);
	int PP_AUTO_CLOSE fd = -1;
	struct stat stat;

	if (r)
		return r;
	fd = open_in_root(st, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fd;
	if (fstat(fd, &stat))
		return -errno;
	if (!S_ISREG(stat.st_mode))
		return S_ISDIR(stat.st_mode) ? -EISDIR : -EINVAL;
	*ret = (struct pp_stream){.fd = fd};
	fd = -1;
	return 0;
}

static int disk_read(struct pp_store *st, const char *path, void *buf, size_t size, size_t *ret_len)
{
	struct pp_stream in;
	int r = disk_open(st, path, &in);

	if (r)
		return r;
	r = read_all(in.fd, buf, size, ret_len);
	(void)close(in.fd);
	return r;
}

int pp_store_slurp(int fd, size_t max, char **ret, size_t *ret_len)
{
	struct pp_buf PP_AUTO_BUF buf = PP_BUF(max);
	char part[16384];
	ssize_t n;

	while ((n = read(fd, part, sizeof(part))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		pp_buf_add(&buf, part, (size_t)n);
		if (buf.failed)
			return buf.failed;
	}
	pp_buf_add(&buf, "", 0);
	if (buf.failed)
		return buf.failed;
	*ret_len = buf.len;
	*ret = pp_take(buf.data);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int pp_store_names(char *block, size_t len, size_t n, struct pp_names *ret)
{
	char **name = calloc(n ? n : 1, sizeof(*name));
	char *p = block;

	if (!name) {
		free(block);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n && p < block + len; i++, p += strlen(p) + 1)
		name[i] = p;
	qsort(name, n, sizeof(*name), by_name);
	*ret = (struct pp_names){.name = name, .n = n, .block = block};
	return 0;
}

static int disk_list(struct pp_store *st, const char *path, struct pp_names *ret)
{
	struct pp_buf block = PP_BUF(MAX_NAME_BYTES);
	int r = recorded_error(st, path), fd;
	struct dirent *e;
	size_t n = 0;
	DIR *dir;

	if (r)
		return r;
	fd = open_in_root(st, path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	while (n < MAX_NAMES && (errno = 0, e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		pp_buf_add(&block, e->d_name, strlen(e->d_name) + 1);
		n++;
	}
	r = n == MAX_NAMES ? -EFBIG : errno ? -errno : block.failed;
	(void)closedir(dir);
	if (r) {
		pp_buf_done(&block);
		return r;
	}
	return pp_store_names(block.data, block.len, n, ret);
}

static int disk_link(struct pp_store *st, const char *path, char *buf, size_t size)
{
	int r = recorded_error(st, path);
	int PP_AUTO_CLOSE fd = -1;
	ssize_t n;

	if (r)
		return r;
	if (st->root_fd < 0) {
		n = readlink(path, buf, size);
	} else {
		fd = open_in_root(st, path, O_PATH | O_NOFOLLOW);
		if (fd < 0)
			return fd;
		n = readlinkat(fd, "", buf, size);
		/* An empty name on what is no link: the kernel says ENOENT. */
		if (n < 0 && errno == ENOENT)
			errno = EINVAL;
	}
	if (n < 0)
		return -errno;
	if ((size_t)n >= size)
		return -ENAMETOOLONG;
	buf[n] = '\0';
	return 0;
}

static int disk_probe(struct pp_store *st, const char *path)
{
	int fd, r = recorded_error(st, path);

	if (r)
		return r;
	if (st->root_fd < 0) {
		r = faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
	} else {
		fd = open_in_root(st, path, O_PATH | O_NOFOLLOW);
		r = fd < 0 ? fd : 0;
		if (!r)
			(void)close(fd);
	}
	return !r ? 1 : r == -ENOENT || r == -ENOTDIR ? 0 : r;
}

static int disk_answer(struct pp_store *st, const char *name, char **ret, size_t *ret_len)
{
	int PP_AUTO_CLOSE fd = -1;
	char file[80];
	size_t len = strlen(name);

	if (st->answers_fd < 0 || len + sizeof(".json") > sizeof(file) || strchr(name, '/'))
		return -ENOENT;
	memcpy(file, name, len);
	memcpy(file + len, ".json", sizeof(".json"));
	fd = openat(st->answers_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd < 0 ? -errno : pp_store_slurp(fd, MAX_ANSWER, ret, ret_len);
}

const struct pp_store_ops pp_store_disk = {
	.read = disk_read,
	.open = disk_open,
	.list = disk_list,
	.link = disk_link,
	.probe = disk_probe,
	.answer = disk_answer,
};
