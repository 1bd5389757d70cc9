/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/abi/witness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/banned.h"

void soft_witness_leave(void)
{
	const char *path = secure_getenv(SOFT_WITNESS);
	int saved = errno, fd;

	if (!path)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)close(fd);
	errno = saved;
}
