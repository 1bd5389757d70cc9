/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_record: a machine held in memory: what was read of its files (content, link target,
 * directory, or the error), and the recorded answers of what is no file.
 *
 * A live source fills one while collectors read, so a capture holds exactly what the collectors
 * need, errors included. A loaded archive is one, and a source can read from it.
 * Paths are absolute ("/sys/..."), normalised, at most PP_PATH_MAX - 1 bytes.
 */
#ifndef PP_NODE_RECORD_H
#define PP_NODE_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

enum { PP_PATH_MAX = 1024 };

enum pp_entry_kind {
	PP_ENTRY_FILE,
	PP_ENTRY_LINK,	/* content = target */
	PP_ENTRY_DIR,	/* listed; its children are entries of their own */
	PP_ENTRY_ERROR, /* error = negative errno; never -ENOENT, which absence says */
	PP_ENTRY_ANSWER /* path = name of the answer, content = its JSON */
};

struct pp_entry {
	const char *path;
	const char *content; /* NUL-terminated after len bytes */
	size_t len;
	int error;
	enum pp_entry_kind kind;
};

struct pp_record; /* opaque */

/* @limit bounds content and paths together, in bytes. -ENOMEM. */
int pp_record_new(size_t limit, struct pp_record **ret);
struct pp_record *pp_record_free(struct pp_record *r); /* returns NULL */

/*
 * Adds or replaces by path. A DIR replaces nothing, an ERROR only a DIR or an ERROR. Copies
 * content. A FILE or an ERROR for what is a link stands behind the link, whichever came first: a
 * reading follows it. 0, -ENOMEM, -EFBIG (the limit), -EINVAL (path not absolute and normalised, or
 * too long).
 */
int pp_record_put(struct pp_record *r, enum pp_entry_kind kind, const char *path,
		  const void *content, size_t len, int error);

/*
 * What stands behind @path when the record knows it as a link, through further links: @path
 * itself when it is none. -ELOOP, -ENAMETOOLONG.
 */
int pp_record_behind(const struct pp_record *r, const char *path, char ret[PP_PATH_MAX]);

/* NULL if absent. Borrowed until the record is freed or the path is put again. */
const struct pp_entry *pp_record_get(const struct pp_record *r, const char *path);
const struct pp_entry *pp_record_answer(const struct pp_record *r, const char *name);

/* Sorted by path; answers come last, sorted by name. Borrowed until the next put. */
const struct pp_entry *pp_record_entries(struct pp_record *r, size_t *ret_n);

/*
 * How many entries were dropped for the limit: not 0, and the record is not whole. What it does
 * not hold is then not known to be absent.
 */
size_t pp_record_cut(const struct pp_record *r);
/* @n entries more are missing: of a loaded archive that says so, of what this one is a copy of. */
void pp_record_set_cut(struct pp_record *r, size_t n);

/* True for an absolute path without "//", ".", ".." or trailing '/', shorter than PP_PATH_MAX. */
bool pp_path_normal(const char *path);

#endif
