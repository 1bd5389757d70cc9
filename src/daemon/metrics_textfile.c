/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/metrics.h"
#include "base/banned.h"

enum { MOST = 8 << 20, PATH = 4096 };

static int write_all(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

/* node_exporter reads "*.prom": the other name must not end so, nor be seen by a listing of it. */
static int other_name(const char *file, char ret[PATH])
{
	const char *slash = strrchr(file, '/');
	int dir = slash ? (int)(slash - file) + 1 : 0;

	return snprintf(ret, PATH, "%.*s.%s.new", dir, file, file + dir) < PATH ? 0 : -ENAMETOOLONG;
}

static int put(const char *other, const char *file, const struct pp_buf *text)
{
	/* A leftover of a monitor that was killed is removed: O_EXCL never follows a link. */
	int fd, r;

	(void)unlink(other);
	fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	r = write_all(fd, text->data, text->len);
	if (!r && fchmod(fd, 0644))
		r = -errno;
	if (close(fd) && !r)
		r = -errno;
	if (!r && rename(other, file))
		r = -errno;
	if (r)
		(void)unlink(other);
	return r;
}

int pp_metrics_textfile(const struct pp_state *s, const char *file, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(MOST);
	char other[PATH], why[128];
	int r = other_name(file, other);

	pp_metrics_write(s, PP_METRICS_PROMETHEUS, &text);
	if (!r)
		r = text.failed ? text.failed : put(other, file, &text);
	return r ? pp_error_set(err, r, "cannot write '%s': %s", file,
				pp_errno_text(r, why, sizeof(why)))
		 : 0;
}
