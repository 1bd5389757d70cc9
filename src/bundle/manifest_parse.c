/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strict reader of manifest.json. The schema is looked at first, so that a newer bundle is
 * called newer, not broken.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "bundle/manifest_text.h"
#include "base/banned.h"

static const char SCHEMA[] = "peerpath.manifest/";

enum { LABEL_MAX = 256, HEX_DIGITS = 2 * PP_SHA256_BYTES };

static int wrong(struct pp_error *err, const char *what)
{
	return pp_error_set(err, -EBADMSG, PP_MANIFEST_NAME ": %s", what);
}

static int check_schema(const json_t *top, struct pp_error *err)
{
	const char *schema = json_string_value(json_object_get(top, "schema"));
	const char *version = json_string_value(json_object_get(top, "version"));
	uint64_t number;

	if (!schema || strncmp(schema, SCHEMA, sizeof(SCHEMA) - 1) != 0 ||
	    pp_parse_u64(schema + sizeof(SCHEMA) - 1, 1, UINT32_MAX, &number))
		return wrong(err, "no schema 'peerpath.manifest/N'");
	if (number == PP_MANIFEST_SCHEMA)
		return 0;
	(void)pp_error_set(err, -EPROTONOSUPPORT,
			   "newer bundle: written by peerpath %.40s, schema %" PRIu64
			   "; use a newer peerpath",
			   version ? version : "unknown", number);
	pp_sanitize(err->text, false);
	return -EPROTONOSUPPORT;
}

/* The object has these members and no others. */
static int check_keys(json_t *object, const char *const *keys, size_t n, struct pp_error *err)
{
	if (!json_is_object(object))
		return wrong(err, "not an object where one is due");
	for (size_t i = 0; i < n; i++)
		if (!json_object_get(object, keys[i]))
			return pp_error_set(err, -EBADMSG, PP_MANIFEST_NAME ": no member '%s'",
					    keys[i]);
	return json_object_size(object) == n ? 0 : wrong(err, "a member that is not known");
}

static int label(struct pp_manifest *m, const json_t *top, const char *key, const char **ret,
		 struct pp_error *err)
{
	const json_t *v = json_object_get(top, key);
	size_t len = json_string_length(v);
	const char *text = json_string_value(v);

	if (!text || len > LABEL_MAX || strlen(text) != len || !pp_is_text(text, len) ||
	    strpbrk(text, "\n\r\t"))
		return pp_error_set(err, -EBADMSG, PP_MANIFEST_NAME ": '%s' is no short text", key);
	*ret = pp_arena_str(&m->arena, text);
	return 0;
}

static int flag(const json_t *top, const char *key, bool *ret, struct pp_error *err)
{
	const json_t *v = json_object_get(top, key);

	if (!json_is_boolean(v))
		return pp_error_set(err, -EBADMSG, PP_MANIFEST_NAME ": '%s' is no boolean", key);
	*ret = json_is_true(v);
	return 0;
}

/* A text without NUL inside; NULL otherwise. */
static const char *plain(const json_t *v)
{
	const char *text = json_string_value(v);

	return text && strlen(text) == json_string_length(v) ? text : NULL;
}

static int digest_of(const char *hex, uint8_t ret[PP_SHA256_BYTES])
{
	size_t done = 0;

	if (!hex || strlen(hex) != HEX_DIGITS || strspn(hex, "0123456789abcdef") != HEX_DIGITS)
		return -EBADMSG;
	return sodium_hex2bin(ret, PP_SHA256_BYTES, hex, HEX_DIGITS, NULL, &done, NULL) ||
			       done != PP_SHA256_BYTES
		       ? -EBADMSG
		       : 0;
}

static int item_path(json_t *v, const char **ret, struct pp_error *err)
{
	const char *path = plain(v);

	if (!path)
		return wrong(err, "a path that is no text");
	if (pp_member_path_check(path, err))
		return pp_error_prefix(err, PP_MANIFEST_NAME);
	if (!strcmp(path, PP_MANIFEST_NAME))
		return wrong(err, "it lists itself");
	*ret = path;
	return 0;
}

static int file_item(struct pp_manifest *m, json_t *v, struct pp_error *err)
{
	static const char *const keys[] = {"path", "bytes", "sha256"};
	struct pp_manifest_item *item;
	const json_t *bytes = json_object_get(v, "bytes");
	const char *path = NULL;
	uint8_t digest[PP_SHA256_BYTES];
	int r = check_keys(v, keys, PP_ARRAY_LEN(keys), err);

	if (!r)
		r = item_path(json_object_get(v, "path"), &path, err);
	if (r)
		return r;
	if (!json_is_integer(bytes) || json_integer_value(bytes) < 0 ||
	    digest_of(plain(json_object_get(v, "sha256")), digest))
		return pp_error_set(err, -EBADMSG,
				    PP_MANIFEST_NAME ": wrong size or digest of '%.200s'", path);
	item = pp_manifest_append(m, PP_MEMBER_FILE, path, NULL, err);
	if (!item)
		return err->code;
	item->bytes = (uint64_t)json_integer_value(bytes);
	memcpy(item->sha256, digest, sizeof(digest));
	return 0;
}

static int link_item(struct pp_manifest *m, json_t *v, struct pp_error *err)
{
	static const char *const keys[] = {"path", "target"};
	const char *path = NULL, *target = plain(json_object_get(v, "target"));
	int r = check_keys(v, keys, PP_ARRAY_LEN(keys), err);

	if (!r)
		r = item_path(json_object_get(v, "path"), &path, err);
	if (r)
		return r;
	if (!target)
		return wrong(err, "a link without a target");
	return pp_manifest_append(m, PP_MEMBER_LINK, path, target, err) ? 0 : err->code;
}

static int dir_item(struct pp_manifest *m, json_t *v, struct pp_error *err)
{
	const char *path = NULL;
	int r = item_path(v, &path, err);

	if (r)
		return r;
	return pp_manifest_append(m, PP_MEMBER_DIR, path, NULL, err) ? 0 : err->code;
}

static int list(struct pp_manifest *m, const json_t *top, const char *key,
		int (*item)(struct pp_manifest *m, json_t *v, struct pp_error *err),
		struct pp_error *err)
{
	const json_t *array = json_object_get(top, key);
	size_t first = m->n;
	int r;

	if (!json_is_array(array))
		return pp_error_set(err, -EBADMSG, PP_MANIFEST_NAME ": '%s' is no list", key);
	for (size_t i = 0; i < json_array_size(array); i++) {
		r = item(m, json_array_get(array, i), err);
		if (r)
			return r;
		if (i && strcmp(m->items[first + i - 1].path, m->items[first + i].path) >= 0)
			return pp_error_set(err, -EBADMSG,
					    PP_MANIFEST_NAME ": '%.200s' is there twice or not in "
							     "its place",
					    m->items[first + i].path);
	}
	return 0;
}

/* The digest of the text, with zeros where the digest stands. */
static int check_digest(const char *text, size_t len, const json_t *top, struct pp_error *err)
{
	const char *hex = plain(json_object_get(top, "sha256"));
	uint8_t want[PP_SHA256_BYTES], have[PP_SHA256_BYTES];
	crypto_hash_sha256_state state;
	const char *at, *rest;

	if (digest_of(hex, want))
		return wrong(err, "no digest of its own");
	at = memmem(text, len, hex, HEX_DIGITS);
	if (!at)
		return wrong(err, "no digest of its own");
	rest = at + HEX_DIGITS;
	(void)crypto_hash_sha256_init(&state);
	(void)crypto_hash_sha256_update(&state, (const unsigned char *)text, (size_t)(at - text));
	(void)crypto_hash_sha256_update(&state, (const unsigned char *)pp_manifest_zeros,
					HEX_DIGITS);
	(void)crypto_hash_sha256_update(&state, (const unsigned char *)rest,
					len - (size_t)(rest - text));
	(void)crypto_hash_sha256_final(&state, have);
	return sodium_memcmp(want, have, sizeof(want)) ? wrong(err, "changed: its SHA-256 differs")
						       : 0;
}

static int parse(struct pp_manifest *m, json_t *top, struct pp_error *err)
{
	static const char *const keys[] = {"schema", "version",	    "id",	"created",
					   "host",   "scrubbed",    "complete", "files",
					   "links",  "directories", "sha256"};
	int r = check_keys(top, keys, PP_ARRAY_LEN(keys), err);

	if (!r)
		r = label(m, top, "version", &m->version, err);
	if (!r)
		r = label(m, top, "id", &m->id, err);
	if (!r)
		r = label(m, top, "created", &m->created, err);
	if (!r)
		r = label(m, top, "host", &m->host, err);
	if (!r)
		r = flag(top, "scrubbed", &m->scrubbed, err);
	if (!r)
		r = flag(top, "complete", &m->complete, err);
	if (!r)
		r = list(m, top, "files", file_item, err);
	if (!r)
		r = list(m, top, "links", link_item, err);
	if (!r)
		r = list(m, top, "directories", dir_item, err);
	if (!r && pp_manifest_sort(m, err))
		r = pp_error_prefix(err, PP_MANIFEST_NAME);
	return r;
}

int pp_manifest_parse(const char *text, size_t len, struct pp_manifest **ret, struct pp_error *err)
{
	struct pp_manifest *m = NULL;
	json_error_t at;
	json_t *top;
	int r;

	if (len > PP_MANIFEST_BYTES_MAX)
		return pp_error_set(err, -EFBIG, PP_MANIFEST_NAME ": over %d MiB: refused",
				    PP_MANIFEST_BYTES_MAX >> 20);
	top = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);
	if (!top)
		return pp_error_set(err, -EBADMSG, PP_MANIFEST_NAME ": line %d: no valid JSON",
				    at.line);
	r = check_schema(top, err);
	if (!r)
		r = check_digest(text, len, top, err);
	if (!r && pp_manifest_new(&m))
		r = pp_error_set(err, -ENOMEM, "out of memory");
	if (!r)
		r = parse(m, top, err);
	json_decref(top);
	if (r) {
		pp_manifest_free(m);
		return r;
	}
	*ret = m;
	return 0;
}
