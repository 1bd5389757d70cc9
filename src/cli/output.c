/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/banned.h"

static int refuse(const char *file, bool force)
{
	struct stat st;

	if (stat(file, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENOTSUP; /* behind a link, too */
	return force ? 0 : -EEXIST;
}

/* What open(2) would give a new file. */
static mode_t usual_mode(void)
{
	mode_t mask = umask(0);

	(void)umask(mask);
	return 0666 & ~mask;
}

static int say(const char *file, int r, struct pp_error *err)
{
	char text[128];

	if (r == -EEXIST)
		return pp_error_set(err, r, "'%.200s' exists; --force replaces it", file);
	return r ? pp_error_set(err, r, "cannot write '%s': %s", file,
				r == -ENOTSUP ? "no regular file"
					      : pp_errno_text(r, text, sizeof(text)))
		 : 0;
}

int pp_output_check(const char *file, bool force, struct pp_error *err)
{
	int r;

	if (!strcmp(file, "-"))
		return 0;
	r = refuse(file, force);
	return say(file, r ? r : pp_file_replaceable(file), err);
}

int pp_output_write(const char *file, const struct pp_buf *content, bool force,
		    struct pp_error *err)
{
	int r;

	if (!strcmp(file, "-"))
		return say(file, pp_fd_write(STDOUT_FILENO, content->data, content->len), err);
	r = refuse(file, force);
	if (!r)
		r = pp_file_replace(file, content->data, content->len, usual_mode(), 0);
	return say(file, r, err);
}
