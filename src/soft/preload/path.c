/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/preload/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/banned.h"

#define DEV_PREFIX "/dev/infiniband/uverbs-"

bool soft_preload_ours(const char *name, size_t len, unsigned int *ret_gids)
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

	return !strncmp(path, DEV_PREFIX, strlen(DEV_PREFIX)) &&
	       soft_preload_ours(path + strlen(DEV_PREFIX), strlen(path + strlen(DEV_PREFIX)),
				 &gids);
}

/* A folder of the made /sys: the whole of it stands for the kernel's, or only what it has. */
static const struct {
	const char *path;
	bool whole;
} folders[] = {
	{"/sys/class/infiniband", true},
	{"/sys/class/infiniband_verbs", true},
	{"/sys/devices/virtual/infiniband", false},
	{"/sys/devices/virtual/infiniband_verbs", false},
	{"/sys/bus/pci/devices", false},
	{"/sys/devices/pci", false}, /* and a domain's number behind it */
};

/* 0: none of them; 1: where the made /sys has it; 2: always. */
static int in_folders(const char *path)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(folders); i++) {
		size_t len = strlen(folders[i].path);
		bool domain = i + 1 == PP_ARRAY_LEN(folders);

		if (!strncmp(path, folders[i].path, len) &&
		    (domain || path[len] == '/' || !path[len]))
			return folders[i].whole ? 2 : 1;
	}
	return 0;
}

/* The kernel's own answer: access() is one of those that are stood in for. */
static bool exists(const char *path)
{
	return syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0;
}

const char *soft_preload_path(const char *path, char buf[PATH_MAX])
{
	int kept = errno, in;
	const char *dir;
	size_t len, dir_len;

	if (!path)
		return path;
	if (is_device_file(path))
		return "/dev/null";
	in = in_folders(path);
	dir = in ? secure_getenv("PEERPATH_SOFT_SYSFS") : NULL;
	if (!dir)
		return path;
	dir_len = strlen(dir);
	len = strlen(path);
	if (dir_len + len >= PATH_MAX)
		return path;
	memcpy(buf, dir, dir_len);
	memcpy(buf + dir_len, path, len + 1);
	if (in == 1 && !exists(buf)) {
		errno = kept;
		return path;
	}
	errno = kept;
	return buf;
}

void soft_preload_unpath(char *path)
{
	const char *dir = secure_getenv("PEERPATH_SOFT_SYSFS");
	size_t len = dir ? strlen(dir) : 0;

	if (len && !strncmp(path, dir, len) && !strncmp(path + len, "/sys/", 5))
		memmove(path, path + len, strlen(path + len) + 1);
}
