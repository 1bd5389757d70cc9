/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "bundle/load.h"
#include "bundle/zst.h"
#include "node/source.h"
#include "base/banned.h"

/* The bodies' bound, and the headers of as many members as are allowed. */
static const uint64_t STREAM_MAX = (uint64_t)768 << 20;

static int from_archive(int fd, struct pp_bundle *b, struct pp_error *err)
{
	struct pp_zst_reader *z = NULL;
	struct pp_tap tap;
	int r = pp_zst_reader_new(fd, STREAM_MAX, &z, err);

	if (r)
		return r;
	tap = pp_zst_tap(z);
	r = pp_ustar_read(&tap, pp_bundle_load, b, err);
	pp_zst_reader_free(z);
	return r;
}

/* A directory without a manifest is not read: it may be anybody's, and any size. */
static int from_dir(int fd, struct pp_bundle *b, struct pp_error *err)
{
	if (faccessat(fd, PP_MANIFEST_NAME, F_OK, AT_SYMLINK_NOFOLLOW) && errno == ENOENT)
		return pp_error_set(err, -EBADMSG, "no " PP_MANIFEST_NAME ": not a bundle");
	return pp_bundle_walk(fd, pp_bundle_load, b, err);
}

int pp_bundle_open_bytes(const char *name, const char *bytes, size_t len, struct pp_bundle **ret,
			 struct pp_error *err)
{
	int PP_AUTO_CLOSE fd = memfd_create("bundle", MFD_CLOEXEC);
	struct pp_bundle *b = NULL;
	int r = fd < 0 ? -errno : 0;

	r = r ? r : pp_fd_write(fd, bytes, len);
	if (!r && lseek(fd, 0, SEEK_SET))
		r = -errno;
	if (r)
		(void)pp_error_set(err, r, "no room for it");
	r = r ? r : pp_bundle_new(&b, err);
	r = r ? r : from_archive(fd, b, err);
	r = r ? r : pp_bundle_loaded(b, err);
	if (r) {
		pp_bundle_free(b);
		return pp_error_prefix(err, "'%.200s'", name);
	}
	*ret = b;
	return 0;
}

int pp_bundle_open(const char *path, struct pp_bundle **ret, struct pp_error *err)
{
	int PP_AUTO_CLOSE fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct pp_bundle *b = NULL;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st))
		return pp_error_set(err, -errno, "'%.300s': %s", path, pp_source_why(-errno));
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return pp_error_set(err, -EBADMSG, "'%.300s' is neither a file nor a directory",
				    path);
	r = pp_bundle_new(&b, err);
	if (!r)
		r = S_ISDIR(st.st_mode) ? from_dir(fd, b, err) : from_archive(fd, b, err);
	if (!r)
		r = pp_bundle_loaded(b, err);
	if (r) {
		pp_bundle_free(b);
		return pp_error_prefix(err, "'%.200s'", path);
	}
	*ret = b;
	return 0;
}
