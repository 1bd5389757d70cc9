/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes over the record. The first learns: every name, GUID and address that stands in a
 * place or a shape of its own. The second replaces them wherever they stand, so the result does
 * not depend on the order of the files.
 */
#include "bundle/scrub.h"

#include <errno.h>
#include <fnmatch.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "bundle/scrub_cmdline.h"
#include "bundle/scrub_context.h"
#include "bundle/scrub_pci.h"
#include "node/source.h"
#include "base/banned.h"

enum { FILE_MAX = 64 << 20, GZIP_MAX = 16 << 20 };

static const size_t RECORD_LIMIT = (size_t)384 << 20;

struct pass {
	struct pp_scrub_text text;
	struct pp_record *to; /* NULL: learning */
	size_t dropped;
};

/* Text, or pieces of text separated by NUL as scans keep them. */
static bool is_text(const struct pp_entry *e)
{
	bool high = false;
	json_t *v;

	for (size_t i = 0; i < e->len; i++) {
		unsigned char c = (unsigned char)e->content[i];

		if (c == 0x7f || (c && c < 0x20 && !strchr("\n\t\r\f\v\b\033", c)))
			return false;
		high |= c >= 0x80;
	}
	if (!high)
		return true;
	v = json_stringn(e->content, e->len); /* refuses what is not UTF-8 */
	json_decref(v);
	return v != NULL;
}

static int put(struct pass *p, enum pp_entry_kind kind, const char *path, const struct pp_buf *b,
	       int error)
{
	return p->to ? pp_record_put(p->to, kind, path, pp_buf_text(b), b->len, error) : 0;
}

/*
 * What cannot be scrubbed is not kept, and is no absence either: "no data available". Vital
 * product data is nothing but serial numbers.
 */
static int drop(struct pass *p, const char *path)
{
	const struct pp_buf none = PP_BUF(0);

	p->dropped++;
	return put(p, PP_ENTRY_ERROR, path, &none, -ENODATA);
}

static int inflate_all(const char *from, size_t len, struct pp_buf *out)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)from, .avail_in = (uInt)len};
	unsigned char part[16384];
	int r = inflateInit2(&z, 15 + 16);

	while (r == Z_OK) {
		z.next_out = part;
		z.avail_out = sizeof(part);
		r = inflate(&z, Z_NO_FLUSH);
		if (r == Z_OK || r == Z_STREAM_END)
			pp_buf_add(out, part, sizeof(part) - z.avail_out);
		if (out->failed)
			r = Z_BUF_ERROR;
	}
	(void)inflateEnd(&z);
	return r == Z_STREAM_END ? 0 : -EBADMSG;
}

static int deflate_all(const struct pp_buf *from, struct pp_buf *out)
{
	z_stream z = {.next_in = (Bytef *)from->data, .avail_in = (uInt)from->len};
	unsigned char part[16384];
	int r = deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);

	while (r == Z_OK) {
		z.next_out = part;
		z.avail_out = sizeof(part);
		r = deflate(&z, Z_FINISH);
		pp_buf_add(out, part, sizeof(part) - z.avail_out);
	}
	(void)deflateEnd(&z);
	return r == Z_STREAM_END && !out->failed ? 0 : -ENOMEM;
}

/* The kernel's configuration is a gzip file: text all the same. */
static int scrub_gzip(struct pass *p, const struct pp_entry *e, const char *path)
{
	struct pp_buf PP_AUTO_BUF plain = PP_BUF(GZIP_MAX), PP_AUTO_BUF done = PP_BUF(GZIP_MAX),
				  PP_AUTO_BUF packed = PP_BUF(GZIP_MAX);
	struct pp_entry inner = {.kind = PP_ENTRY_FILE, .path = e->path};
	int r = inflate_all(e->content, e->len, &plain);

	inner.content = pp_buf_text(&plain);
	inner.len = plain.len;
	if (r || !is_text(&inner))
		return drop(p, path);
	pp_scrub_value(&p->text, pp_scrub_context_of_path(e->path), inner.content, inner.len,
		       &done);
	if (!p->to)
		return 0;
	r = done.failed ? done.failed : deflate_all(&done, &packed);
	return r ? r : put(p, PP_ENTRY_FILE, path, &packed, 0);
}

static int scrub_file(struct pass *p, const struct pp_entry *e, const char *path)
{
	struct pp_buf PP_AUTO_BUF out = PP_BUF(FILE_MAX), PP_AUTO_BUF kept = PP_BUF(FILE_MAX);

	if (!fnmatch("*/vpd", e->path, 0))
		return drop(p, path);
	if (!fnmatch("/sys/*/config", e->path, 0)) {
		pp_buf_add(&out, e->content, e->len);
		if (!out.failed)
			pp_scrub_config((uint8_t *)out.data, out.len);
		return out.failed ? out.failed : put(p, PP_ENTRY_FILE, path, &out, 0);
	}
	if (e->len > 2 && !memcmp(e->content, "\x1f\x8b", 2))
		return scrub_gzip(p, e, path);
	if (!is_text(e))
		return drop(p, path);
	if (!strcmp(e->path, "/proc/cmdline")) {
		p->text.replaced += pp_scrub_cmdline(e->content, e->len, &kept);
		pp_scrub_value(&p->text, pp_scrub_context_of_path(e->path), pp_buf_text(&kept),
			       kept.len, &out);
		return out.failed ? out.failed : put(p, PP_ENTRY_FILE, path, &out, 0);
	}
	pp_scrub_value(&p->text, pp_scrub_context_of_path(e->path), e->content, e->len, &out);
	return out.failed ? out.failed : put(p, PP_ENTRY_FILE, path, &out, 0);
}

static int scrub_answer(struct pass *p, const struct pp_entry *e)
{
	struct pp_buf PP_AUTO_BUF out = PP_BUF(FILE_MAX);
	int r = pp_scrub_json(&p->text, e->content, e->len, &out);

	if (r == -EBADMSG) {
		p->dropped++;
		return 0;
	}
	return r ? r : put(p, PP_ENTRY_ANSWER, e->path, &out, 0);
}

/* Paths hold versions with dots, and names. */
static int scrub_path(struct pass *p, const char *path, struct pp_buf *out)
{
	p->text.versions = true;
	pp_scrub_text(&p->text, path, strlen(path), out);
	p->text.versions = false;
	return out->failed;
}

static int scrub_entry(struct pass *p, const struct pp_entry *e)
{
	struct pp_buf PP_AUTO_BUF path = PP_BUF(4 * PP_PATH_MAX),
				  PP_AUTO_BUF target = PP_BUF(4 * PP_PATH_MAX);
	const struct pp_buf none = PP_BUF(0);
	int r;

	if (e->kind == PP_ENTRY_ANSWER)
		return scrub_answer(p, e);
	r = scrub_path(p, e->path, &path);
	if (r)
		return r;
	switch (e->kind) {
	case PP_ENTRY_FILE:
		return scrub_file(p, e, path.data);
	case PP_ENTRY_LINK:
		r = scrub_path(p, e->content, &target);
		return r ? r : put(p, e->kind, path.data, &target, 0);
	default:
		return put(p, e->kind, path.data, &none, e->error);
	}
}

/*
 * A word that is part of a device's, a module's or a library's path would take evidence with it:
 * it is replaced in its own places only.
 */
static void spare_evidence(struct pp_scrub_map *m, const struct pp_entry *e, size_t n)
{
	static const char *const evidence[] = {"/sys/", "/proc/", "/dev/", "/lib", "/usr/lib"};
	bool relevant;

	for (size_t i = 0; i < n; i++) {
		relevant = false;
		for (size_t k = 0; k < PP_ARRAY_LEN(evidence) && e[i].kind != PP_ENTRY_ANSWER; k++)
			relevant |= !strncmp(e[i].path, evidence[k], strlen(evidence[k]));
		for (size_t w = 0; relevant && w < m->n_words; w++) {
			const char *at = strcasestr(e[i].path, m->words[w].from);

			if (at && !pp_scrub_is_word(at[m->words[w].len]) &&
			    !pp_scrub_is_word(at[-1]))
				m->words[w].everywhere = false;
		}
	}
}

static int run(struct pass *p, const struct pp_entry *e, size_t n)
{
	int r = 0;

	for (size_t i = 0; !r && i < n; i++)
		r = scrub_entry(p, &e[i]);
	return r || !p->text.map->failed ? r : -EFBIG;
}

/* ── several records and files together ── */

struct pp_scrubber {
	struct pass pass;
};

static int failed(int r, struct pp_error *err)
{
	return pp_error_set(err, r, "cannot scrub: %s",
			    r == -EFBIG ? "more names or networks than can be replaced"
					: pp_source_why(r));
}

int pp_scrubber_new(struct pp_scrubber **ret, struct pp_error *err)
{
	struct pp_scrubber *s = calloc(1, sizeof(*s));
	int r = s ? pp_scrub_map_new(&s->pass.text.map) : -ENOMEM;

	if (r) {
		free(s);
		return failed(r, err);
	}
	*ret = s;
	return 0;
}

struct pp_scrubber *pp_scrubber_free(struct pp_scrubber *s)
{
	if (s)
		pp_scrub_map_free(s->pass.text.map);
	free(s);
	return NULL;
}

int pp_scrubber_learn(struct pp_scrubber *s, struct pp_record *in, struct pp_error *err)
{
	const struct pp_entry *e;
	size_t n;
	int r;

	e = pp_record_entries(in, &n);
	s->pass.to = NULL;
	r = run(&s->pass, e, n);
	s->pass.text.replaced = s->pass.dropped = 0;
	return r ? failed(r, err) : 0;
}

void pp_scrubber_spare(struct pp_scrubber *s, struct pp_record *in)
{
	const struct pp_entry *e;
	size_t n;

	e = pp_record_entries(in, &n);
	spare_evidence(s->pass.text.map, e, n);
}

int pp_scrubber_record(struct pp_scrubber *s, struct pp_record *in, struct pp_record **ret,
		       struct pp_error *err)
{
	struct pp_record *to = NULL;
	const struct pp_entry *e;
	size_t n;
	int r = pp_record_new(RECORD_LIMIT, &to);

	e = pp_record_entries(in, &n);
	s->pass.to = to;
	if (!r)
		r = run(&s->pass, e, n);
	s->pass.to = NULL;
	if (r) {
		pp_record_free(to);
		return failed(r, err);
	}
	pp_record_set_cut(to, pp_record_cut(in));
	*ret = to;
	return 0;
}

/* Its content; -ENODATA where it cannot be scrubbed. */
static int scrub_content(struct pass *p, const struct pp_bundle_file *f, struct pp_buf *out)
{
	const struct pp_entry e = {.kind = PP_ENTRY_FILE,
				   .path = (char *)(uintptr_t)f->path,
				   .content = (char *)(uintptr_t)f->data,
				   .len = f->len};
	int r;

	if (!fnmatch("*.json", f->path, 0)) {
		r = pp_scrub_json(&p->text, f->data, f->len, out);
		pp_buf_char(out, '\n');
		return r == -EBADMSG ? -ENODATA : r ? r : out->failed;
	}
	if (!is_text(&e))
		return -ENODATA;
	pp_scrub_value(&p->text, PP_SCRUB_AS_TEXT, f->data, f->len, out);
	return out->failed;
}

int pp_scrubber_learn_file(struct pp_scrubber *s, const struct pp_bundle_file *f,
			   struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF out = PP_BUF(FILE_MAX);
	int r = scrub_content(&s->pass, f, &out);

	s->pass.text.replaced = s->pass.dropped = 0;
	if (!r && s->pass.text.map->failed)
		r = -EFBIG;
	return r && r != -ENODATA ? failed(r, err) : 0;
}

int pp_scrubber_file(struct pp_scrubber *s, const struct pp_bundle_file *f, struct pp_arena *arena,
		     struct pp_bundle_file *ret, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF out = PP_BUF(FILE_MAX), PP_AUTO_BUF path = PP_BUF(PP_PATH_MAX);
	int r = scrub_content(&s->pass, f, &out);

	if (r == -ENODATA)
		s->pass.dropped++;
	if (!r)
		r = scrub_path(&s->pass, f->path, &path);
	if (!r && s->pass.text.map->failed)
		r = -EFBIG;
	if (!r) {
		*ret = (struct pp_bundle_file){
			.path = pp_arena_strn(arena, pp_buf_text(&path), path.len),
			.data = pp_arena_strn(arena, pp_buf_text(&out), out.len),
			.len = out.len};
		r = arena->failed ? -ENOMEM : 0;
	}
	return r && r != -ENODATA ? failed(r, err) : r;
}

struct pp_scrub_counts pp_scrubber_counts(const struct pp_scrubber *s)
{
	return (struct pp_scrub_counts){.replaced = s->pass.text.replaced,
					.dropped = s->pass.dropped};
}

int pp_scrub_record(struct pp_record *in, struct pp_record **ret,
		    struct pp_scrub_counts *ret_counts, struct pp_error *err)
{
	struct pp_scrubber *s = NULL;
	int r = pp_scrubber_new(&s, err);

	if (!r)
		r = pp_scrubber_learn(s, in, err);
	if (!r) {
		pp_scrubber_spare(s, in);
		r = pp_scrubber_record(s, in, ret, err);
	}
	if (!r)
		*ret_counts = pp_scrubber_counts(s);
	pp_scrubber_free(s);
	return r;
}
