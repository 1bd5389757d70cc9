/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries are appended and sorted lazily: recording appends in bursts, lookups come later. A put
 * of a known path replaces in place, so the newest reading wins.
 */
#include "node/record.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "node/source.h"
#include "base/banned.h"

enum { INITIAL_SLOTS = 256, MAX_LINKS = 40 };

struct pp_record {
	struct pp_arena arena;
	struct pp_entry *entries;
	size_t n, cap;
	/* open-addressing index by kind class and path: slot holds entry number + 1 */
	uint32_t *slots;
	size_t n_slots;
	size_t cut; /* entries dropped */
	bool sorted;
};

int pp_record_new(size_t limit, struct pp_record **ret)
{
	struct pp_record *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->arena = PP_ARENA(limit);
	r->slots = calloc(INITIAL_SLOTS, sizeof(*r->slots));
	if (!r->slots) {
		free(r);
		return -ENOMEM;
	}
	r->n_slots = INITIAL_SLOTS;
	*ret = r;
	return 0;
}

struct pp_record *pp_record_free(struct pp_record *r)
{
	if (!r)
		return NULL;
	pp_arena_done(&r->arena);
	free(r->entries);
	free(r->slots);
	free(r);
	return NULL;
}

bool pp_path_normal(const char *path)
{
	size_t len = strnlen(path, PP_PATH_MAX);
	const char *p, *end;

	if (path[0] != '/' || len >= PP_PATH_MAX || (len > 1 && path[len - 1] == '/'))
		return false;
	if (len == 1)
		return true;
	for (p = path; *p; p = end) {
		p++;
		end = strchrnul(p, '/');
		if (end == p || (end - p == 1 && p[0] == '.') ||
		    (end - p == 2 && p[0] == '.' && p[1] == '.'))
			return false;
	}
	return true;
}

/* FNV-1a; answers live in a name space of their own. */
static size_t hash(const char *path, bool answer)
{
	uint64_t h = answer ? 0x9e3779b97f4a7c15u : 0xcbf29ce484222325u;

	for (; *path; path++)
		h = (h ^ (unsigned char)*path) * 0x100000001b3u;
	return (size_t)(h ^ (h >> 32));
}

/* Slot of the entry, or of the free place where it belongs. */
static size_t slot_of(const struct pp_record *r, const char *path, bool answer)
{
	size_t i = hash(path, answer) & (r->n_slots - 1);

	while (r->slots[i]) {
		const struct pp_entry *e = &r->entries[r->slots[i] - 1];

		if ((e->kind == PP_ENTRY_ANSWER) == answer && !strcmp(e->path, path))
			break;
		i = (i + 1) & (r->n_slots - 1);
	}
	return i;
}

static void index_all(struct pp_record *r)
{
	memset(r->slots, 0, r->n_slots * sizeof(*r->slots));
	for (size_t i = 0; i < r->n; i++) {
		const struct pp_entry *e = &r->entries[i];

		r->slots[slot_of(r, e->path, e->kind == PP_ENTRY_ANSWER)] = (uint32_t)i + 1;
	}
}

static int make_room(struct pp_record *r)
{
	size_t cap = r->cap ? r->cap * 2 : INITIAL_SLOTS / 2;
	struct pp_entry *entries;
	uint32_t *slots;

	if (r->n < r->cap)
		return 0;
	if (cap > UINT32_MAX / 4)
		return -EFBIG;
	entries = reallocarray(r->entries, cap, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	r->entries = entries;
	slots = calloc(cap * 2, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(r->slots);
	r->slots = slots;
	r->n_slots = cap * 2;
	r->cap = cap;
	index_all(r);
	return 0;
}

/* What was read whole stays, when a later reading with a smaller bound fails. */
static bool replaces(enum pp_entry_kind fresh, enum pp_entry_kind old)
{
	if (fresh == PP_ENTRY_ERROR)
		return old == PP_ENTRY_DIR || old == PP_ENTRY_ERROR;
	return fresh != PP_ENTRY_DIR;
}

int pp_record_behind(const struct pp_record *r, const char *path, char ret[PP_PATH_MAX])
{
	char dir[PP_PATH_MAX], now[PP_PATH_MAX];
	const struct pp_entry *e;

	if (strlen(path) >= PP_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(now, path, strlen(path) + 1);
	for (int i = 0; i < MAX_LINKS; i++) {
		e = pp_record_get(r, now);
		if (!e || e->kind != PP_ENTRY_LINK) {
			memcpy(ret, now, strlen(now) + 1);
			return 0;
		}
		memcpy(dir, now, strlen(now) + 1);
		*strrchr(dir, '/') = '\0';
		if (pp_path_join(dir, e->content, now))
			return -ENAMETOOLONG;
	}
	return -ELOOP;
}

static int put(struct pp_record *r, enum pp_entry_kind kind, const char *path, const void *content,
	       size_t len, int error)
{
	struct pp_entry fresh = {.kind = kind, .len = len, .error = error};
	bool answer = kind == PP_ENTRY_ANSWER, known;
	size_t slot;
	int err;

	if (!answer && !pp_path_normal(path))
		return -EINVAL;
	err = make_room(r);
	if (err)
		return err;
	slot = slot_of(r, path, answer);
	known = r->slots[slot] != 0;
	if (known && !replaces(kind, r->entries[r->slots[slot] - 1].kind))
		return 0;
	fresh.content = len ? pp_arena_strn(&r->arena, content, len) : "";
	fresh.path = known ? r->entries[r->slots[slot] - 1].path : pp_arena_str(&r->arena, path);
	if (r->arena.failed) {
		r->arena.failed = false;
		r->cut++;
		return -EFBIG;
	}
	if (known) {
		r->entries[r->slots[slot] - 1] = fresh;
		return 0;
	}
	r->entries[r->n] = fresh;
	r->slots[slot] = (uint32_t)++r->n;
	r->sorted = false;
	return 0;
}

static const struct pp_entry *find(const struct pp_record *r, const char *path, bool answer)
{
	uint32_t at = r->slots[slot_of(r, path, answer)];

	return at ? &r->entries[at - 1] : NULL;
}

const struct pp_entry *pp_record_get(const struct pp_record *r, const char *path)
{
	return find(r, path, false);
}

static bool is_reading(enum pp_entry_kind kind)
{
	return kind == PP_ENTRY_FILE || kind == PP_ENTRY_ERROR;
}

int pp_record_put(struct pp_record *r, enum pp_entry_kind kind, const char *path,
		  const void *content, size_t len, int error)
{
	const struct pp_entry *known;
	struct pp_entry old;
	char behind[PP_PATH_MAX];
	int err;

	if (kind == PP_ENTRY_ANSWER || !pp_path_normal(path))
		return put(r, kind, path, content, len, error);
	known = pp_record_get(r, path);
	if (known && known->kind == PP_ENTRY_LINK && is_reading(kind))
		return pp_record_behind(r, path, behind)
			       ? 0
			       : put(r, kind, behind, content, len, error);
	if (!known || !is_reading(known->kind) || kind != PP_ENTRY_LINK)
		return put(r, kind, path, content, len, error);
	old = *known; /* its memory belongs to the arena and stays */
	err = put(r, kind, path, content, len, error);
	if (err || pp_record_behind(r, path, behind))
		return err;
	return put(r, old.kind, behind, old.content, old.len, old.error);
}

const struct pp_entry *pp_record_answer(const struct pp_record *r, const char *name)
{
	return find(r, name, true);
}

static int by_path(const void *a, const void *b)
{
	const struct pp_entry *x = a, *y = b;
	bool x_answer = x->kind == PP_ENTRY_ANSWER, y_answer = y->kind == PP_ENTRY_ANSWER;

	if (x_answer != y_answer)
		return x_answer ? 1 : -1;
	return strcmp(x->path, y->path);
}

const struct pp_entry *pp_record_entries(struct pp_record *r, size_t *ret_n)
{
	if (!r->sorted && r->n) {
		qsort(r->entries, r->n, sizeof(*r->entries), by_path);
		index_all(r);
	}
	r->sorted = true;
	*ret_n = r->n;
	return r->entries;
}

size_t pp_record_cut(const struct pp_record *r)
{
	return r->cut;
}

void pp_record_set_cut(struct pp_record *r, size_t n)
{
	r->cut += n;
}
