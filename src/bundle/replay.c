/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bundle/bundle.h"
#include "base/banned.h"

/* 1, 0, or why nobody can tell. */
static int has_manifest(const char *dir)
{
	int PP_AUTO_CLOSE fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (!faccessat(fd, PP_MANIFEST_NAME, F_OK, AT_SYMLINK_NOFOLLOW))
		return 1;
	return errno == ENOENT ? 0 : -errno;
}

int pp_replay_open(const char *path, struct pp_source **ret, struct pp_error *err)
{
	struct pp_bundle *b = NULL;
	struct pp_source *s = NULL;
	struct stat st;
	pp_ns seen = 0;
	int r = 0;

	if (stat(path, &st))
		return pp_error_set(err, -errno, "replay '%.300s': %s", path,
				    pp_source_why(-errno));
	if (S_ISDIR(st.st_mode)) {
		r = has_manifest(path);
		if (r < 0)
			return pp_error_set(err, r, "replay '%.300s': %s", path, pp_source_why(r));
		if (!r)
			return pp_source_replay_dir(path, ret, err);
	}
	r = pp_bundle_open(path, &b, err);
	if (r)
		return pp_error_prefix(err, "replay");
	/* "unknown" of a bundle made from a bare tree is no time */
	(void)pp_clock_parse(pp_bundle_manifest(b)->created, &seen);
	r = pp_source_replay_record(pp_bundle_take_record(b), &s, err);
	pp_bundle_free(b);
	if (r)
		return r;
	pp_source_set_time(s, seen);
	r = pp_source_set_name(s, "replay", path);
	if (r) {
		pp_source_free(s);
		return pp_error_set(err, r, "out of memory");
	}
	*ret = s;
	return 0;
}
