/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"

static int write_all(int fd, const struct pp_buf *b)
{
	size_t done = 0;
	ssize_t n;

	while (done < b->len) {
		n = write(fd, b->data + done, b->len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

static int refuse(const char *file, bool force)
{
	struct stat st;

	if (stat(file, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENOTSUP;
	return force ? 0 : -EEXIST;
}

static int write_beside(char *temporary, const char *file, const struct pp_buf *content)
{
	mode_t mask = umask(0);
	int fd, r;

	(void)umask(mask);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = write_all(fd, content);
	/* mkostemp() gives 0600; the file gets what open(2) would have given it. */
	if (!r && (fchmod(fd, 0666 & ~mask) || fsync(fd)))
		r = -errno;
	if (close(fd) && !r)
		r = -errno;
	if (!r && rename(temporary, file))
		r = -errno;
	if (r)
		(void)unlink(temporary);
	return r;
}

int pp_output_write(const char *file, const struct pp_buf *content, bool force,
		    struct pp_error *err)
{
	char *PP_AUTO_FREE temporary = NULL;
	char text[128];
	int r;

	if (!strcmp(file, "-")) {
		r = write_all(STDOUT_FILENO, content);
	} else {
		r = refuse(file, force);
		if (!r && asprintf(&temporary, "%s.XXXXXX", file) < 0) {
			temporary = NULL;
			r = -ENOMEM;
		}
		if (!r)
			r = write_beside(temporary, file, content);
	}
	if (r == -EEXIST)
		return pp_error_set(err, r, "'%.200s' exists; --force replaces it", file);
	return r ? pp_error_set(err, r, "cannot write '%s': %s", file,
				pp_errno_text(r, text, sizeof(text)))
		 : 0;
}
