/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/capture_scrub.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/fd.h"
#include "bundle/tree.h"
#include "base/banned.h"

static const size_t ARENA_MOST = (size_t)512 << 20;

/* Files on their way: a capture within them is a bundle of its own. */
struct course {
	struct pp_scrubber *scrubber;
	const struct pp_bundle_file *file; /* borrowed */
	struct pp_bundle **nested;	   /* owned; by file, NULL: it is none */
	size_t n;
	pp_capture_write_fn *write;
	char dir[PATH_MAX]; /* made, for archives in the making; "" not yet */
};

static bool is_capture(const char *path)
{
	return !fnmatch("nodes/*/capture.tar.zst", path, FNM_PATHNAME);
}

/* Bytes as a file, since bundles are read from files. */
static int open_nested(const struct pp_bundle_file *f, struct pp_bundle **ret, struct pp_error *err)
{
	int PP_AUTO_CLOSE fd = memfd_create("capture", MFD_CLOEXEC);
	char path[48];
	int r;

	if (fd < 0)
		return pp_error_set(err, -errno, "memfd: %s", strerror(errno));
	r = pp_fd_write(fd, f->data, f->len);
	if (r)
		return pp_error_set(err, r, "memfd: %s", strerror(-r));
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return pp_bundle_open(path, ret, err);
}

static int learn(struct course *c, struct pp_record *own, struct pp_error *err)
{
	int r = pp_scrubber_learn(c->scrubber, own, err);

	for (size_t i = 0; !r && i < c->n; i++)
		if (c->nested[i])
			r = pp_scrubber_learn(c->scrubber, pp_bundle_record(c->nested[i]), err);
	for (size_t i = 0; !r && i < c->n; i++)
		if (!c->nested[i])
			r = pp_scrubber_learn_file(c->scrubber, &c->file[i], err);
	if (r)
		return r;
	pp_scrubber_spare(c->scrubber, own);
	for (size_t i = 0; i < c->n; i++)
		if (c->nested[i])
			pp_scrubber_spare(c->scrubber, pp_bundle_record(c->nested[i]));
	return 0;
}

static int make_dir(struct course *c, struct pp_error *err)
{
	const char *tmp = secure_getenv("TMPDIR");

	if (c->dir[0])
		return 0;
	(void)snprintf(c->dir, sizeof(c->dir), "%.3900s/peerpath-scrub.XXXXXX",
		       tmp && *tmp ? tmp : "/tmp");
	if (mkdtemp(c->dir))
		return 0;
	c->dir[0] = '\0';
	return pp_error_set(err, -errno, "TMPDIR: %s", strerror(errno));
}

static int read_whole(const char *path, struct pp_arena *arena, struct pp_bundle_file *ret,
		      struct pp_error *err)
{
	int PP_AUTO_CLOSE fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *data;

	if (fd < 0 || fstat(fd, &st))
		return pp_error_set(err, -errno, "%s: %s", path, strerror(errno));
	data = pp_arena_alloc(arena, (size_t)st.st_size + 1);
	if (!data)
		return pp_error_set(err, -ENOMEM, "out of memory");
	if (read(fd, data, (size_t)st.st_size) != st.st_size)
		return pp_error_set(err, -EIO, "%s: read", path);
	ret->data = data;
	ret->len = (size_t)st.st_size;
	return 0;
}

/* Its record scrubbed, its facts collected anew, packed again. */
static int scrub_nested(struct course *c, size_t i, struct pp_arena *arena,
			struct pp_bundle_file *ret, struct pp_error *err)
{
	struct pp_bundle_file name = {c->file[i].path, "", 0};
	struct pp_record *record = NULL;
	char path[PATH_MAX + 32];
	pp_ns seen = 0;
	int r = make_dir(c, err);

	(void)pp_clock_parse(pp_bundle_manifest(c->nested[i])->created, &seen);
	if (!r)
		r = pp_scrubber_record(c->scrubber, pp_bundle_record(c->nested[i]), &record, err);
	(void)snprintf(path, sizeof(path), "%s/capture.tar.zst", c->dir);
	if (!r)
		r = c->write(record, seen, path, err);
	if (!r)
		r = pp_scrubber_file(c->scrubber, &name, arena, ret, err);
	if (!r)
		r = read_whole(path, arena, ret, err);
	if (c->dir[0])
		(void)unlink(path);
	return r;
}

static int scrub_files(struct course *c, struct pp_capture_scrubbed *s, struct pp_error *err)
{
	for (size_t i = 0; i < c->n; i++) {
		struct pp_bundle_file *to = &s->file[s->n_files];
		int r = c->nested[i]
				? scrub_nested(c, i, &s->arena, to, err)
				: pp_scrubber_file(c->scrubber, &c->file[i], &s->arena, to, err);

		if (r && r != -ENODATA)
			return r;
		if (r)
			s->lost++;
		else
			s->n_files++;
	}
	return 0;
}

static void close_course(struct course *c)
{
	for (size_t i = 0; c->nested && i < c->n; i++)
		(void)pp_bundle_free(c->nested[i]);
	free(c->nested);
	(void)pp_scrubber_free(c->scrubber);
	if (c->dir[0])
		(void)pp_tree_remove(AT_FDCWD, c->dir);
}

int pp_capture_scrub(struct pp_record *record, const struct pp_bundle_file *files, size_t n,
		     pp_capture_write_fn *write, struct pp_capture_scrubbed *ret,
		     struct pp_error *err)
{
	struct course c = {.file = files, .n = n, .write = write};
	struct pp_capture_scrubbed s = {.arena = PP_ARENA(ARENA_MOST)};
	int r = pp_scrubber_new(&c.scrubber, err);

	c.nested = calloc(n + 1, sizeof(struct pp_bundle *));
	s.file = pp_arena_array(&s.arena, n + 1, sizeof(*s.file));
	if (!r && (!c.nested || !s.file))
		r = pp_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; !r && i < n; i++)
		if (is_capture(files[i].path))
			r = open_nested(&files[i], &c.nested[i], err);
	if (!r)
		r = learn(&c, record, err);
	if (!r)
		r = pp_scrubber_record(c.scrubber, record, &s.record, err);
	if (!r)
		r = scrub_files(&c, &s, err);
	s.counts = c.scrubber ? pp_scrubber_counts(c.scrubber) : s.counts;
	close_course(&c);
	if (r)
		pp_capture_scrubbed_done(&s);
	else
		*ret = s;
	return r;
}

void pp_capture_scrubbed_done(struct pp_capture_scrubbed *s)
{
	pp_record_free(s->record);
	pp_arena_done(&s->arena);
	*s = (struct pp_capture_scrubbed){0};
}
