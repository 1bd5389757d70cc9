/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing of a bundle is believed before all of it is there: digests are taken while members come
 * in, and compared at the end.
 */
#include "bundle/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "node/source_store.h"
#include "base/banned.h"

/* Content and paths of an archive together. */
static const size_t RECORD_LIMIT = (size_t)384 << 20;

struct kept_file {
	struct pp_bundle_file file;
	struct kept_file *next;
};

struct pp_bundle {
	struct pp_arena arena; /* files that are neither raw nor answers */
	struct pp_record *record;
	struct pp_manifest *manifest, *have;
	char *manifest_text, *errors_text;
	size_t manifest_len;
	struct kept_file *files;
};

int pp_bundle_new(struct pp_bundle **ret, struct pp_error *err)
{
	struct pp_bundle *b = calloc(1, sizeof(*b));

	if (!b || pp_manifest_new(&b->have) || pp_record_new(RECORD_LIMIT, &b->record)) {
		pp_bundle_free(b);
		return pp_error_set(err, -ENOMEM, "out of memory");
	}
	b->arena = PP_ARENA((size_t)PP_ARCHIVE_BYTES_MAX);
	*ret = b;
	return 0;
}

struct pp_bundle *pp_bundle_free(struct pp_bundle *b)
{
	if (!b)
		return NULL;
	pp_arena_done(&b->arena);
	pp_record_free(b->record);
	pp_manifest_free(b->manifest);
	pp_manifest_free(b->have);
	free(b->manifest_text);
	free(b->errors_text);
	free(b);
	return NULL;
}

static int copy(const struct pp_member *m, char **ret, struct pp_error *err)
{
	char *text;

	if (*ret)
		return pp_error_set(err, -EBADMSG, "'%.300s' is there twice", m->path);
	text = malloc(m->len + 1);
	if (!text)
		return pp_error_set(err, -ENOMEM, "out of memory");
	if (m->len)
		memcpy(text, m->data, m->len);
	text[m->len] = '\0';
	*ret = text;
	return 0;
}

static int put(struct pp_bundle *b, enum pp_entry_kind kind, const char *path,
	       const struct pp_member *m, struct pp_error *err)
{
	const char *content = kind == PP_ENTRY_LINK ? m->target : m->data;
	size_t len = kind == PP_ENTRY_LINK ? strlen(m->target) : m->len;
	int r = pp_record_put(b->record, kind, path, content, len, 0);

	if (r == -EINVAL)
		return pp_error_set(err, -EBADMSG, "'%.300s': no path of a recording", m->path);
	return r ? pp_error_set(err, r, "'%.300s': %s", m->path, pp_source_why(r)) : 0;
}

static int keep_file(struct pp_bundle *b, const struct pp_member *m, struct pp_error *err)
{
	struct kept_file *k = pp_arena_alloc(&b->arena, sizeof(*k));

	if (!k)
		return pp_error_set(err, -ENOMEM, "out of memory");
	k->file.path = pp_arena_str(&b->arena, m->path);
	k->file.data = pp_arena_strn(&b->arena, m->data, m->len);
	k->file.len = m->len;
	if (b->arena.failed)
		return pp_error_set(err, -ENOMEM, "out of memory");
	k->next = b->files;
	b->files = k;
	return 0;
}

/* "answers/nvml.json" is the answer "nvml"; false for another shape. */
static bool answer_name(const char *path, char name[64])
{
	static const char dir[] = "answers/", suffix[] = ".json";
	size_t len = strlen(path), n;

	if (strncmp(path, dir, sizeof(dir) - 1) != 0 || len < sizeof(dir) + sizeof(suffix) - 1)
		return false;
	n = len - (sizeof(dir) - 1) - (sizeof(suffix) - 1);
	if (n >= 64 || strcmp(path + len - (sizeof(suffix) - 1), suffix) != 0 ||
	    memchr(path + sizeof(dir) - 1, '/', n))
		return false;
	memcpy(name, path + sizeof(dir) - 1, n);
	name[n] = '\0';
	return true;
}

static int sort_in(struct pp_bundle *b, const struct pp_member *m, struct pp_error *err)
{
	static const enum pp_entry_kind kinds[] = {[PP_MEMBER_FILE] = PP_ENTRY_FILE,
						   [PP_MEMBER_LINK] = PP_ENTRY_LINK,
						   [PP_MEMBER_DIR] = PP_ENTRY_DIR};
	char name[64];

	if (!strcmp(m->path, "raw"))
		return m->kind == PP_MEMBER_DIR
			       ? put(b, PP_ENTRY_DIR, "/", m, err)
			       : pp_error_set(err, -EBADMSG, "'raw' is no directory");
	if (!strncmp(m->path, "raw/", 4))
		return put(b, kinds[m->kind], m->path + 3, m, err);
	if (m->kind == PP_MEMBER_LINK)
		return pp_error_set(err, -EBADMSG, "'%.300s': a link outside raw/", m->path);
	if (m->kind == PP_MEMBER_DIR)
		return 0;
	if (!strcmp(m->path, "raw.errors"))
		return copy(m, &b->errors_text, err);
	if (answer_name(m->path, name))
		return put(b, PP_ENTRY_ANSWER, name, m, err);
	return keep_file(b, m, err);
}

int pp_bundle_load(void *arg, const struct pp_member *m, struct pp_error *err)
{
	struct pp_bundle *b = arg;
	int r;

	if (!strcmp(m->path, PP_MANIFEST_NAME)) {
		if (m->kind != PP_MEMBER_FILE)
			return pp_error_set(err, -EBADMSG, PP_MANIFEST_NAME " is no file");
		b->manifest_len = m->len;
		return copy(m, &b->manifest_text, err);
	}
	if (m->target && !pp_is_text(m->target, strlen(m->target)))
		return pp_error_set(err, -EBADMSG, "'%.300s': control bytes in its target",
				    m->path);
	r = pp_manifest_add(b->have, m, err);
	return r ? r : sort_in(b, m, err);
}

int pp_bundle_loaded(struct pp_bundle *b, struct pp_error *err)
{
	int r;

	if (!b->manifest_text)
		return pp_error_set(err, -EBADMSG, "no " PP_MANIFEST_NAME " in it: no bundle");
	r = pp_manifest_parse(b->manifest_text, b->manifest_len, &b->manifest, err);
	if (!r)
		r = pp_manifest_sort(b->have, err);
	if (!r)
		r = pp_manifest_compare(b->manifest, b->have, err);
	if (!r && !b->manifest->complete)
		pp_record_set_cut(b->record, 1);
	if (r || !b->errors_text)
		return r;
	r = pp_store_parse_errors(b->errors_text, b->record);
	return r ? pp_error_set(err, r, "raw.errors: damaged") : 0;
}

const struct pp_manifest *pp_bundle_manifest(const struct pp_bundle *b)
{
	return b->manifest;
}

const struct pp_bundle_file *pp_bundle_file(const struct pp_bundle *b, const char *path)
{
	for (const struct kept_file *k = b->files; k; k = k->next)
		if (!strcmp(k->file.path, path))
			return &k->file;
	return NULL;
}

struct pp_record *pp_bundle_record(struct pp_bundle *b)
{
	return b->record;
}

struct pp_record *pp_bundle_take_record(struct pp_bundle *b)
{
	return pp_take(b->record);
}
