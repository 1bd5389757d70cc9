/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One front (bounds, text checks, recording) over two stores: a directory on disk, or a record in
 * memory. The stores differ only in how they open, list and follow links.
 */
#include "node/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"
#include "node/source_store.h"
#include "base/banned.h"

enum { MAX_KEPT = 1 << 20 };

enum pp_source_mode pp_source_mode(const struct pp_source *s)
{
	return s->mode;
}

int pp_source_root_fd(const struct pp_source *s)
{
	return s->store.root_fd;
}

bool pp_source_may_ask(const struct pp_source *s)
{
	return s->may_ask;
}

const char *pp_source_name(const struct pp_source *s)
{
	return s->name;
}

int pp_source_set_name(struct pp_source *s, const char *what, const char *path)
{
	char *name;

	if (asprintf(&name, "%s%s%s", what, *path ? " " : "", path) < 0)
		return -ENOMEM;
	free(s->name);
	s->name = name;
	return 0;
}

void pp_source_set_time(struct pp_source *s, pp_ns wall)
{
	s->time = wall;
}

pp_ns pp_source_time(const struct pp_source *s)
{
	return s->time;
}

void pp_source_set_deadline(struct pp_source *s, pp_ns end)
{
	s->deadline = end;
}

pp_ns pp_source_deadline(const struct pp_source *s)
{
	return s->deadline;
}

struct pp_helpers *pp_source_helpers(struct pp_source *s)
{
	return &s->helpers;
}

void pp_source_set_record(struct pp_source *s, struct pp_record *r)
{
	s->record = r;
	/* A copy of what is not whole is not whole either. */
	if (r && s->store.tree)
		pp_record_set_cut(r, pp_record_cut(s->store.tree));
}

bool pp_source_cut(const struct pp_source *s)
{
	return s->store.tree && pp_record_cut(s->store.tree);
}

struct pp_record *pp_source_record(const struct pp_source *s)
{
	return s->record;
}

/* Keeps what was read. A full record is cut (-EFBIG), not an error of the reading. */
static int keep(struct pp_source *s, enum pp_entry_kind kind, const char *path, const void *bytes,
		size_t len, int error)
{
	if (!s->record || error == -ENOENT || error == -ENOTDIR)
		return 0;
	return pp_record_put(s->record, error ? PP_ENTRY_ERROR : kind, path, bytes, len, error);
}

int pp_source_read(struct pp_source *s, const char *path, void *buf, size_t size, size_t *ret_len)
{
	size_t len = 0;
	int r = pp_path_normal(path) ? s->ops->read(&s->store, path, buf, size, &len) : -EINVAL;

	(void)keep(s, PP_ENTRY_FILE, path, buf, len, r);
	if (!r || r == -EFBIG)
		*ret_len = len;
	return r;
}

int pp_source_piece(struct pp_source *s, const char *path, size_t at, void *buf, size_t size,
		    size_t *ret_len)
{
	struct pp_stream in = {.fd = -1};
	int r = pp_path_normal(path) ? s->ops->open(&s->store, path, &in) : -EINVAL;
	ssize_t n = 0;

	if (r)
		return r;
	if (in.fd >= 0) {
		n = pread(in.fd, buf, size, (off_t)at);
		r = n < 0 ? -errno : 0;
	} else if (at < in.len) {
		n = (ssize_t)(size < in.len - at ? size : in.len - at);
		memcpy(buf, in.bytes + at, (size_t)n);
	}
	pp_cleanup_close(&in.fd);
	if (!r)
		*ret_len = (size_t)n;
	return r;
}

int pp_source_scan(struct pp_source *s, const char *path, const struct pp_scan *scan)
{
	struct pp_buf PP_AUTO_BUF kept = PP_BUF(MAX_KEPT);
	struct pp_stream in = {.fd = -1};
	const struct pp_entry *before;
	int r = pp_path_normal(path) ? s->ops->open(&s->store, path, &in) : -EINVAL;

	if (!r)
		r = pp_stream_scan(&in, scan, &kept);
	pp_cleanup_close(&in.fd);
	/* What was read whole says more than the pieces kept here. */
	before = s->record ? pp_record_get(s->record, path) : NULL;
	if (!before || before->kind != PP_ENTRY_FILE)
		(void)keep(s, PP_ENTRY_FILE, path, pp_buf_text(&kept), kept.len, r);
	return r;
}

int pp_source_text(struct pp_source *s, const char *path, char *buf, size_t size)
{
	size_t len = 0;
	char *start;
	int r = pp_source_read(s, path, buf, size - 1, &len);

	if (r)
		return r;
	if (!pp_is_text(buf, len))
		return -EBADMSG;
	buf[len] = '\0';
	start = pp_trim(buf);
	memmove(buf, start, strlen(start) + 1);
	return 0;
}

int pp_source_list(struct pp_source *s, const char *path, struct pp_names *ret)
{
	char child[PP_PATH_MAX];
	bool full = false;
	int r = pp_path_normal(path) ? s->ops->list(&s->store, path, ret) : -EINVAL;

	(void)keep(s, PP_ENTRY_DIR, path, NULL, 0, r);
	if (r || !s->record)
		return r;
	if (!pp_record_behind(s->record, path, child))
		(void)keep(s, PP_ENTRY_DIR, child, NULL, 0, 0);
	for (size_t i = 0; i < ret->n && !full; i++)
		if (!pp_path_join(path, ret->name[i], child))
			full = keep(s, PP_ENTRY_DIR, child, NULL, 0, 0) == -EFBIG;
	/* A listing that lost a name must not be taken for all that was there. */
	if (full)
		(void)keep(s, PP_ENTRY_DIR, path, NULL, 0, -ENODATA);
	return 0;
}

void pp_names_done(struct pp_names *names)
{
	free(names->name);
	free(names->block);
	*names = (struct pp_names){0};
}

int pp_source_link(struct pp_source *s, const char *path, char *buf, size_t size)
{
	int r = pp_path_normal(path) ? s->ops->link(&s->store, path, buf, size) : -EINVAL;

	/* "No link" is no error of the node: whatever stands there is recorded when it is read. */
	if (r != -EINVAL)
		(void)keep(s, PP_ENTRY_LINK, path, buf, r ? 0 : strlen(buf), r);
	return r;
}

int pp_source_real(struct pp_source *s, const char *path, char buf[PP_PATH_MAX])
{
	char target[PP_PATH_MAX], dir[PP_PATH_MAX];
	size_t len = strlen(path);
	int r = pp_source_link(s, path, target, sizeof(target));

	if (r == -EINVAL) { /* no link */
		if (len >= PP_PATH_MAX)
			return -ENAMETOOLONG;
		memcpy(buf, path, len + 1);
		return 0;
	}
	if (r)
		return r;
	memcpy(dir, path, len + 1);
	*strrchr(dir, '/') = '\0';
	return pp_path_join(dir, target, buf);
}

int pp_source_probe(struct pp_source *s, const char *path)
{
	int r = pp_path_normal(path) ? s->ops->probe(&s->store, path) : -EINVAL;

	/* A directory is the weakest entry: it gives way to whatever is read there. */
	if (r)
		(void)keep(s, PP_ENTRY_DIR, path, NULL, 0, r < 0 ? r : 0);
	return r;
}

bool pp_source_exists(struct pp_source *s, const char *path)
{
	int r = pp_source_probe(s, path);

	/* An error that was recorded was met at something that is there; not what a record lacks.
	 */
	return r > 0 || (r < 0 && r != -EINVAL && r != -ENODATA && s->mode == PP_SOURCE_REPLAY);
}

int pp_source_answer(struct pp_source *s, const char *name, char **ret, size_t *ret_len)
{
	return s->ops->answer(&s->store, name, ret, ret_len);
}

const char *pp_source_why(int error)
{
	switch (-error) {
	case 0:
		return "read";
	case ENOENT:
	case ENOTDIR:
		return "absent";
	case EACCES:
	case EPERM:
		return "permission denied";
	case EFBIG:
		return "longer than the limit";
	case EBADMSG:
		return "not text";
	case ELOOP:
		return "too many symbolic links";
	case EINVAL:
		return "not a regular file, or refused by its driver";
	case ENAMETOOLONG:
		return "path too long";
	case ENODATA:
		return "not in the recording (it was cut or scrubbed), or no data";
	case ERANGE:
		return "number out of range";
	default:
		return strerrordesc_np(-error) ? strerrordesc_np(-error) : "unreadable";
	}
}
