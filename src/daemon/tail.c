/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/tail.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "daemon/apart.h"
#include "base/banned.h"

enum { PIECE = 64 << 10, CONFIGFS = 0x62656570 /* fs/configfs/mount.c; in no header */ };

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

/* Kernel's interfaces look like files. To read some of them is to change something (tracing's
 * pipes), others never end, and none is a log. */
static bool is_of_kernel(int fd)
{
	static const unsigned long kinds[] = {
		PROC_SUPER_MAGIC,     SYSFS_MAGIC,	   TRACEFS_MAGIC,    DEBUGFS_MAGIC,
		CGROUP_SUPER_MAGIC,   CGROUP2_SUPER_MAGIC, SECURITYFS_MAGIC, BPF_FS_MAGIC,
		RDTGROUP_SUPER_MAGIC, EFIVARFS_MAGIC,	   PSTOREFS_MAGIC,   SELINUX_MAGIC,
		BINFMTFS_MAGIC,	      DEVPTS_SUPER_MAGIC,  NSFS_MAGIC,	     CONFIGFS,
	};
	struct statfs of;

	if (fstatfs(fd, &of))
		return false;
	for (size_t i = 0; i < PP_ARRAY_LEN(kinds); i++)
		if ((unsigned long)of.f_type == kinds[i])
			return true;
	return false;
}

/* Why what is there is no log; NULL: it may be one. @fd only names it: nothing is opened yet, since
 * to open a device or a pipe is to use it. */
static const char *why_not(int fd, const struct stat *st)
{
	static const struct {
		mode_t type;
		const char *why;
	} types[] = {{S_IFDIR, "a directory"},
		     {S_IFIFO, "a pipe"},
		     {S_IFSOCK, "a socket"},
		     {S_IFCHR, "a character device"},
		     {S_IFBLK, "a block device"}};

	for (size_t i = 0; i < PP_ARRAY_LEN(types); i++)
		if ((st->st_mode & S_IFMT) == types[i].type)
			return types[i].why;
	if (!S_ISREG(st->st_mode))
		return "no regular file";
	return is_of_kernel(fd) ? "a file of the kernel's" : NULL;
}

/* Told once for each; a folder full of them is told as far as there is room. */
static void refuse(struct pp_tails *t, const char *path, const struct stat *st, const char *why)
{
	struct pp_tail_refusal *r;

	for (size_t i = 0; i < t->n_refused; i++)
		if (t->refused[i].dev == st->st_dev && t->refused[i].ino == st->st_ino)
			return;
	if (t->n_refusals == PP_TAIL_REFUSALS || t->n_refused == PP_TAIL_REFUSED)
		return;
	t->refused[t->n_refused].dev = st->st_dev;
	t->refused[t->n_refused++].ino = st->st_ino;
	r = &t->refusal[t->n_refusals++];
	*r = (struct pp_tail_refusal){.dev = st->st_dev, .ino = st->st_ino, .why = why};
	(void)snprintf(r->path, sizeof(r->path), "%s", path);
}

/* What is open under another name already: it keeps the first of this look. */
static int name_known(struct pp_tail *known, const char *path)
{
	char *fresh;

	if (known->seen)
		return 0;
	known->seen = true;
	if (!strcmp(known->path, path))
		return 0;
	fresh = strdup(path);
	if (!fresh)
		return -ENOMEM;
	free(known->path);
	known->path = fresh;
	return 0;
}

/* For reading: what @fd names, and nothing that took its place since. */
static int reopen(int fd)
{
	char self[40];

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return open(self, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

static void cannot(struct pp_tails *t, const char *path)
{
	(void)snprintf(t->why, sizeof(t->why), "%.160s: %s", path, strerrordesc_np(errno));
}

/* Takes @fd. */
static int take(struct pp_tails *t, const char *path, const struct stat *st, int fd,
		const char *recalled)
{
	struct pp_tail one = {.part = PP_BUF(PP_TAIL_LINE + 1), .fd = fd};

	one.path = strdup(path);
	if (!one.path) {
		(void)close(one.fd);
		return -ENOMEM;
	}
	one.dev = st->st_dev;
	one.ino = st->st_ino;
	one.seen = true;
	if (!recall(recalled, st, &one)) {
		/* History, unless it came into being while we watched or were away. */
		rewind_to(&one, t->begun || recalled ? 0 : (uint64_t)st->st_size);
		head_of(one.fd, PP_TAIL_HEAD, &one.head_len, &one.head);
	}
	t->file[t->n++] = one;
	return 0;
}

/* The file @path, whatever links lead there, once. */
static int find_out(struct pp_tails *t, const char *path, const char *recalled)
{
	int PP_AUTO_CLOSE named = -1;
	struct pp_tail *known;
	struct stat st;
	const char *why;
	int fd;

	pp_apart_doing("opening", path);
	named = open(path, O_PATH | O_CLOEXEC);
	if (named < 0 || fstat(named, &st)) {
		cannot(t, path);
		return 0;
	}
	known = find(t, &st);
	if (known)
		return name_known(known, path);
	why = why_not(named, &st);
	if (why) {
		refuse(t, path, &st, why);
		return 0;
	}
	if (t->n == PP_TAIL_FILES) {
		t->unread++;
		return 0;
	}
	fd = reopen(named);
	if (fd < 0) {
		cannot(t, path);
		return 0;
	}
	return take(t, path, &st, fd, recalled);
}

static int list(struct pp_tails *t, const char *const *globs, const char *recalled)
{
	int r = 0;

	t->unread = 0;
	t->n_refusals = 0;
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
			r = find_out(t, found.gl_pathv[i], recalled);
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
