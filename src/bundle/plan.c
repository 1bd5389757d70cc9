/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/plan.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "bundle/environ.h"
#include "base/banned.h"

enum { INITIAL_MEMBERS = 256, ERRORS_MAX = 8 << 20, ID_BYTES = 8 };

static const size_t NAMES_LIMIT = (size_t)64 << 20;

static int out_of_memory(struct pp_error *err)
{
	return pp_error_set(err, -ENOMEM, "out of memory");
}

struct pp_plan *pp_plan_free(struct pp_plan *p)
{
	if (!p)
		return NULL;
	pp_arena_done(&p->arena);
	pp_record_free(p->raw);
	pp_buf_done(&p->errors);
	pp_buf_done(&p->text);
	pp_manifest_free(p->manifest);
	free(p->members);
	free(p);
	return NULL;
}

static int add(struct pp_plan *p, struct pp_member m, struct pp_error *err)
{
	size_t cap = p->cap ? p->cap * 2 : INITIAL_MEMBERS;
	struct pp_member *members;

	if (p->n == PP_MEMBERS_MAX)
		return pp_error_set(err, -EFBIG, "more than %d files", PP_MEMBERS_MAX);
	if (p->n == p->cap) {
		members = reallocarray(p->members, cap, sizeof(*members));
		if (!members)
			return out_of_memory(err);
		p->members = members;
		p->cap = cap;
	}
	m.path = pp_arena_str(&p->arena, m.path);
	if (p->arena.failed)
		return out_of_memory(err);
	p->members[p->n++] = m;
	return 0;
}

/* Is there something above @path that is no directory? */
static bool blocked(const struct pp_record *raw, const char *path)
{
	char dir[PP_PATH_MAX];
	const struct pp_entry *e;

	memcpy(dir, path, strlen(path) + 1);
	for (char *slash = strrchr(dir, '/'); slash && slash != dir; slash = strrchr(dir, '/')) {
		*slash = '\0';
		e = pp_record_get(raw, dir);
		if (e && (e->kind == PP_ENTRY_FILE || e->kind == PP_ENTRY_LINK))
			return true;
	}
	return false;
}

static int add_file(struct pp_plan *p, const char *path, const struct pp_entry *e,
		    struct pp_error *err)
{
	struct pp_member m = {
		.kind = PP_MEMBER_FILE, .path = path, .data = e->content, .len = e->len};
	struct pp_buf PP_AUTO_BUF kept = PP_BUF(PP_ENVIRON_MAX);

	if (pp_environ_is(e->path)) {
		pp_environ_filter(e->content, e->len, &kept);
		m.len = kept.len;
		m.data = pp_arena_strn(&p->arena, pp_buf_text(&kept), kept.len);
		if (kept.failed || p->arena.failed)
			return out_of_memory(err);
	}
	return add(p, m, err);
}

/*
 * A path that could not be read is a directory in the tree, so that a listing of its parent still
 * shows its name; raw.errors says what it really was.
 */
static int add_raw(struct pp_plan *p, const struct pp_entry *e, struct pp_error *err)
{
	char path[PP_PATH_MAX + 8];
	bool is_blocked = blocked(p->raw, e->path);

	(void)snprintf(path, sizeof(path), "raw%s", e->path[1] ? e->path : "");
	if (e->kind == PP_ENTRY_ERROR) {
		const char *name = pp_errno_name(e->error);

		/* A number without a name is still an error: what it was called is lost. */
		pp_buf_printf(&p->errors, "%s\t%s\n", strcmp(name, "errno") ? name : "EIO",
			      e->path);
		p->n_errors++;
	}
	if (is_blocked) {
		p->dropped += e->kind != PP_ENTRY_ERROR;
		return 0;
	}
	switch (e->kind) {
	case PP_ENTRY_FILE:
		return add_file(p, path, e, err);
	case PP_ENTRY_LINK:
		return add(p,
			   (struct pp_member){
				   .kind = PP_MEMBER_LINK, .path = path, .target = e->content},
			   err);
	default:
		if (!e->path[1])
			return 0; /* raw itself is there anyway */
		return add(p, (struct pp_member){.kind = PP_MEMBER_DIR, .path = path}, err);
	}
}

static int add_answer(struct pp_plan *p, const struct pp_entry *e, struct pp_error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	char path[PP_PATH_MAX + 16];
	size_t len = strlen(e->path);

	if (!len || len > 64 || strspn(e->path, allowed) != len) {
		p->dropped++;
		return 0;
	}
	(void)snprintf(path, sizeof(path), "answers/%s.json", e->path);
	return add(p,
		   (struct pp_member){
			   .kind = PP_MEMBER_FILE, .path = path, .data = e->content, .len = e->len},
		   err);
}

static int add_record(struct pp_plan *p, struct pp_record *record, struct pp_error *err)
{
	const struct pp_entry *e;
	size_t n;
	int r = pp_plan_canonical(record, &p->raw, &p->dropped, err);

	if (r)
		return r;
	e = pp_record_entries(p->raw, &n);
	for (size_t i = 0; !r && i < n; i++)
		r = e[i].kind == PP_ENTRY_ANSWER ? add_answer(p, &e[i], err)
						 : add_raw(p, &e[i], err);
	if (r || !p->errors.len)
		return r;
	if (p->errors.failed)
		return out_of_memory(err);
	return add(p,
		   (struct pp_member){.kind = PP_MEMBER_FILE,
				      .path = "raw.errors",
				      .data = p->errors.data,
				      .len = p->errors.len},
		   err);
}

static int by_path(const void *a, const void *b)
{
	const struct pp_member *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* "nodes/a/facts.json" needs "nodes" and "nodes/a". */
static int add_dirs_of(struct pp_plan *p, const char *path, struct pp_error *err)
{
	char dir[PP_MEMBER_PATH_MAX];
	bool there;
	int r = 0;

	memcpy(dir, path, strlen(path) + 1);
	for (char *slash = strchr(dir, '/'); !r && slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		there = false;
		for (size_t i = 0; i < p->n && !there; i++)
			there = !strcmp(p->members[i].path, dir);
		if (!there)
			r = add(p, (struct pp_member){.kind = PP_MEMBER_DIR, .path = dir}, err);
		*slash = '/';
	}
	return r;
}

static int add_files(struct pp_plan *p, const struct pp_bundle_content *c, struct pp_error *err)
{
	int r = 0;

	for (size_t i = 0; !r && i < c->n_files; i++) {
		const struct pp_bundle_file *f = &c->files[i];

		r = pp_member_path_check(f->path, err);
		if (!r)
			r = add_dirs_of(p, f->path, err);
		if (!r)
			r = add(p,
				(struct pp_member){.kind = PP_MEMBER_FILE,
						   .path = f->path,
						   .data = f->data,
						   .len = f->len},
				err);
	}
	return r;
}

static int make_manifest(struct pp_plan *p, const struct pp_bundle_content *c,
			 const struct pp_bundle_options *o, struct pp_error *err)
{
	uint8_t id[ID_BYTES];
	char id_text[2 * ID_BYTES + 1], created[32];
	struct pp_manifest *m;
	int r = 0;

	if (sodium_init() < 0 || pp_manifest_new(&p->manifest))
		return out_of_memory(err);
	m = p->manifest;
	randombytes_buf(id, sizeof(id));
	m->id = pp_arena_str(&m->arena, pp_hex(id, sizeof(id), id_text));
	m->created = pp_arena_str(&m->arena,
				  o->created ? pp_clock_format(o->created, created, sizeof(created))
					     : "unknown");
	m->host = pp_arena_str(&m->arena, o->host && *o->host ? o->host : "node");
	m->scrubbed = o->scrubbed;
	m->complete = !p->dropped && !c->lost && !(c->record && pp_record_cut(c->record));
	for (size_t i = 0; !r && i < p->n; i++)
		r = pp_manifest_add(m, &p->members[i], err);
	if (!r)
		r = pp_manifest_sort(m, err);
	return r ? r : pp_manifest_write(m, &p->text, err);
}

/* The manifest goes first, so that a cut archive still says what it was. */
static int put_manifest_first(struct pp_plan *p, struct pp_error *err)
{
	int r = add(p,
		    (struct pp_member){.kind = PP_MEMBER_FILE,
				       .path = PP_MANIFEST_NAME,
				       .data = p->text.data,
				       .len = p->text.len},
		    err);
	struct pp_member manifest;

	if (r)
		return r;
	manifest = p->members[p->n - 1];
	memmove(p->members + 1, p->members, (p->n - 1) * sizeof(*p->members));
	p->members[0] = manifest;
	return 0;
}

int pp_plan_make(const struct pp_bundle_content *content, const struct pp_bundle_options *options,
		 struct pp_plan **ret, struct pp_error *err)
{
	struct pp_plan *p = calloc(1, sizeof(*p));
	int r = 0;

	if (!p)
		return out_of_memory(err);
	p->arena = PP_ARENA(NAMES_LIMIT);
	p->errors = PP_BUF(ERRORS_MAX);
	p->text = PP_BUF(PP_MANIFEST_BYTES_MAX);
	if (content->record) {
		r = add(p, (struct pp_member){.kind = PP_MEMBER_DIR, .path = "answers"}, err);
		if (!r)
			r = add(p, (struct pp_member){.kind = PP_MEMBER_DIR, .path = "raw"}, err);
		if (!r)
			r = add_record(p, content->record, err);
	}
	if (!r)
		r = add_files(p, content, err);
	if (!r) {
		qsort(p->members, p->n, sizeof(*p->members), by_path);
		r = make_manifest(p, content, options, err);
	}
	if (!r)
		r = put_manifest_first(p, err);
	if (r) {
		pp_plan_free(p);
		return r;
	}
	*ret = p;
	return 0;
}
