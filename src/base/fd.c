/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <errno.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/banned.h"

int pp_fd_write(int fd, const void *bytes, size_t len)
{
	const char *next = bytes;

	while (len) {
		ssize_t n = write(fd, next, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		next += n;
		len -= (size_t)n;
	}
	return 0;
}

int pp_fd_read(int fd, struct pp_buf *to)
{
	char part[16384];
	ssize_t n;

	while ((n = read(fd, part, sizeof(part)))) {
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			pp_buf_add(to, part, (size_t)n);
		if (to->failed)
			return to->failed;
	}
	return 0;
}
