/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/teller.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/banned.h"

static int fail(const struct pp_teller *t, int error, struct pp_error *err)
{
	return pp_error_set(err, -error, "%s: %s", t->path, strerrordesc_np(error));
}

/* How each of our lines begins. */
static const char OURS[] = "{\"schema\":\"peerpath.signal/";

/* What begins at @at is the beginning of one of our lines. */
static bool is_ours(int fd, off_t at)
{
	char buf[sizeof(OURS) - 1];
	ssize_t n = pread(fd, buf, sizeof(buf), at);

	return n > 0 && !memcmp(buf, OURS, (size_t)n);
}

/*
 * The last line without its end. Of ours a kill left it: it is told again, whole. Anything else is
 * its owner's, and is ended before ours begins.
 */
static int cut_partial(const struct pp_teller *t)
{
	off_t end = lseek(t->fd, 0, SEEK_END), keep = end;
	char buf[4096];

	while (keep > 0) {
		size_t want = keep < (off_t)sizeof(buf) ? (size_t)keep : sizeof(buf);
		ssize_t n = pread(t->fd, buf, want, keep - (off_t)want);
		const char *nl = n == (ssize_t)want ? memrchr(buf, '\n', want) : NULL;

		if (n != (ssize_t)want)
			return n < 0 ? errno : EIO;
		keep -= (off_t)want;
		if (nl) {
			keep += nl - buf + 1;
			break;
		}
		if (end - keep > (1 << 20))
			break;
	}
	if (keep == end)
		return 0;
	if (is_ours(t->fd, keep))
		return ftruncate(t->fd, keep) ? errno : 0;
	return write(t->fd, "\n", 1) == 1 ? 0 : errno;
}

static bool is_file(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

/* A link to one of our own descriptors, which whoever started us chose. */
static bool is_given(const char *path)
{
	return !strcmp(path, "/dev/stdout") || !strcmp(path, "/dev/stderr") ||
	       !strncmp(path, "/dev/fd/", 8);
}

int pp_teller_open(const char *path, struct pp_teller *ret, struct pp_error *err)
{
	struct pp_teller t = {.path = path, .given = is_given(path)};
	int follow = t.given || geteuid() ? 0 : O_NOFOLLOW, error = 0;

	/* Without waiting: a pipe that nobody reads is an error, not a hanging monitor. */
	t.fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | follow,
		    0640);
	if (t.fd < 0 && errno == ELOOP && follow)
		return pp_error_set(err, -ELOOP,
				    "%s: a symbolic link, through which root writes no events: "
				    "name the file itself",
				    path);
	if (t.fd < 0)
		return fail(&t, errno, err);
	if (is_file(t.fd))
		error = cut_partial(&t);
	if (error) {
		(void)close(t.fd);
		return fail(&t, error, err);
	}
	*ret = t;
	return 0;
}

void pp_teller_close(struct pp_teller *t)
{
	if (t->fd >= 0)
		(void)close(t->fd);
	t->fd = -1;
}

/* The name leads to another file than ours, or to none: it was rotated, or removed. */
static bool is_moved(const struct pp_teller *t)
{
	struct stat ours, now;

	if (t->given || fstat(t->fd, &ours) || !S_ISREG(ours.st_mode))
		return false;
	if (stat(t->path, &now))
		return errno == ENOENT;
	return now.st_dev != ours.st_dev || now.st_ino != ours.st_ino;
}

int pp_teller_write(struct pp_teller *t, const char *line, struct pp_error *err)
{
	struct iovec parts[2] = {{(void *)(uintptr_t)line, strlen(line)},
				 {(void *)(uintptr_t) "\n", 1}};
	bool file;
	off_t end;
	ssize_t n;
	int error;

	if (is_moved(t)) {
		error = pp_teller_reopen(t, err);
		if (error)
			return error;
	}
	file = is_file(t->fd);
	end = file ? lseek(t->fd, 0, SEEK_END) : 0;
	n = writev(t->fd, parts, 2);
	error = n < 0 ? errno : ENOSPC;
	if (n == (ssize_t)(parts[0].iov_len + 1)) {
		if (!file || !fdatasync(t->fd))
			return 0;
		error = errno;
	}
	if (file && n != 0 && end >= 0 && ftruncate(t->fd, end))
		error = errno;
	return fail(t, error, err);
}

int pp_teller_reopen(struct pp_teller *t, struct pp_error *err)
{
	struct pp_teller fresh;
	int r = pp_teller_open(t->path, &fresh, err);

	if (r)
		return r;
	pp_teller_close(t);
	*t = fresh;
	return 0;
}
