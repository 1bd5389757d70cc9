/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tar archives: POSIX ustar with pax extended headers, of regular files, directories and symbolic
 * links; nothing else is written, and nothing else is accepted.
 *
 * The reader meets untrusted files: it refuses absolute names, "..", devices, hard links, sparse
 * files, wrong checksums, sizes over the limits, archives that are cut, and what follows the end.
 * It takes what GNU tar writes (ustar, pax, and GNU's own long names).
 */
#ifndef PP_BUNDLE_USTAR_H
#define PP_BUNDLE_USTAR_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"

enum { PP_MEMBER_PATH_MAX = 1100, PP_MEMBERS_MAX = 200000 };

static const uint64_t PP_MEMBER_BYTES_MAX = (uint64_t)64 << 20;
static const uint64_t PP_ARCHIVE_BYTES_MAX = (uint64_t)256 << 20;

enum pp_member_kind { PP_MEMBER_FILE, PP_MEMBER_LINK, PP_MEMBER_DIR };

struct pp_member {
	enum pp_member_kind kind;
	const char *path;   /* relative, without "./", "..", "//" and trailing '/' */
	const char *target; /* of a link, else NULL */
	const char *data;   /* of a file, @len bytes; else NULL */
	size_t len;
};

/* Where bytes go: 0 or a negative errno with a line in @err. */
struct pp_sink {
	int (*write)(void *arg, const void *bytes, size_t len, struct pp_error *err);
	void *arg;
};

/* Where bytes come from: *ret_len is 0 at the end, and may be less than @size before it. */
struct pp_tap {
	int (*read)(void *arg, void *buf, size_t size, size_t *ret_len, struct pp_error *err);
	void *arg;
};

/* Everything belongs to the owner only: 0600 and 0700, no names, no ids. */
int pp_ustar_put(const struct pp_sink *out, const struct pp_member *m, pp_ns mtime,
		 struct pp_error *err);
int pp_ustar_end(const struct pp_sink *out, struct pp_error *err);

/* Called for each member in the order of the archive; all is borrowed for the call. */
typedef int pp_member_handler(void *arg, const struct pp_member *m, struct pp_error *err);

/*
 * Reads to the end of @in. -EBADMSG damaged or refused, -EFBIG over a limit, -ENOMEM, or what
 * @in or @handler returned.
 */
int pp_ustar_read(const struct pp_tap *in, pp_member_handler *handler, void *arg,
		  struct pp_error *err);

/* Is it a member path as above, of printable UTF-8? */
int pp_member_path_check(const char *path, struct pp_error *err);

#endif
