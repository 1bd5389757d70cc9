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

static int say(const char *file, int r, struct pp_error *err)
{
	char text[128];

	if (r == -EEXIST)
		return pp_error_set(err, r, "'%.200s' exists; --force replaces it", file);
	return r ? pp_error_set(err, r, "cannot write '%s': %s", file,
				pp_errno_text(r, text, sizeof(text)))
		 : 0;
}

/* The name that is written first; malloc'ed. */
static int name_beside(const char *file, char **ret)
{
	if (asprintf(ret, "%s.XXXXXX", file) >= 0)
		return 0;
	*ret = NULL;
	return -ENOMEM;
}

int pp_output_check(const char *file, bool force, struct pp_error *err)
{
	char *PP_AUTO_FREE temporary = NULL;
	int fd, r;

	if (!strcmp(file, "-"))
		return 0;
	r = refuse(file, force);
	if (!r)
		r = name_beside(file, &temporary);
	if (!r) {
		fd = mkostemp(temporary, O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
		if (fd >= 0) {
			(void)close(fd);
			(void)unlink(temporary);
		}
	}
	return say(file, r, err);
}

int pp_output_write(const char *file, const struct pp_buf *content, bool force,
		    struct pp_error *err)
{
	char *PP_AUTO_FREE temporary = NULL;
	int r;

	if (!strcmp(file, "-"))
		return say(file, write_all(STDOUT_FILENO, content), err);
	r = refuse(file, force);
	if (!r)
		r = name_beside(file, &temporary);
	if (!r)
		r = write_beside(temporary, file, content);
	return say(file, r, err);
}
