/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer, and the 512-byte header that both directions share. A name or a target of more than
 * 100 bytes is written as a pax record and cut in the header: no use is made of ustar's prefix.
 */
#include "bundle/ustar.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "bundle/ustar_header.h"
#include "base/banned.h"

static const char zeros[PP_TAR_BLOCK];

unsigned int pp_tar_checksum(const struct pp_tar_header *h)
{
	const unsigned char *p = (const unsigned char *)h;
	unsigned int sum = 0;

	for (size_t i = 0; i < sizeof(*h); i++) {
		bool inside = i >= offsetof(struct pp_tar_header, checksum) &&
			      i < offsetof(struct pp_tar_header, type);

		sum += inside ? ' ' : p[i];
	}
	return sum;
}

int pp_member_path_check(const char *path, struct pp_error *err)
{
	size_t len = strnlen(path, PP_MEMBER_PATH_MAX), n;
	const char *what = NULL;

	if (!len)
		what = "an empty name";
	else if (len == PP_MEMBER_PATH_MAX)
		what = "a name that is too long";
	else if (path[0] == '/')
		what = "an absolute name";
	else if (!pp_is_text(path, len) || strpbrk(path, "\n\t\r"))
		what = "a name with control bytes";
	for (const char *p = path; !what && p; p = p[n] ? p + n + 1 : NULL) {
		n = strcspn(p, "/");
		if (n == 0 || (n == 1 && p[0] == '.'))
			what = "a name that is not normalised";
		else if (n == 2 && p[0] == '.' && p[1] == '.')
			what = "a name with '..'";
	}
	if (!what)
		return 0;
	(void)pp_error_set(err, -EBADMSG, "%s: '%.120s'", what, path);
	pp_sanitize(err->text, false);
	return -EBADMSG;
}

static void fill(struct pp_tar_header *h, char type, const char *name, const char *target,
		 size_t size, pp_ns mtime)
{
	char checksum[sizeof(h->checksum) + 1];
	char mode[] = "0000600";

	if (type == PP_TAR_DIR)
		mode[4] = '7';
	memset(h, 0, sizeof(*h));
	memcpy(h->name, name, strnlen(name, sizeof(h->name)));
	if (target)
		memcpy(h->target, target, strnlen(target, sizeof(h->target)));
	memcpy(h->mode, mode, sizeof(mode));
	memcpy(h->uid, "0000000", sizeof(h->uid));
	memcpy(h->gid, "0000000", sizeof(h->gid));
	(void)snprintf(h->size, sizeof(h->size), "%011zo", size);
	if (mtime > 0)
		(void)snprintf(h->mtime, sizeof(h->mtime), "%011" PRIo64,
			       (uint64_t)(mtime / PP_SECOND) & PP_TAR_OCTAL_MAX);
	memcpy(h->magic, "ustar", sizeof(h->magic));
	memcpy(h->version, "00", sizeof(h->version));
	h->type = type;
	(void)snprintf(checksum, sizeof(checksum), "%06o", pp_tar_checksum(h) & 0777777);
	memcpy(h->checksum, checksum, 7);
	h->checksum[7] = ' ';
}

static int body(const struct pp_sink *out, const char *data, size_t len, struct pp_error *err)
{
	size_t pad = (PP_TAR_BLOCK - len % PP_TAR_BLOCK) % PP_TAR_BLOCK;
	int r = len ? out->write(out->arg, data, len, err) : 0;

	return !r && pad ? out->write(out->arg, zeros, pad, err) : r;
}

/* "25 path=...\n": the length counts itself. */
static void pax_record(struct pp_buf *b, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3, total = rest + 1, digits;

	do {
		digits = total;
		total = rest + (size_t)snprintf(NULL, 0, "%zu", digits);
	} while (total != digits);
	pp_buf_printf(b, "%zu %s=%s\n", total, key, value);
}

static int put_long(const struct pp_sink *out, const char *path, const char *target, pp_ns mtime,
		    struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF records = PP_BUF(4 * PP_MEMBER_PATH_MAX);
	struct pp_tar_header h;
	int r;

	if (strlen(path) > sizeof(h.name))
		pax_record(&records, "path", path);
	if (target && strlen(target) > sizeof(h.target))
		pax_record(&records, "linkpath", target);
	if (records.failed)
		return pp_error_set(err, records.failed, "no memory for a long name");
	if (!records.len)
		return 0;
	fill(&h, PP_TAR_PAX, "PaxHeaders", NULL, records.len, mtime);
	r = out->write(out->arg, &h, sizeof(h), err);
	return r ? r : body(out, records.data, records.len, err);
}

int pp_ustar_put(const struct pp_sink *out, const struct pp_member *m, pp_ns mtime,
		 struct pp_error *err)
{
	static const char types[] = {[PP_MEMBER_FILE] = PP_TAR_FILE,
				     [PP_MEMBER_LINK] = PP_TAR_LINK,
				     [PP_MEMBER_DIR] = PP_TAR_DIR};
	char path[PP_MEMBER_PATH_MAX + 1];
	struct pp_tar_header h;
	size_t len = m->kind == PP_MEMBER_FILE ? m->len : 0;
	int r = pp_member_path_check(m->path, err);

	if (r)
		return r;
	if (len > PP_MEMBER_BYTES_MAX)
		return pp_error_set(err, -EFBIG, "%s: larger than %" PRIu64 " MiB", m->path,
				    PP_MEMBER_BYTES_MAX >> 20);
	(void)snprintf(path, sizeof(path), "%s%s", m->path, m->kind == PP_MEMBER_DIR ? "/" : "");
	r = put_long(out, path, m->target, mtime, err);
	if (r)
		return r;
	fill(&h, types[m->kind], path, m->target, len, mtime);
	r = out->write(out->arg, &h, sizeof(h), err);
	return r ? r : body(out, m->data, len, err);
}

int pp_ustar_end(const struct pp_sink *out, struct pp_error *err)
{
	int r = out->write(out->arg, zeros, sizeof(zeros), err);

	return r ? r : out->write(out->arg, zeros, sizeof(zeros), err);
}
