/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded by `peerpath soft`: the two files of a device that programs look at beside verbs.
 *
 *  - /dev/infiniband/uverbs-NAME: UCX takes no device without it; answers as /dev/null does.
 *  - /sys/class/infiniband/NAME/ports/1/gid_attrs/types/N: the version of a GID; without it UCX
 *    takes RoCE v1, and NCCL gives up where it must choose between IPv4 addresses.
 *
 * Only for the names in PEERPATH_SOFT_DEVICES ("soft0:2,soft_lo:2", name and number of GIDs), and
 * only for these files. Everything else goes to libc, untouched. Part of no layer: it lives in
 * other people's processes, and has libc only.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"

#define EXPORT	     __attribute__((visibility("default")))
#define NEXT(name)   ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define DEV_PREFIX   "/dev/infiniband/uverbs-"
#define SYSFS_PREFIX "/sys/class/infiniband/"
#define TYPES	     "/ports/1/gid_attrs/types/"

/* Is [name, name+len) one of ours? @ret_gids: how many GIDs it has (one digit or two). */
static bool ours(const char *name, size_t len, unsigned int *ret_gids)
{
	const char *at = secure_getenv("PEERPATH_SOFT_DEVICES");

	while (at && *at) {
		const char *colon = strchr(at, ':');
		unsigned int n = 0;

		if (!colon)
			return false;
		if ((size_t)(colon - at) == len && !memcmp(at, name, len)) {
			for (const char *p = colon + 1; *p >= '0' && *p <= '9' && n < 100; p++)
				n = n * 10 + (unsigned int)(*p - '0');
			*ret_gids = n;
			return true;
		}
		at = strchr(colon, ',');
		at = at ? at + 1 : NULL;
	}
	return false;
}

static bool is_device_file(const char *path)
{
	unsigned int gids;

	return path && !strncmp(path, DEV_PREFIX, strlen(DEV_PREFIX)) &&
	       ours(path + strlen(DEV_PREFIX), strlen(path + strlen(DEV_PREFIX)), &gids);
}

static bool is_gid_type(const char *path)
{
	const char *name, *slash, *index;
	unsigned int gids, n = 0;

	if (!path || strncmp(path, SYSFS_PREFIX, strlen(SYSFS_PREFIX)))
		return false;
	name = path + strlen(SYSFS_PREFIX);
	slash = strchr(name, '/');
	if (!slash || strncmp(slash, TYPES, strlen(TYPES)) ||
	    !ours(name, (size_t)(slash - name), &gids))
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

static const char *stand_in(const char *path)
{
	return is_device_file(path) ? "/dev/null" : path;
}

EXPORT int stat(const char *restrict path, struct stat *restrict st)
{
	return NEXT(stat)(stand_in(path), st);
}

EXPORT int stat64(const char *restrict path, struct stat64 *restrict st)
{
	return NEXT(stat64)(stand_in(path), st);
}

EXPORT int access(const char *path, int mode)
{
	return NEXT(access)(stand_in(path), mode);
}

static mode_t mode_of(int flags, va_list ap)
{
	/* O_TMPFILE holds the bit of O_DIRECTORY, with which no mode comes. */
	bool makes = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;

	return makes ? (mode_t)va_arg(ap, int) : 0;
}

#define OPEN(name)                                        \
	EXPORT int name(const char *path, int flags, ...) \
	{                                                 \
		mode_t mode;                              \
		va_list ap;                               \
                                                          \
		if (is_gid_type(path))                    \
			return open_gid_type();           \
		va_start(ap, flags);                      \
		mode = mode_of(flags, ap);                \
		va_end(ap);                               \
		return NEXT(name)(path, flags, mode);     \
	}

OPEN(open)
OPEN(open64)

/* What fortified programs call instead. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);

EXPORT int __open_2(const char *path, int flags)
{
	return is_gid_type(path) ? open_gid_type() : NEXT(__open_2)(path, flags);
}

EXPORT int __open64_2(const char *path, int flags)
{
	return is_gid_type(path) ? open_gid_type() : NEXT(__open64_2)(path, flags);
}
