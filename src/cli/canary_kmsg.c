/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/canary.h"
#include "node/kmsg.h"
#include "base/banned.h"

enum { RECORD = 8192, RECORDS = 100000 };

int pp_canary_kmsg_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		(void)lseek(fd, 0, SEEK_END);
	return fd;
}

void pp_canary_kmsg_end(int fd, char *ret, size_t size)
{
	char text[RECORD];

	*ret = '\0';
	if (fd < 0)
		return;
	/* One record a read; EPIPE: some were overwritten before they were read. */
	for (int i = 0; i < RECORDS && !*ret; i++) {
		ssize_t n = read(fd, text, sizeof(text));
		struct pp_kmsg k;

		if (n < 0 && errno != EPIPE)
			break;
		if (n > 0 && !pp_kmsg_parse(text, (size_t)n, &k) &&
		    pp_kmsg_classify(k.text) == PP_KMSG_XID)
			(void)snprintf(ret, size, "%.*s", (int)size - 1, k.text);
	}
	(void)close(fd);
}
