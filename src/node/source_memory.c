/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory store: a loaded archive. Links are followed by hand, component by component, with a
 * bound on their number; nothing outside the record exists, unless the record was cut.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/parse.h"
#include "node/source_store.h"
#include "base/banned.h"

enum { MAX_LINKS = 40, MAX_NAMES = 65536, MAX_NAME_BYTES = 8 << 20 };

/* Resolves every link of @path (the last one only if @last); result in @now. */
static int resolve(const struct pp_record *r, const char *path, bool last, char now[PP_PATH_MAX])
{
	char dir[PP_PATH_MAX], next[PP_PATH_MAX];
	const struct pp_entry *e;
	size_t done = 1, end;
	int links = 0;
	char saved;

	memcpy(now, path, strlen(path) + 1);
	while (now[done]) {
		end = done + strcspn(now + done, "/");
		saved = now[end];
		now[end] = '\0';
		e = saved || last ? pp_record_get(r, now) : NULL;
		now[end] = saved;
		if (!e || e->kind != PP_ENTRY_LINK) {
			done = saved ? end + 1 : end;
			continue;
		}
		if (++links > MAX_LINKS)
			return -ELOOP;
		memcpy(dir, now, done - 1);
		dir[done - 1] = '\0';
		if (pp_path_join(dir, e->content, next) ||
		    pp_path_join(next, saved ? now + end + 1 : "", now))
			return -ENAMETOOLONG;
		done = 1;
	}
	return 0;
}

static int get(const struct pp_store *st, const char *path, bool last, char now[PP_PATH_MAX],
	       const struct pp_entry **ret)
{
	int r = resolve(st->tree, path, last, now);

	if (r)
		return r;
	*ret = pp_record_get(st->tree, now);
	if (*ret && (*ret)->kind == PP_ENTRY_ERROR)
		return (*ret)->error;
	return 0;
}

/* What a record that was cut does not hold may have been there. */
static int absent(const struct pp_store *st)
{
	return pp_record_cut(st->tree) ? -ENODATA : -ENOENT;
}

static int memory_open(struct pp_store *st, const char *path, struct pp_stream *ret)
{
	const struct pp_entry *e = NULL;
	char now[PP_PATH_MAX];
	int r = get(st, path, true, now, &e);

	if (r)
		return r;
	if (!e)
		return absent(st);
	if (e->kind != PP_ENTRY_FILE)
		return -EISDIR;
	*ret = (struct pp_stream){.fd = -1, .bytes = e->content, .len = e->len};
	return 0;
}

static int memory_read(struct pp_store *st, const char *path, void *buf, size_t size,
		       size_t *ret_len)
{
	struct pp_stream in;
	int r = memory_open(st, path, &in);

	if (r)
		return r;
	*ret_len = in.len < size ? in.len : size;
	memcpy(buf, in.bytes, *ret_len);
	return in.len > size ? -EFBIG : 0;
}

/* First entry whose path is not before @path. */
static size_t lower_bound(const struct pp_entry *e, size_t n, const char *path)
{
	size_t low = 0, high = n, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (e[mid].kind != PP_ENTRY_ANSWER && strcmp(e[mid].path, path) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int memory_list(struct pp_store *st, const char *path, struct pp_names *ret)
{
	struct pp_buf block = PP_BUF(MAX_NAME_BYTES);
	const struct pp_entry *self = NULL, *e;
	char now[PP_PATH_MAX], prefix[PP_PATH_MAX + 1];
	const char *last = "";
	size_t n, len, count = 0, part, last_len = 0;
	int r = get(st, path, true, now, &self);

	if (r)
		return r;
	if (self && self->kind != PP_ENTRY_DIR)
		return -ENOTDIR;
	len = strlen(now);
	memcpy(prefix, now, len);
	if (len > 1)
		prefix[len++] = '/';
	prefix[len] = '\0';
	e = pp_record_entries(st->tree, &n);
	for (size_t i = lower_bound(e, n, prefix); i < n && count < MAX_NAMES; i++) {
		if (e[i].kind == PP_ENTRY_ANSWER || strncmp(e[i].path, prefix, len) != 0)
			break;
		part = strcspn(e[i].path + len, "/");
		if (!part || (part == last_len && !strncmp(e[i].path + len, last, part)))
			continue;
		last = e[i].path + len;
		last_len = part;
		pp_buf_add(&block, last, part);
		pp_buf_add(&block, "", 1);
		count++;
	}
	r = count == MAX_NAMES ? -EFBIG : !count && !self ? absent(st) : block.failed;
	if (r) {
		pp_buf_done(&block);
		return r;
	}
	/* "a" < "a-b" < "a/x": the same name may come twice, not in a row; sorted, drop it. */
	r = pp_store_names(block.data, block.len, count, ret);
	if (r)
		return r;
	count = 0;
	for (size_t i = 0; i < ret->n; i++)
		if (!count || strcmp(ret->name[count - 1], ret->name[i]) != 0)
			ret->name[count++] = ret->name[i];
	ret->n = count;
	return 0;
}

static int memory_probe(struct pp_store *st, const char *path)
{
	struct pp_names names = {0};
	const struct pp_entry *e = NULL;
	char now[PP_PATH_MAX];
	int r = get(st, path, false, now, &e);

	if (r || e)
		return r == -ENOENT || r == -ENOTDIR ? 0 : r ? r : 1;
	/* A directory that only its children imply. */
	r = memory_list(st, path, &names);
	if (!r)
		pp_names_done(&names);
	return !r ? 1 : r == -ENOENT || r == -ENOTDIR ? 0 : r;
}

static int memory_link(struct pp_store *st, const char *path, char *buf, size_t size)
{
	const struct pp_entry *e = NULL;
	char now[PP_PATH_MAX];
	int r = get(st, path, false, now, &e);

	if (r)
		return r;
	if (!e || e->kind != PP_ENTRY_LINK)
		return memory_probe(st, path) > 0 ? -EINVAL : absent(st);
	if (e->len >= size)
		return -ENAMETOOLONG;
	memcpy(buf, e->content, e->len + 1);
	return 0;
}

static int memory_answer(struct pp_store *st, const char *name, char **ret, size_t *ret_len)
{
	const struct pp_entry *e = pp_record_answer(st->tree, name);
	char *text;

	if (!e)
		return absent(st);
	text = malloc(e->len + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, e->content, e->len + 1);
	*ret = text;
	*ret_len = e->len;
	return 0;
}

const struct pp_store_ops pp_store_memory = {
	.read = memory_read,
	.open = memory_open,
	.list = memory_list,
	.link = memory_link,
	.probe = memory_probe,
	.answer = memory_answer,
};

/* The kernel's own errors go up to here; 524 (ENOTSUPP) leaks from drivers. */
enum { LARGEST_ERRNO = 531 };

/* errno by its symbolic name, of those that a read can give; 0 for another word. */
static int errno_by_name(const char *name)
{
	for (int e = 1; e <= LARGEST_ERRNO; e++)
		if (strcmp(name, "errno") != 0 && !strcmp(pp_errno_name(e), name))
			return e;
	return 0;
}

int pp_store_parse_errors(char *text, struct pp_record *ret)
{
	char *line = text, *end, *tab;
	int e, r;

	for (; *line; line = end) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		if (!*line)
			continue;
		tab = strchr(line, '\t');
		if (!tab)
			return -EBADMSG;
		*tab = '\0';
		e = errno_by_name(line);
		if (!e)
			return -EBADMSG;
		r = pp_record_put(ret, PP_ENTRY_ERROR, tab + 1, NULL, 0, -e);
		if (r)
			return r == -EINVAL ? -EBADMSG : r;
	}
	return 0;
}
