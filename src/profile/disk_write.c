/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes below a root: each a step of its own. A file is whole under its name or not there: it is
 * written under another name, put on the disk, then renamed by the caller.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/disk_parent.h"
#include "base/banned.h"

static int step(const struct pp_disk *d, const char *what, const char *path)
{
	return d->step ? d->step(d->arg, what, path) : 0;
}

static int failed(int error, const char *what, const char *path, struct pp_error *err)
{
	char text[128];

	return error ? pp_error_set(err, error, "cannot %s %s: %s", what, path,
				    pp_errno_text(error, text, sizeof(text)))
		     : 0;
}

static int of(int result)
{
	return result ? -errno : 0;
}

static int write_all(const struct pp_disk *d, int fd, const char *path, const char *bytes,
		     size_t len)
{
	int r = 0;

	while (!r && len) {
		size_t part = d->chunk && d->chunk < len ? d->chunk : len;
		ssize_t n;

		r = step(d, "write", path);
		n = r ? 0 : write(fd, bytes, part);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes += n;
		len -= (size_t)n;
	}
	return r;
}

static int dress(const struct pp_disk *d, int fd, const char *path,
		 const struct pp_disk_state *state)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
				    {.tv_sec = state->mtime_s, .tv_nsec = state->mtime_ns}};
	struct stat st;
	int r = of(fstat(fd, &st));

	if (!r && ((state->uid != (uid_t)-1 && state->uid != st.st_uid) ||
		   (state->gid != (gid_t)-1 && state->gid != st.st_gid)))
		r = (r = step(d, "chown", path)) ? r : of(fchown(fd, state->uid, state->gid));
	if (!r)
		r = (r = step(d, "chmod", path)) ? r : of(fchmod(fd, state->mode));
	if (!r && (state->mtime_s || state->mtime_ns))
		r = of(futimens(fd, times));
	return r;
}

int pp_disk_create(const struct pp_disk *d, const char *path, const char *bytes, size_t len,
		   const struct pp_disk_state *state, struct pp_error *err)
{
	const char *name;
	int PP_AUTO_CLOSE dir = pp_disk_parent(d, path, &name);
	int PP_AUTO_CLOSE fd = -1;
	int r = dir < 0 ? dir : step(d, "create", path);

	if (!r && unlinkat(dir, name, 0) && errno != ENOENT)
		r = -errno;
	if (!r) {
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		r = fd < 0 ? -errno : 0;
	}
	r = r ? r : write_all(d, fd, path, bytes, len);
	r = r ? r : dress(d, fd, path, state);
	r = r ? r : step(d, "fsync", path);
	r = r ? r : of(fsync(fd));
	return failed(r, "write", path, err);
}

int pp_disk_sync(const struct pp_disk *d, const char *path, struct pp_error *err)
{
	const char *name;
	int PP_AUTO_CLOSE dir = pp_disk_parent(d, path, &name);
	int r = dir < 0 ? dir : step(d, "fsync-dir", path);

	/* Some file systems have no fsync of directories. */
	if (!r && fsync(dir) && errno != EINVAL)
		r = -errno;
	return failed(r, "put the directory on the disk of", path, err);
}

int pp_disk_mkdir(const struct pp_disk *d, const char *path, unsigned int mode,
		  struct pp_error *err)
{
	const char *name;
	int PP_AUTO_CLOSE dir = pp_disk_parent(d, path, &name);
	int PP_AUTO_CLOSE fd = -1;
	int r = dir < 0 ? dir : step(d, "mkdir", path);

	if (!r && mkdirat(dir, name, mode)) {
		r = errno == EEXIST ? 0 : -errno;
		return failed(r, "make", path, err);
	}
	if (!r) {
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? -errno : of(fchmod(fd, mode)); /* whatever the umask is */
	}
	r = failed(r, "make", path, err);
	return r ? r : pp_disk_sync(d, path, err);
}

int pp_disk_rename(const struct pp_disk *d, const char *from, const char *to, struct pp_error *err)
{
	const char *name, *target = strrchr(to, '/') + 1;
	int PP_AUTO_CLOSE dir = pp_disk_parent(d, from, &name);
	int r = dir < 0 ? dir : step(d, "rename", to);

	r = r ? r : of(renameat(dir, name, dir, target));
	return failed(r, "rename to", to, err);
}

int pp_disk_link(const struct pp_disk *d, const char *from, const char *to, struct pp_error *err)
{
	const char *name, *target = strrchr(to, '/') + 1;
	int PP_AUTO_CLOSE dir = pp_disk_parent(d, from, &name);
	int r = dir < 0 ? dir : step(d, "link", to);

	r = r ? r : of(linkat(dir, name, dir, target, 0));
	return failed(r, "link", to, err);
}

int pp_disk_unlink(const struct pp_disk *d, const char *path, struct pp_error *err)
{
	const char *name;
	int PP_AUTO_CLOSE dir = pp_disk_parent(d, path, &name);
	int r = dir < 0 ? dir : step(d, "unlink", path);

	r = r ? r : of(unlinkat(dir, name, 0));
	return r == -ENOENT ? 0 : failed(r, "remove", path, err);
}

int pp_disk_rmdir(const struct pp_disk *d, const char *path, struct pp_error *err)
{
	const char *name;
	int PP_AUTO_CLOSE dir = pp_disk_parent(d, path, &name);
	int r = dir < 0 ? dir : step(d, "rmdir", path);

	r = r ? r : of(unlinkat(dir, name, AT_REMOVEDIR));
	if (r == -ENOENT || r == -ENOTEMPTY || r == -EEXIST)
		return 0;
	return failed(r, "remove", path, err);
}
