/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sodium.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "profile/disk_parent.h"
#include "base/banned.h"

int pp_disk_open(const char *root, struct pp_disk *ret, struct pp_error *err)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char text[128];

	if (fd < 0)
		return pp_error_set(err, -errno, "%s: %s", root,
				    pp_errno_text(errno, text, sizeof(text)));
	*ret = (struct pp_disk){.root = fd, .name = root};
	return 0;
}

void pp_disk_close(struct pp_disk *d)
{
	pp_cleanup_close(&d->root);
}

/* Component by component; a link anywhere is -ELOOP, or -ENOTDIR as openat(2) has it. */
static int walk(int root, const char *path, size_t len)
{
	int fd = fcntl(root, F_DUPFD_CLOEXEC, 0), next;
	char name[NAME_MAX + 1];

	for (size_t n; fd >= 0 && len; path += n, len -= n) {
		n = 1;
		if (*path == '/')
			continue;
		n = strcspn(path, "/");
		n = n < len ? n : len;
		if (n > NAME_MAX) {
			(void)close(fd);
			return -ENAMETOOLONG;
		}
		memcpy(name, path, n);
		name[n] = '\0';
		next = !strcmp(name, "..")
			       ? (errno = EINVAL, -1)
			       : openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			next = -errno;
		(void)close(fd);
		fd = next;
	}
	return fd;
}

/* The directory @path[0..len) below the root; its descriptor. */
static int open_dir(const struct pp_disk *d, const char *path, size_t len)
{
	struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	char dir[PP_DISK_PATH];
	long fd;

	if (len >= sizeof(dir))
		return -ENAMETOOLONG;
	memcpy(dir, path, len);
	dir[len] = '\0';
	if (!d->plain) {
		fd = syscall(SYS_openat2, d->root, len ? dir : "/", &how, sizeof(how));
		if (fd >= 0)
			return (int)fd;
		/* A kernel before 5.6, or a sandbox that does not know the call. */
		if (errno != ENOSYS && errno != EPERM && errno != E2BIG)
			return -errno;
	}
	return walk(d->root, dir, len);
}

int pp_disk_parent(const struct pp_disk *d, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');

	if (!slash || !slash[1] || !strcmp(slash + 1, ".") || !strcmp(slash + 1, ".."))
		return -EINVAL;
	*ret_name = slash + 1;
	return open_dir(d, path, (size_t)(slash - path));
}

int pp_disk_has_dir(const struct pp_disk *d, const char *path)
{
	int fd = open_dir(d, path, strlen(path));

	if (fd >= 0)
		(void)close(fd);
	return fd >= 0 ? 1 : fd == -ENOENT ? 0 : fd;
}

void pp_disk_digest(const char *bytes, size_t len, struct pp_disk_state *state)
{
	unsigned char hash[crypto_hash_sha256_BYTES];

	(void)crypto_hash_sha256(hash, (const unsigned char *)bytes, len);
	sodium_bin2hex(state->sha256, sizeof(state->sha256), hash, sizeof(hash));
	state->bytes = len;
}

bool pp_disk_same(const struct pp_disk_state *a, const struct pp_disk_state *b)
{
	if (!a->exists || !b->exists)
		return a->exists == b->exists;
	return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid &&
	       !strcmp(a->sha256, b->sha256);
}

/* Labels are the kernel's to give; what somebody has put there would not come back. */
static bool has_attributes(int fd)
{
	char names[4096];
	ssize_t len = flistxattr(fd, names, sizeof(names));

	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1)
		if (strncmp(names + at, "security.", 9) != 0)
			return true;
	return len < 0 && errno == ERANGE;
}

static const char *why_not(int fd, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "is no regular file";
	if (st->st_nlink > 1)
		return "has hard links, which a change would part";
	if (st->st_mode & (S_ISUID | S_ISGID | S_ISVTX))
		return "has set-id bits";
	return has_attributes(fd) ? "has extended attributes, which a rollback would lose" : NULL;
}

static int read_open(int fd, const char *path, struct pp_buf *ret, struct pp_disk_state *state,
		     struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF own = PP_BUF(PP_DISK_FILE_MAX);
	const char *why;
	struct stat st;
	char text[128];
	int r;

	if (fstat(fd, &st))
		return pp_error_set(err, -errno, "%s: cannot be examined", path);
	why = why_not(fd, &st);
	if (why)
		return pp_error_set(err, -EINVAL, "%s %s", path, why);
	ret = ret ? ret : &own;
	r = pp_fd_read(fd, ret);
	if (r)
		return pp_error_set(err, r, "%s: %s", path, pp_errno_text(r, text, sizeof(text)));
	*state = (struct pp_disk_state){.exists = true,
					.mode = st.st_mode & 0777,
					.uid = st.st_uid,
					.gid = st.st_gid,
					.mtime_s = st.st_mtim.tv_sec,
					.mtime_ns = st.st_mtim.tv_nsec};
	pp_disk_digest(pp_buf_text(ret), ret->len, state);
	return 0;
}

int pp_disk_read(const struct pp_disk *d, const char *path, struct pp_buf *ret,
		 struct pp_disk_state *state, struct pp_error *err)
{
	const char *name;
	int PP_AUTO_CLOSE dir = pp_disk_parent(d, path, &name);
	int PP_AUTO_CLOSE fd = -1;
	char text[128];

	if (dir >= 0)
		fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		return read_open(fd, path, ret, state, err);
	if (dir == -ENOENT || (dir >= 0 && errno == ENOENT)) {
		*state = (struct pp_disk_state){0};
		return 0;
	}
	if (dir >= 0 && errno == ELOOP)
		return pp_error_set(err, -ELOOP, "%s is a symbolic link: only files are changed",
				    path);
	dir = dir < 0 ? dir : -errno;
	return pp_error_set(err, dir, "%s: %s", path, pp_errno_text(dir, text, sizeof(text)));
}

int pp_disk_lock(const struct pp_disk *d, const char *path, int *ret, struct pp_error *err)
{
	const char *name;
	int PP_AUTO_CLOSE dir = pp_disk_parent(d, path, &name);
	int fd = dir < 0 ? dir : openat(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	char text[128];

	if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB)) {
		*ret = fd;
		return 0;
	}
	if (fd < 0) {
		fd = dir < 0 ? dir : -errno;
		return pp_error_set(err, fd, "%s: %s", path, pp_errno_text(fd, text, sizeof(text)));
	}
	(void)close(fd);
	return pp_error_set(err, -EAGAIN, "another 'peerpath profile' is at work here");
}
