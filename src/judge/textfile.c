/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/banned.h"

static int refuse(const char *path, int code, struct pp_error *err)
{
	char text[128];

	return pp_error_set(err, code, "cannot read '%s': %s", path,
			    pp_errno_text(code, text, sizeof(text)));
}

int pp_textfile_read(const char *path, struct pp_buf *ret, struct pp_error *err)
{
	/* O_NONBLOCK: opening a FIFO must not wait for a writer. */
	int PP_AUTO_CLOSE fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st))
		return refuse(path, -errno, err);
	if (!S_ISREG(st.st_mode))
		return pp_error_set(err, -EINVAL, "cannot read '%s': not a regular file", path);
	r = pp_fd_read(fd, ret);
	return r ? refuse(path, r, err) : 0;
}
