/* SPDX-License-Identifier: Apache-2.0 */
#include "base/compiler.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/banned.h"

void pp_cleanup_free(void *ptr_to_ptr)
{
	int saved = errno;

	free(*(void **)ptr_to_ptr);
	errno = saved;
}

void pp_cleanup_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	errno = saved;
}
