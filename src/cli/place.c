/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "bundle/tree.h"
#include "base/banned.h"

/* TRIES: as often as a sweeper may meet a place before it was locked. */
enum { DRAWN = 6, TRIES = 16, SWEPT = 64 };

static const char *const names[] = {
	[PP_PLACE_SIMULATION] = "peerpath-simulation.",
	[PP_PLACE_NODES] = "peerpath-nodes.",
	[PP_PLACE_RECORD] = "peerpath-record.",
	[PP_PLACE_LOGS] = "peerpath-logs.",
};

/* Absolute: programs may change their directory. */
static int base(char ret[PATH_MAX], struct pp_error *err)
{
	const char *given = secure_getenv("TMPDIR");

	if (!given || !*given)
		given = "/tmp";
	if (realpath(given, ret))
		return 0;
	return pp_error_set(err, -errno, "TMPDIR: %.256s: %s", given, strerror(errno));
}

static bool is_name_of(enum pp_place_kind kind, const char *name)
{
	size_t n = strlen(names[kind]);

	return !strncmp(name, names[kind], n) && strlen(name) == n + DRAWN &&
	       !strchr(name + n, '/') && !strchr(name + n, '.');
}

static bool is_name(const char *name)
{
	for (unsigned int i = 0; i < PP_ARRAY_LEN(names); i++)
		if (is_name_of((enum pp_place_kind)i, name))
			return true;
	return false;
}

/* Does @name below @dir_fd still lead to what @fd is? */
static bool is_there(int dir_fd, const char *name, int fd)
{
	struct stat a, b;

	return !fstat(fd, &a) && !fstatat(dir_fd, name, &b, AT_SYMLINK_NOFOLLOW) &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/*
 * A sweeper locks exclusively before it removes, so after this the place is either whole and safe,
 * or gone. What is executed keeps the descriptor, hence the lock. False: gone.
 */
static bool hold(struct pp_place *p)
{
	p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	if (p->fd < 0)
		return errno != ENOENT;
	while (flock(p->fd, LOCK_SH)) {
		if (errno == EINTR)
			continue;
		/* No lock here, for a sweeper either. */
		pp_cleanup_close(&p->fd);
		p->fd = -1;
		return true;
	}
	if (is_there(AT_FDCWD, p->path, p->fd))
		return true;
	pp_cleanup_close(&p->fd);
	p->fd = -1;
	return false;
}

int pp_place_make(enum pp_place_kind kind, struct pp_place *ret, struct pp_error *err)
{
	struct pp_place p = {.fd = -1};
	char dir[PATH_MAX];
	int r = base(dir, err);

	if (r)
		return r;
	pp_place_sweep();
	for (int i = 0; i < TRIES; i++) {
		if ((size_t)snprintf(p.path, sizeof(p.path), "%s/%sXXXXXX", dir, names[kind]) >=
		    sizeof(p.path))
			return pp_error_set(err, -ENAMETOOLONG, "TMPDIR: the name is too long");
		if (!mkdtemp(p.path))
			return pp_error_set(err, -errno, "%s: %s", dir, strerror(errno));
		if (!hold(&p))
			continue;
		*ret = p;
		return 0;
	}
	return pp_error_set(err, -EBUSY, "%s: what is made there is removed", dir);
}

void pp_place_done(struct pp_place *p)
{
	if (!p->path[0])
		return;
	(void)pp_tree_remove(AT_FDCWD, p->path);
	if (p->fd >= 0)
		(void)close(p->fd);
	*p = (struct pp_place){.fd = -1};
}

bool pp_place_is(enum pp_place_kind kind, const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];
	struct pp_error err;
	size_t n;

	if (!slash || !is_name_of(kind, slash + 1) || base(dir, &err))
		return false;
	n = strlen(dir);
	return n == (size_t)(slash - path) && !memcmp(dir, path, n);
}

/* Whoever has it in use shares its lock. */
static void sweep_one(int dir_fd, const char *name)
{
	int PP_AUTO_CLOSE fd =
		openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || st.st_uid != geteuid() || flock(fd, LOCK_EX | LOCK_NB))
		return;
	if (is_there(dir_fd, name, fd))
		(void)pp_tree_remove(dir_fd, name);
}

void pp_place_sweep(void)
{
	char dir[PATH_MAX];
	unsigned int seen = 0;
	struct dirent *e;
	struct pp_error err;
	DIR *d = base(dir, &err) ? NULL : opendir(dir);

	if (!d)
		return;
	while (seen < SWEPT && (e = readdir(d))) {
		if (!is_name(e->d_name))
			continue;
		seen++;
		sweep_one(dirfd(d), e->d_name);
	}
	(void)closedir(d);
}
