/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bundle/manifest_text.h"
#include "base/banned.h"

enum { INITIAL_ITEMS = 256 };

/* Names of 200,000 members with long paths; the archive's own bounds are reached before. */
static const size_t NAMES_LIMIT = (size_t)64 << 20;

const char *const pp_manifest_zeros =
	"0000000000000000000000000000000000000000000000000000000000000000";

const char *pp_hex(const uint8_t *bytes, size_t n, char *text)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	text[2 * n] = '\0';
	return text;
}

int pp_manifest_new(struct pp_manifest **ret)
{
	struct pp_manifest *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->arena = PP_ARENA(NAMES_LIMIT);
	m->version = PEERPATH_VERSION;
	m->id = m->created = m->host = "";
	m->complete = true;
	*ret = m;
	return 0;
}

struct pp_manifest *pp_manifest_free(struct pp_manifest *m)
{
	if (!m)
		return NULL;
	pp_arena_done(&m->arena);
	free(m->items);
	free(m);
	return NULL;
}

struct pp_manifest_item *pp_manifest_append(struct pp_manifest *m, enum pp_member_kind kind,
					    const char *path, const char *target,
					    struct pp_error *err)
{
	struct pp_manifest_item *items;
	size_t cap = m->cap ? m->cap * 2 : INITIAL_ITEMS;

	if (m->n == PP_MEMBERS_MAX) {
		(void)pp_error_set(err, -EFBIG, "more than %d files: refused", PP_MEMBERS_MAX);
		return NULL;
	}
	if (m->n == m->cap) {
		items = reallocarray(m->items, cap, sizeof(*items));
		if (!items) {
			(void)pp_error_set(err, -ENOMEM, "out of memory");
			return NULL;
		}
		m->items = items;
		m->cap = cap;
	}
	m->items[m->n] = (struct pp_manifest_item){
		.kind = kind,
		.path = pp_arena_str(&m->arena, path),
		.target = target ? pp_arena_str(&m->arena, target) : NULL,
	};
	if (m->arena.failed) {
		(void)pp_error_set(err, -EFBIG, "names of more than %zu MiB: refused",
				   NAMES_LIMIT >> 20);
		return NULL;
	}
	return &m->items[m->n++];
}

int pp_manifest_add(struct pp_manifest *m, const struct pp_member *member, struct pp_error *err)
{
	struct pp_manifest_item *item =
		pp_manifest_append(m, member->kind, member->path, member->target, err);

	if (!item)
		return err->code;
	if (member->kind != PP_MEMBER_FILE)
		return 0;
	item->bytes = member->len;
	(void)crypto_hash_sha256(item->sha256, (const unsigned char *)member->data, member->len);
	return 0;
}

static int by_path(const void *a, const void *b)
{
	const struct pp_manifest_item *x = a, *y = b;

	return strcmp(x->path, y->path);
}

int pp_manifest_sort(struct pp_manifest *m, struct pp_error *err)
{
	if (m->n)
		qsort(m->items, m->n, sizeof(*m->items), by_path);
	for (size_t i = 1; i < m->n; i++)
		if (!strcmp(m->items[i - 1].path, m->items[i].path))
			return pp_error_set(err, -EBADMSG, "'%.300s' is there twice",
					    m->items[i].path);
	return 0;
}

static void write_items(struct pp_json *j, const struct pp_manifest *m)
{
	char digest[2 * PP_SHA256_BYTES + 1];

	pp_json_array(j, "files");
	for (const struct pp_manifest_item *i = m->items; i < m->items + m->n; i++) {
		if (i->kind != PP_MEMBER_FILE)
			continue;
		pp_json_object(j, NULL);
		pp_json_str(j, "path", i->path);
		pp_json_u64(j, "bytes", i->bytes);
		pp_json_str(j, "sha256", pp_hex(i->sha256, sizeof(i->sha256), digest));
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
	pp_json_array(j, "links");
	for (const struct pp_manifest_item *i = m->items; i < m->items + m->n; i++) {
		if (i->kind != PP_MEMBER_LINK)
			continue;
		pp_json_object(j, NULL);
		pp_json_str(j, "path", i->path);
		pp_json_str(j, "target", i->target);
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
	pp_json_array(j, "directories");
	for (const struct pp_manifest_item *i = m->items; i < m->items + m->n; i++)
		if (i->kind == PP_MEMBER_DIR)
			pp_json_str(j, NULL, i->path);
	pp_json_end_array(j);
}

int pp_manifest_write(const struct pp_manifest *m, struct pp_buf *out, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_MANIFEST_BYTES_MAX);
	struct pp_json j = PP_JSON(&text, true);
	char hex[2 * PP_SHA256_BYTES + 1];
	uint8_t digest[PP_SHA256_BYTES];

	pp_json_object(&j, NULL);
	pp_json_str(&j, "schema", "peerpath.manifest/1");
	pp_json_str(&j, "version", m->version);
	pp_json_str(&j, "id", m->id);
	pp_json_str(&j, "created", m->created);
	pp_json_str(&j, "host", m->host);
	pp_json_bool(&j, "scrubbed", m->scrubbed);
	pp_json_bool(&j, "complete", m->complete);
	write_items(&j, m);
	pp_json_str(&j, "sha256", pp_manifest_zeros);
	pp_json_end_object(&j);
	if (text.failed)
		return pp_error_set(err, text.failed, "the manifest would be over %d MiB",
				    PP_MANIFEST_BYTES_MAX >> 20);
	(void)crypto_hash_sha256(digest, (const unsigned char *)text.data, text.len);
	/* The digest stands before the closing "\"\n}\n". */
	memcpy(text.data + text.len - 4 - 2 * sizeof(digest), pp_hex(digest, sizeof(digest), hex),
	       2 * sizeof(digest));
	pp_buf_add(out, text.data, text.len);
	return out->failed ? pp_error_set(err, out->failed, "no memory for the manifest") : 0;
}

static const char *const kind_names[] = {"file", "link", "directory"};

static int differs(const struct pp_manifest_item *want, const struct pp_manifest_item *have,
		   struct pp_error *err)
{
	if (want->kind != have->kind)
		return pp_error_set(err, -EBADMSG, "'%.300s' is a %s, the manifest says %s",
				    want->path, kind_names[have->kind], kind_names[want->kind]);
	if (want->kind == PP_MEMBER_LINK && strcmp(want->target, have->target) != 0)
		return pp_error_set(err, -EBADMSG,
				    "'%.300s' points elsewhere than its manifest "
				    "says",
				    want->path);
	if (want->kind != PP_MEMBER_FILE)
		return 0;
	if (want->bytes != have->bytes)
		return pp_error_set(err, -EBADMSG,
				    "'%.300s' has %" PRIu64 " bytes, the manifest says %" PRIu64,
				    want->path, have->bytes, want->bytes);
	if (memcmp(want->sha256, have->sha256, sizeof(want->sha256)) != 0)
		return pp_error_set(err, -EBADMSG, "'%.300s' was changed: its SHA-256 differs",
				    want->path);
	return 0;
}

int pp_manifest_compare(const struct pp_manifest *want, const struct pp_manifest *have,
			struct pp_error *err)
{
	size_t w = 0, h = 0;
	int order, r;

	while (w < want->n || h < have->n) {
		order = w == want->n   ? 1
			: h == have->n ? -1
				       : strcmp(want->items[w].path, have->items[h].path);
		if (order < 0)
			return pp_error_set(err, -EBADMSG, "'%.300s' is missing",
					    want->items[w].path);
		if (order > 0)
			return pp_error_set(err, -EBADMSG, "'%.300s' is not in the manifest",
					    have->items[h].path);
		r = differs(&want->items[w++], &have->items[h++], err);
		if (r)
			return r;
	}
	return 0;
}
