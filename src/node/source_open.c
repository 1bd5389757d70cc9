/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources of every mode, opened: which store they read from, and whether questions to drivers may
 * be asked beside it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/source_store.h"
#include "base/banned.h"

enum { MAX_ANSWER = 16 << 20 };

static const char BOOT_ID[] = "/proc/sys/kernel/random/boot_id";

static int new_source(enum pp_source_mode mode, const char *what, const char *path,
		      struct pp_source **ret)
{
	struct pp_source *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->mode = mode;
	s->store.root_fd = s->store.answers_fd = -1;
	if (asprintf(&s->name, "%s%s%s", what, *path ? " " : "", path) < 0) {
		free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

struct pp_source *pp_source_free(struct pp_source *s)
{
	if (!s)
		return NULL;
	pp_helpers_done(&s->helpers);
	pp_cleanup_close(&s->store.root_fd);
	pp_cleanup_close(&s->store.answers_fd);
	pp_record_free(s->store.tree);
	pp_record_free(s->store.errors);
	free(s->name);
	free(s);
	return NULL;
}

int pp_source_live(struct pp_source **ret, struct pp_error *err)
{
	struct pp_source *s;

	if (new_source(PP_SOURCE_LIVE, "live", "", &s))
		return pp_error_set(err, -ENOMEM, "out of memory");
	s->ops = &pp_store_disk;
	s->may_ask = true;
	*ret = s;
	return 0;
}

static int open_dir(const char *dir, const char *what, int *ret, struct pp_error *err)
{
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), e = errno;

	if (fd < 0)
		return pp_error_set(err, -e, "%s '%s': %s", what, dir, pp_source_why(-e));
	*ret = fd;
	return 0;
}

/* Does the tree show the kernel that this process runs on? */
static bool same_boot(struct pp_source *s)
{
	char theirs[64], ours[64] = "";
	struct pp_source *live = NULL;
	struct pp_error err;
	int r;

	if (pp_source_text(s, BOOT_ID, theirs, sizeof(theirs)) || !theirs[0] ||
	    pp_source_live(&live, &err))
		return false;
	r = pp_source_text(live, BOOT_ID, ours, sizeof(ours));
	pp_source_free(live);
	return !r && !strcmp(theirs, ours);
}

int pp_source_root(const char *dir, struct pp_source **ret, struct pp_error *err)
{
	struct pp_source *s;
	int r;

	if (new_source(PP_SOURCE_ROOT, "root", dir, &s))
		return pp_error_set(err, -ENOMEM, "out of memory");
	s->ops = &pp_store_disk;
	r = open_dir(dir, "root", &s->store.root_fd, err);
	if (r) {
		pp_source_free(s);
		return r;
	}
	s->may_ask = same_boot(s);
	*ret = s;
	return 0;
}

/* raw.errors: "EACCES /path" lines, written by capture. A line that is wrong is refused. */
static int load_errors(struct pp_store *st, int dir_fd, struct pp_error *err)
{
	int PP_AUTO_CLOSE fd = openat(dir_fd, "raw.errors", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *PP_AUTO_FREE text = NULL;
	size_t len;
	int r;

	if (fd < 0)
		return errno == ENOENT
			       ? 0
			       : pp_error_set(err, -errno, "raw.errors: %s", pp_source_why(-errno));
	r = pp_store_slurp(fd, MAX_ANSWER, &text, &len);
	if (!r)
		r = pp_record_new((size_t)4 * MAX_ANSWER, &st->errors);
	if (!r)
		r = pp_store_parse_errors(text, st->errors);
	return r ? pp_error_set(err, r, "raw.errors: %s", pp_source_why(r)) : 0;
}

int pp_source_replay_dir(const char *dir, struct pp_source **ret, struct pp_error *err)
{
	int PP_AUTO_CLOSE top = -1;
	struct pp_source *s;
	int r;

	if (new_source(PP_SOURCE_REPLAY, "replay", dir, &s))
		return pp_error_set(err, -ENOMEM, "out of memory");
	s->ops = &pp_store_disk;
	r = open_dir(dir, "replay", &top, err);
	if (!r) {
		s->store.root_fd = openat(top, "raw", O_PATH | O_DIRECTORY | O_CLOEXEC);
		s->store.answers_fd = openat(top, "answers", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (s->store.root_fd < 0) {
			s->store.root_fd = top;
			top = -1;
			if (!pp_source_exists(s, "/sys") && !pp_source_exists(s, "/proc"))
				r = pp_error_set(err, -ENOENT,
						 "replay '%s': neither raw/ nor sys/ nor proc/ in "
						 "it: not a capture, a bundle or a tree",
						 dir);
		} else {
			r = load_errors(&s->store, top, err);
		}
	}
	if (r) {
		pp_source_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

int pp_source_replay_record(struct pp_record *record, struct pp_source **ret, struct pp_error *err)
{
	struct pp_source *s;
	size_t n;

	if (new_source(PP_SOURCE_REPLAY, "replay", "", &s)) {
		pp_record_free(record);
		return pp_error_set(err, -ENOMEM, "out of memory");
	}
	(void)pp_record_entries(record, &n); /* sorts once: listing searches by order */
	s->ops = &pp_store_memory;
	s->store.tree = record;
	*ret = s;
	return 0;
}
