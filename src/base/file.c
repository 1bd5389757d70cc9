/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/fd.h"
#include "base/banned.h"

/* Of the name that is kept in the hidden one: it may be as long as a name gets. */
enum { NAME_KEPT = 200 };

/* Length of what stands before the name. */
static int folder_len(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash ? (int)(slash + 1 - file) : 0;
}

/* @ret is malloc'ed. */
static int hidden_name(const char *file, unsigned int how, char **ret)
{
	int len = folder_len(file);
	bool alone = how & PP_REPLACE_ALONE;

	if (!file[len])
		return *file ? -EISDIR : -ENOENT;
	/* A cut name could be that of another file: only a name that is free may be cut. */
	if (asprintf(ret, "%.*s.%.*s.%s", len, file, alone ? (int)strlen(file + len) : NAME_KEPT,
		     file + len, alone ? "new" : "XXXXXX") >= 0)
		return 0;
	*ret = NULL;
	return -ENOMEM;
}

/* A rename would put a file in the place of a device or a pipe, for all who use it. */
static int look_before(const char *file)
{
	struct stat there;

	if (lstat(file, &there))
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(there.st_mode))
		return -EISDIR;
	return S_ISREG(there.st_mode) || S_ISLNK(there.st_mode) ? 0 : -ENOTSUP;
}

static int create(char *hidden, unsigned int how)
{
	int fd;

	if (how & PP_REPLACE_ALONE) {
		(void)unlink(hidden);
		fd = open(hidden, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	} else {
		fd = mkostemp(hidden, O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

/* -EACCES: one may write into it, but not open it; its sync is left to the system then. */
static int open_folder(const char *file)
{
	int len = folder_len(file), fd;
	char *PP_AUTO_FREE folder = len ? strndup(file, (size_t)len) : strdup(".");

	if (!folder)
		return -ENOMEM;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Closes @fd. */
static int fill(int fd, const void *bytes, size_t len, mode_t mode, unsigned int how)
{
	int r = pp_fd_write(fd, bytes, len);

	if (!r && (fchmod(fd, mode) || (!(how & PP_REPLACE_CACHED) && fsync(fd))))
		r = -errno;
	if (close(fd) && !r)
		r = -errno;
	return r;
}

int pp_file_replace(const char *file, const void *bytes, size_t len, mode_t mode, unsigned int how)
{
	char *PP_AUTO_FREE hidden = NULL;
	int PP_AUTO_CLOSE folder = -1;
	int r = hidden_name(file, how, &hidden), fd;

	r = r ? r : look_before(file);
	if (!r && !(how & PP_REPLACE_CACHED)) {
		folder = open_folder(file);
		r = folder < 0 && folder != -EACCES ? folder : 0;
	}
	if (r)
		return r;
	fd = create(hidden, how);
	if (fd < 0)
		return fd;
	r = fill(fd, bytes, len, mode, how);
	if (!r && rename(hidden, file))
		r = -errno;
	if (r) {
		(void)unlink(hidden);
		return r;
	}
	/* Some file systems have no fsync of folders. */
	return folder >= 0 && fsync(folder) && errno != EINVAL ? -errno : 0;
}

int pp_file_replaceable(const char *file)
{
	char *PP_AUTO_FREE hidden = NULL;
	int r = hidden_name(file, 0, &hidden), fd;

	r = r ? r : look_before(file);
	if (r)
		return r;
	fd = create(hidden, 0);
	if (fd < 0)
		return fd;
	(void)close(fd);
	(void)unlink(hidden);
	return 0;
}
