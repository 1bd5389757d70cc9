/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader. Extended headers (pax 'x', GNU 'L' and 'K') apply to the one member that follows.
 * Bodies are read whole into one buffer that is used again, so memory is bounded by the largest
 * member; the sum of all is bounded too.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "bundle/ustar.h"
#include "bundle/ustar_header.h"
#include "base/banned.h"

enum { EXTENDED_MAX = 64 << 10 };

struct reader {
	const struct pp_tap *in;
	struct pp_error *err;
	struct pp_buf body, path, target; /* path, target: of an extended header, len 0 none */
	uint64_t total;			  /* bytes of all bodies */
	size_t members;
	bool extended; /* an extended header waits for its member */
};

/* Exactly @len bytes; what ends early is a cut archive. */
static int take(struct reader *r, void *buf, size_t len)
{
	size_t done = 0, n = 0;
	int e;

	while (done < len) {
		e = r->in->read(r->in->arg, (char *)buf + done, len - done, &n, r->err);
		if (e)
			return e;
		if (!n)
			return pp_error_set(r->err, -EBADMSG, "cut: it ends after %zu of its files",
					    r->members);
		done += n;
	}
	return 0;
}

static bool all_zero(const void *bytes, size_t len)
{
	const char *p = bytes;

	return !len || (!p[0] && !memcmp(p, p + 1, len - 1));
}

/* Eleven octal digits at most, ended by NUL or blank. GNU's binary form means 8 GiB and more. */
static int octal(const char *field, size_t size, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;

	while (i < size && field[i] == ' ')
		i++;
	if (i == size || field[i] < '0' || field[i] > '7')
		return -EBADMSG;
	for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
		v = v * 8 + (uint64_t)(field[i] - '0');
	for (; i < size; i++)
		if (field[i] != ' ' && field[i] != '\0')
			return -EBADMSG;
	*ret = v;
	return 0;
}

static int check_header(struct reader *r, const struct pp_tar_header *h, uint64_t *ret_size)
{
	bool posix = !memcmp(h->magic, "ustar", sizeof(h->magic)) && !memcmp(h->version, "00", 2);
	bool gnu = !memcmp(h->magic, "ustar ", sizeof(h->magic)) && !memcmp(h->version, " ", 2);
	uint64_t sum;

	if (!posix && !gnu)
		return pp_error_set(r->err, -EBADMSG,
				    "no tar header where one is due (after %zu "
				    "files)",
				    r->members);
	if (octal(h->checksum, sizeof(h->checksum), &sum) || sum != pp_tar_checksum(h))
		return pp_error_set(r->err, -EBADMSG, "damaged tar header (after %zu files)",
				    r->members);
	if ((unsigned char)h->size[0] & 0x80)
		return pp_error_set(r->err, -EFBIG, "a member of 8 GiB or more: refused");
	if (octal(h->size, sizeof(h->size), ret_size))
		return pp_error_set(r->err, -EBADMSG, "damaged size field (after %zu files)",
				    r->members);
	if (gnu && h->prefix[0] && h->type != PP_TAR_GNU_NAME && h->type != PP_TAR_GNU_TARGET)
		return pp_error_set(r->err, -EBADMSG, "old GNU header fields: refused");
	return 0;
}

static int read_body(struct reader *r, uint64_t size, uint64_t max)
{
	char part[4096];
	uint64_t padded;
	size_t n;
	int e;

	if (size > max)
		return pp_error_set(r->err, -EFBIG, "a member of %" PRIu64 " bytes: refused", size);
	r->total += size;
	if (r->total > PP_ARCHIVE_BYTES_MAX)
		return pp_error_set(r->err, -EFBIG, "more than %" PRIu64 " MiB in all: refused",
				    PP_ARCHIVE_BYTES_MAX >> 20);
	pp_buf_reset(&r->body);
	padded = (size + PP_TAR_BLOCK - 1) / PP_TAR_BLOCK * PP_TAR_BLOCK;
	while (padded) {
		n = padded < sizeof(part) ? (size_t)padded : sizeof(part);
		e = take(r, part, n);
		if (e)
			return e;
		pp_buf_add(&r->body, part, n);
		padded -= n;
	}
	pp_buf_add(&r->body, "", 0);
	if (r->body.failed)
		return pp_error_set(r->err, r->body.failed, "no memory for a member");
	r->body.len = (size_t)size;
	r->body.data[size] = '\0';
	return 0;
}

/* One value of an extended header: set once, no NUL inside, not empty. */
static int extend(struct reader *r, struct pp_buf *to, const char *value, size_t len)
{
	if (to->len || !len || memchr(value, '\0', len))
		return pp_error_set(r->err, -EBADMSG, "damaged extended header");
	pp_buf_add(to, value, len);
	if (to->failed)
		return pp_error_set(r->err, -EFBIG, "a name that is too long");
	return 0;
}

static int pax_value(struct reader *r, bool global, const char *key, const char *value, size_t len)
{
	bool path = !strcmp(key, "path"), target = !strcmp(key, "linkpath");

	if (!strcmp(key, "size") || !strncmp(key, "GNU.sparse", 10) || (global && (path || target)))
		return pp_error_set(r->err, -EBADMSG, "extended header '%.40s': refused", key);
	if (path || target)
		return extend(r, path ? &r->path : &r->target, value, len);
	return 0; /* times, owners, attributes: nothing here uses them */
}

/* Records "LEN KEY=VALUE\n"; LEN counts the whole record. */
static int pax(struct reader *r, bool global)
{
	char *p = r->body.data, *end = p + r->body.len, *key, *value, *last;
	uint64_t len;
	int e;

	while (p < end) {
		key = memchr(p, ' ', (size_t)(end - p));
		if (!key || key == p || key - p > 6)
			break;
		*key++ = '\0';
		if (pp_parse_u64(p, 5, (uint64_t)(end - p), &len))
			break;
		last = p + len - 1;
		value = key < last ? memchr(key, '=', (size_t)(last - key)) : NULL;
		if (!value || *last != '\n' || memchr(key, '\0', (size_t)(value - key)))
			break;
		*value++ = '\0';
		e = pax_value(r, global, key, value, (size_t)(last - value));
		if (e)
			return e;
		p += len;
	}
	return p == end ? 0 : pp_error_set(r->err, -EBADMSG, "damaged extended header");
}

/* GNU's long names end with one NUL that the size counts. */
static int gnu_long(struct reader *r, struct pp_buf *to)
{
	size_t len = r->body.len;

	if (!len || r->body.data[len - 1])
		return pp_error_set(r->err, -EBADMSG, "damaged long name");
	return extend(r, to, r->body.data, len - 1);
}

static int extended_header(struct reader *r, const struct pp_tar_header *h, uint64_t size)
{
	int e = read_body(r, size, EXTENDED_MAX);

	if (e)
		return e;
	if (++r->members > PP_MEMBERS_MAX)
		return pp_error_set(r->err, -EFBIG, "more than %d files: refused", PP_MEMBERS_MAX);
	if (h->type == PP_TAR_PAX_GLOBAL)
		return pax(r, true);
	r->extended = true;
	if (h->type == PP_TAR_GNU_NAME)
		return gnu_long(r, &r->path);
	if (h->type == PP_TAR_GNU_TARGET)
		return gnu_long(r, &r->target);
	return pax(r, false);
}

/* The member's name: from the extended header, or prefix/name. */
static int name_of(struct reader *r, const struct pp_tar_header *h, char *path, size_t size)
{
	const char *name = path;
	size_t len;
	int n;

	if (r->path.len)
		n = snprintf(path, size, "%s", r->path.data);
	else if (h->prefix[0] && h->magic[5] == '\0')
		n = snprintf(path, size, "%.155s/%.100s", h->prefix, h->name);
	else
		n = snprintf(path, size, "%.100s", h->name);
	if (n < 0 || (size_t)n >= size)
		return pp_error_set(r->err, -EFBIG, "a name that is too long");
	while (name[0] == '.' && name[1] == '/')
		name += 2;
	memmove(path, name, strlen(name) + 1);
	len = strlen(path);
	if (h->type == PP_TAR_DIR && len > 1 && path[len - 1] == '/')
		path[len - 1] = '\0';
	if (h->type == PP_TAR_DIR && (!strcmp(path, ".") || !*path)) {
		path[0] = '\0';
		return 0;
	}
	return pp_member_path_check(path, r->err);
}

static int member(struct reader *r, const struct pp_tar_header *h, uint64_t size,
		  pp_member_handler *handler, void *arg)
{
	char path[PP_MEMBER_PATH_MAX + 3], target[sizeof(h->target) + 1];
	struct pp_member m = {.path = path};
	int e = name_of(r, h, path, sizeof(path));

	if (e)
		return e;
	if (++r->members > PP_MEMBERS_MAX)
		return pp_error_set(r->err, -EFBIG, "more than %d files: refused", PP_MEMBERS_MAX);
	switch (h->type) {
	case PP_TAR_FILE:
	case PP_TAR_FILE_OLD:
		m.kind = PP_MEMBER_FILE;
		e = read_body(r, size, PP_MEMBER_BYTES_MAX);
		if (e)
			return e;
		m.data = r->body.data;
		m.len = r->body.len;
		break;
	case PP_TAR_LINK:
		(void)snprintf(target, sizeof(target), "%.100s", h->target);
		m.kind = PP_MEMBER_LINK;
		m.target = r->target.len ? r->target.data : target;
		if (size || !*m.target)
			return pp_error_set(r->err, -EBADMSG, "damaged link '%.120s'", path);
		break;
	case PP_TAR_DIR:
		m.kind = PP_MEMBER_DIR;
		if (size)
			return pp_error_set(r->err, -EBADMSG, "damaged directory '%.120s'", path);
		break;
	default:
		return pp_error_set(r->err, -EBADMSG,
				    "'%.120s' is no file, directory or symbolic link: refused",
				    path);
	}
	e = *path ? handler(arg, &m, r->err) : 0;
	pp_buf_reset(&r->path);
	pp_buf_reset(&r->target);
	r->extended = false;
	return e;
}

static bool is_extended(char type)
{
	return type == PP_TAR_PAX || type == PP_TAR_PAX_GLOBAL || type == PP_TAR_GNU_NAME ||
	       type == PP_TAR_GNU_TARGET;
}

/* A second block of zeros, then nothing but zeros. */
static int end_of_archive(struct reader *r)
{
	char block[PP_TAR_BLOCK];
	size_t n = 0;
	int e;

	if (r->extended)
		return pp_error_set(r->err, -EBADMSG, "cut: an extended header without its file");
	e = take(r, block, sizeof(block));
	n = sizeof(block);
	while (!e && n) {
		if (!all_zero(block, n))
			return pp_error_set(r->err, -EBADMSG, "data behind the end of the archive");
		e = r->in->read(r->in->arg, block, sizeof(block), &n, r->err);
	}
	return e;
}

int pp_ustar_read(const struct pp_tap *in, pp_member_handler *handler, void *arg,
		  struct pp_error *err)
{
	struct reader r = {.in = in,
			   .err = err,
			   .body = PP_BUF((size_t)PP_MEMBER_BYTES_MAX + PP_TAR_BLOCK),
			   .path = PP_BUF(PP_MEMBER_PATH_MAX + 2),
			   .target = PP_BUF(PP_MEMBER_PATH_MAX)};
	struct pp_tar_header h;
	uint64_t size = 0;
	int e;

	for (;;) {
		e = take(&r, &h, sizeof(h));
		if (!e && all_zero(&h, sizeof(h))) {
			e = end_of_archive(&r);
			break;
		}
		if (!e)
			e = check_header(&r, &h, &size);
		if (!e)
			e = is_extended(h.type) ? extended_header(&r, &h, size)
						: member(&r, &h, size, handler, arg);
		if (e)
			break;
	}
	pp_buf_done(&r.body);
	pp_buf_done(&r.path);
	pp_buf_done(&r.target);
	return e;
}
