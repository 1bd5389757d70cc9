/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two sysfs helpers that librdmacm borrows from libibverbs.
 */
#include "soft/abi/export.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/banned.h"

const char *ibv_get_sysfs_path(void)
{
	/* The variable is rdma-core's; a set-user-ID program must not follow it. */
	const char *path = secure_getenv("SYSFS_PATH");

	return path && *path ? path : "/sys";
}

/* Returns the length without the closing newline, or -1. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[512];
	ssize_t len;
	int n = snprintf(path, sizeof(path), "%s/%s", dir, file);

	if (n < 0 || (size_t)n >= sizeof(path) || !size) {
		errno = EINVAL;
		return -1;
	}
	PP_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	len = read(fd, buf, size);
	if (len < 0)
		return -1;
	if (len && buf[len - 1] == '\n')
		buf[--len] = '\0';
	else if ((size_t)len < size)
		buf[len] = '\0';
	else {
		errno = EOVERFLOW;
		return -1;
	}
	return (int)len;
}
