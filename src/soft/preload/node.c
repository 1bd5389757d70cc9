/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded by `peerpath soft`: the files of a device that programs look at beside verbs.
 *
 *  - /dev/infiniband/uverbs-NAME: UCX takes no device without it; answers as /dev/null does.
 *  - /sys/class/infiniband/NAME/ports/1/gid_attrs/types/N: the version of a GID; without it UCX
 *    takes RoCE v1, and NCCL gives up where it must choose between IPv4 addresses.
 *  - With --sysfs all of /sys/class/infiniband (see path.h).
 *
 * Only for the names in PEERPATH_SOFT_DEVICES ("soft0:2,soft_lo:2", name and number of GIDs), and
 * only for these files. Everything else goes to libc, untouched. Part of no layer: it lives in
 * other people's processes, and has libc only.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "soft/preload/path.h"

#include "base/banned.h"

#define EXPORT	     __attribute__((visibility("default")))
#define NEXT(name)   ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define SYSFS_PREFIX "/sys/class/infiniband/"
#define TYPES	     "/ports/1/gid_attrs/types/"

static bool is_gid_type(const char *path)
{
	const char *name, *slash, *index;
	unsigned int gids, n = 0;

	if (!path || strncmp(path, SYSFS_PREFIX, strlen(SYSFS_PREFIX)) ||
	    secure_getenv("PEERPATH_SOFT_SYSFS"))
		return false;
	name = path + strlen(SYSFS_PREFIX);
	slash = strchr(name, '/');
	if (!slash || strncmp(slash, TYPES, strlen(TYPES)) ||
	    !soft_preload_ours(name, (size_t)(slash - name), &gids))
		return false;
	index = slash + strlen(TYPES);
	if (!*index || strlen(index) > 2)
		return false;
	for (; *index; index++) {
		if (*index < '0' || *index > '9')
			return false;
		n = n * 10 + (unsigned int)(*index - '0');
	}
	return n < gids;
}

static int open_gid_type(void)
{
	static const char text[] = "RoCE v2\n";
	int fd = memfd_create("gid-type", MFD_CLOEXEC);

	if (fd >= 0 && (write(fd, text, sizeof(text) - 1) != sizeof(text) - 1 ||
			lseek(fd, 0, SEEK_SET) != 0)) {
		close(fd);
		errno = EIO;
		return -1;
	}
	return fd;
}

static mode_t mode_of(int flags, va_list ap)
{
	/* O_TMPFILE holds the bit of O_DIRECTORY, with which no mode comes. */
	bool makes = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;

	return makes ? (mode_t)va_arg(ap, int) : 0;
}

/* A device's file is opened as what it is: no stand-in answers ioctl(). */
static const char *to_open(const char *path, char buf[PATH_MAX])
{
	return path && !strncmp(path, "/sys/", 5) ? soft_preload_path(path, buf) : path;
}

#define OPEN(name)                                                  \
	EXPORT int name(const char *path, int flags, ...)           \
	{                                                           \
		char buf[PATH_MAX];                                 \
		mode_t mode;                                        \
		va_list ap;                                         \
                                                                    \
		if (is_gid_type(path))                              \
			return open_gid_type();                     \
		va_start(ap, flags);                                \
		mode = mode_of(flags, ap);                          \
		va_end(ap);                                         \
		return NEXT(name)(to_open(path, buf), flags, mode); \
	}

OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                     \
	EXPORT int name(int dir, const char *path, int flags, ...)       \
	{                                                                \
		char buf[PATH_MAX];                                      \
		mode_t mode;                                             \
		va_list ap;                                              \
                                                                         \
		va_start(ap, flags);                                     \
		mode = mode_of(flags, ap);                               \
		va_end(ap);                                              \
		return NEXT(name)(dir, to_open(path, buf), flags, mode); \
	}

OPENAT(openat)
OPENAT(openat64)

/* What fortified programs call instead. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
char *__realpath_chk(const char *path, char *resolved, size_t size);
ssize_t __readlink_chk(const char *path, char *text, size_t len, size_t size);
ssize_t __readlinkat_chk(int dir, const char *path, char *text, size_t len, size_t size);
/* What programs of before glibc 2.33 call. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);

#define OPEN_2(name)                                                              \
	EXPORT int name(const char *path, int flags)                              \
	{                                                                         \
		char buf[PATH_MAX];                                               \
                                                                                  \
		return is_gid_type(path) ? open_gid_type()                        \
					 : NEXT(name)(to_open(path, buf), flags); \
	}

OPEN_2(__open_2)
OPEN_2(__open64_2)

/* One argument is a path: the rest goes on as it came. */
#define PATH_CALL(type, name, params, ...)      \
	EXPORT type name params                 \
	{                                       \
		char buf[PATH_MAX];             \
                                                \
		return NEXT(name)(__VA_ARGS__); \
	}
#define PATH soft_preload_path(path, buf)
#define SYS  to_open(path, buf)

PATH_CALL(int, __openat_2, (int dir, const char *path, int flags), dir, SYS, flags)
PATH_CALL(int, __openat64_2, (int dir, const char *path, int flags), dir, SYS, flags)
PATH_CALL(FILE *, fopen, (const char *path, const char *mode), SYS, mode)
PATH_CALL(FILE *, fopen64, (const char *path, const char *mode), SYS, mode)
PATH_CALL(DIR *, opendir, (const char *path), PATH)
PATH_CALL(int, scandir,
	  (const char *path, struct dirent ***list, int (*want)(const struct dirent *),
	   int (*order)(const struct dirent **, const struct dirent **)),
	  PATH, list, want, order)
PATH_CALL(int, scandir64,
	  (const char *path, struct dirent64 ***list, int (*want)(const struct dirent64 *),
	   int (*order)(const struct dirent64 **, const struct dirent64 **)),
	  PATH, list, want, order)
PATH_CALL(int, stat, (const char *restrict path, struct stat *restrict st), PATH, st)
PATH_CALL(int, stat64, (const char *restrict path, struct stat64 *restrict st), PATH, st)
PATH_CALL(int, lstat, (const char *restrict path, struct stat *restrict st), PATH, st)
PATH_CALL(int, lstat64, (const char *restrict path, struct stat64 *restrict st), PATH, st)
PATH_CALL(int, fstatat, (int dir, const char *restrict path, struct stat *restrict st, int flags),
	  dir, PATH, st, flags)
PATH_CALL(int, fstatat64,
	  (int dir, const char *restrict path, struct stat64 *restrict st, int flags), dir, PATH,
	  st, flags)
PATH_CALL(int, statx,
	  (int dir, const char *restrict path, int flags, unsigned int mask,
	   struct statx *restrict st),
	  dir, PATH, flags, mask, st)
PATH_CALL(int, __xstat, (int version, const char *path, struct stat *st), version, PATH, st)
PATH_CALL(int, __xstat64, (int version, const char *path, struct stat64 *st), version, PATH, st)
PATH_CALL(int, __lxstat, (int version, const char *path, struct stat *st), version, PATH, st)
PATH_CALL(int, __lxstat64, (int version, const char *path, struct stat64 *st), version, PATH, st)
PATH_CALL(int, access, (const char *path, int mode), PATH, mode)
PATH_CALL(int, faccessat, (int dir, const char *path, int mode, int flags), dir, PATH, mode, flags)
PATH_CALL(int, chdir, (const char *path), PATH)
PATH_CALL(ssize_t, readlink, (const char *restrict path, char *restrict text, size_t len), PATH,
	  text, len)
PATH_CALL(ssize_t, readlinkat,
	  (int dir, const char *restrict path, char *restrict text, size_t len), dir, PATH, text,
	  len)
PATH_CALL(ssize_t, __readlink_chk, (const char *path, char *text, size_t len, size_t size), PATH,
	  text, len, size)
PATH_CALL(ssize_t, __readlinkat_chk,
	  (int dir, const char *path, char *text, size_t len, size_t size), dir, PATH, text, len,
	  size)

/* ls asks for them, and takes "no such file" for the file. */
PATH_CALL(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t size), PATH,
	  name, value, size)
PATH_CALL(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t size), PATH,
	  name, value, size)

/* The answer is a path again. */
static char *answered(char *path)
{
	if (path)
		soft_preload_unpath(path);
	return path;
}

EXPORT char *realpath(const char *restrict path, char *restrict resolved)
{
	char buf[PATH_MAX];

	return answered(NEXT(realpath)(PATH, resolved));
}

EXPORT char *__realpath_chk(const char *path, char *resolved, size_t size)
{
	char buf[PATH_MAX];

	return answered(NEXT(__realpath_chk)(PATH, resolved, size));
}

EXPORT char *canonicalize_file_name(const char *path)
{
	char buf[PATH_MAX];

	return answered(NEXT(canonicalize_file_name)(PATH));
}
