/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/tail.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "daemon/apart.h"
#include "base/banned.h"

enum { PIECE = 64 << 10 };

static void drop(struct pp_tails *t, size_t i)
{
	struct pp_tail *f = &t->file[i];

	(void)close(f->fd);
	free(f->path);
	pp_buf_done(&f->part);
	*f = t->file[--t->n];
}

/* FNV-1a: it only has to tell two beginnings apart, not to withstand who wants them alike. */
static uint64_t digest(const char *bytes, size_t len)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3;
	return h;
}

/* Digest of the first bytes that are there now, at most @len of them. */
static void head_of(int fd, unsigned int len, unsigned int *ret_len, uint64_t *ret)
{
	char bytes[PP_TAIL_HEAD];
	ssize_t n = pread(fd, bytes, len, 0);

	*ret_len = n > 0 ? (unsigned int)n : 0;
	*ret = digest(bytes, *ret_len);
}

static void rewind_to(struct pp_tail *f, uint64_t offset)
{
	f->offset = f->line_at = offset;
	f->skipping = false;
	pp_buf_reset(&f->part);
}

/* The same inode may hold another text by now: it was truncated, and perhaps written anew. */
static void check_beginning(struct pp_tail *f)
{
	struct stat st;
	unsigned int len;
	uint64_t head;

	if (fstat(f->fd, &st))
		return;
	head_of(f->fd, f->head_len, &len, &head);
	if ((uint64_t)st.st_size < f->offset || len != f->head_len || head != f->head)
		rewind_to(f, 0);
	head_of(f->fd, PP_TAIL_HEAD, &f->head_len, &f->head);
}

static struct pp_tail *find(struct pp_tails *t, const struct stat *st)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->file[i].dev == st->st_dev && t->file[i].ino == st->st_ino)
			return &t->file[i];
	return NULL;
}

/* "dev:ino:offset:length:digest" of @recalled; false: this file is not among them. */
static bool recall(const char *recalled, const struct stat *st, struct pp_tail *f)
{
	char *PP_AUTO_FREE copy = recalled ? strdup(recalled) : NULL;
	char *rest = copy, *one;

	while (rest && (one = strsep(&rest, " "))) {
		uint64_t v[5];
		size_t n = 0;
		char *field;

		while (n < PP_ARRAY_LEN(v) && (field = strsep(&one, ":")) &&
		       !pp_parse_u64(field, 0, UINT64_MAX, &v[n]))
			n++;
		if (n < PP_ARRAY_LEN(v) || v[0] != st->st_dev || v[1] != st->st_ino ||
		    v[3] > PP_TAIL_HEAD)
			continue;
		rewind_to(f, v[2]);
		f->head_len = (unsigned int)v[3];
		f->head = v[4];
		return true;
	}
	return false;
}

/* The file @path, once: another name of one that is open changes nothing but its name. */
static int take(struct pp_tails *t, const char *path, const char *recalled)
{
	struct pp_tail one = {.part = PP_BUF(PP_TAIL_LINE + 1)}, *known;
	struct stat st;

	pp_apart_doing("opening", path);
	one.fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (one.fd < 0 || fstat(one.fd, &st) || !S_ISREG(st.st_mode)) {
		(void)snprintf(t->why, sizeof(t->why), "%.160s: %s", path,
			       one.fd < 0 ? strerrordesc_np(errno) : "no regular file");
		if (one.fd >= 0)
			(void)close(one.fd);
		return 0;
	}
	known = find(t, &st);
	if (known || t->n == PP_TAIL_FILES) {
		(void)close(one.fd);
		t->unread += !known;
		if (known)
			known->seen = true;
		if (!known || !strcmp(known->path, path))
			return 0;
		free(known->path);
		known->path = strdup(path);
		return known->path ? 0 : -ENOMEM;
	}
	one.path = strdup(path);
	if (!one.path) {
		(void)close(one.fd);
		return -ENOMEM;
	}
	one.dev = st.st_dev;
	one.ino = st.st_ino;
	one.seen = true;
	if (!recall(recalled, &st, &one)) {
		/* History, unless it came into being while we watched or were away. */
		rewind_to(&one, t->begun || recalled ? 0 : (uint64_t)st.st_size);
		head_of(one.fd, PP_TAIL_HEAD, &one.head_len, &one.head);
	}
	t->file[t->n++] = one;
	return 0;
}

static int list(struct pp_tails *t, const char *const *globs, const char *recalled)
{
	int r = 0;

	t->unread = 0;
	t->why[0] = '\0';
	for (size_t i = 0; i < t->n; i++)
		t->file[i].seen = false;
	for (; !r && globs && *globs; globs++) {
		glob_t found;
		int g;

		pp_apart_doing("listing", *globs);
		g = glob(*globs, 0, NULL, &found);

		if (g == GLOB_NOSPACE)
			return -ENOMEM;
		if (g)
			continue;
		for (size_t i = 0; !r && i < found.gl_pathc; i++)
			r = take(t, found.gl_pathv[i], recalled);
		globfree(&found);
	}
	return r;
}

struct reading {
	pp_tail_each *each;
	void *ctx;
	uint64_t skipped;
};

/* Bytes at f->offset; lines that end in them are handed on. */
static int feed(struct pp_tail *f, const char *bytes, size_t len, struct reading *r)
{
	int ret = 0;

	while (len && !ret) {
		const char *end = memchr(bytes, '\n', len);
		size_t n = end ? (size_t)(end - bytes) : len;

		/* Of a line that is too long the start counts. */
		if (!f->skipping && n > PP_TAIL_LINE - f->part.len) {
			pp_buf_add(&f->part, bytes, PP_TAIL_LINE - f->part.len);
			f->skipping = true;
		} else if (!f->skipping) {
			pp_buf_add(&f->part, bytes, n);
		}
		if (f->part.failed)
			return -ENOMEM;
		f->offset += n + (end != NULL);
		bytes += n + (end != NULL);
		len -= n + (end != NULL);
		if (!end)
			break;
		if (f->part.len) {
			const struct pp_tail_line line = {f, f->part.data, f->part.len, f->line_at};

			ret = r->each(r->ctx, &line, r->skipped);
			r->skipped = 0;
		}
		rewind_to(f, f->offset);
	}
	return ret;
}

/* *ret_end: there is nothing more to read now. */
static int read_one(struct pp_tail *f, struct reading *r, bool *ret_end)
{
	char bytes[PIECE];
	struct stat st;
	size_t budget = PP_TAIL_ROUND;
	int ret = 0;

	*ret_end = false;
	pp_apart_doing("reading", f->path);
	check_beginning(f);
	r->skipped = 0;
	if (!fstat(f->fd, &st) && (uint64_t)st.st_size > f->offset + PP_TAIL_BEHIND) {
		r->skipped = (uint64_t)st.st_size - PP_TAIL_ROUND - f->offset;
		rewind_to(f, (uint64_t)st.st_size - PP_TAIL_ROUND);
		f->skipping = true; /* up to the next whole line */
	}
	while (!ret && budget) {
		size_t want = budget < sizeof(bytes) ? budget : sizeof(bytes);
		ssize_t n = pread(f->fd, bytes, want, (off_t)f->offset);

		*ret_end = n <= 0;
		if (n <= 0)
			break;
		budget -= (size_t)n;
		ret = feed(f, bytes, (size_t)n, r);
	}
	return ret;
}

int pp_tails_read(struct pp_tails *t, const char *const *globs, const char *recalled,
		  pp_tail_each *each, void *ctx)
{
	struct reading reading = {.each = each, .ctx = ctx};
	int r = list(t, globs, t->begun ? NULL : recalled);

	t->begun = true;
	for (size_t i = t->n; !r && i-- > 0;) {
		bool end;

		r = read_one(&t->file[i], &reading, &end);
		/* What none of our names leads to any more is read to its end, then let go. */
		if (!t->file[i].seen && end)
			drop(t, i);
	}
	return r;
}

void pp_tails_write(const struct pp_tails *t, struct pp_buf *to)
{
	/* Also where there is no file yet: those that appear while nobody looks are new. */
	pp_buf_printf(to, "begun");
	for (size_t i = 0; i < t->n; i++) {
		const struct pp_tail *f = &t->file[i];

		pp_buf_printf(to, " %" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%u:%" PRIu64,
			      (uint64_t)f->dev, (uint64_t)f->ino, f->line_at, f->head_len, f->head);
	}
}

void pp_tails_done(struct pp_tails *t)
{
	while (t->n)
		drop(t, t->n - 1);
	t->begun = false;
}
