/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/change.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profile/need.h"
#include "base/banned.h"

static int keep_text(const struct pp_buf *text, char **ret, struct pp_error *err)
{
	if (strlen(pp_buf_text(text)) != text->len)
		return pp_error_set(err, -EINVAL, "a file holds NUL bytes");
	*ret = text->failed ? NULL : strdup(pp_buf_text(text));
	return *ret ? 0 : pp_error_set(err, -ENOMEM, "out of memory");
}

/* A new file is the process's; one that is replaced keeps its owner. */
static void declared(struct pp_disk_state *after, const struct pp_disk_state *now,
		     unsigned int mode, const char *text)
{
	*after = (struct pp_disk_state){.exists = true,
					.mode = mode,
					.uid = now->exists ? now->uid : geteuid(),
					.gid = now->exists ? now->gid : getegid()};
	pp_disk_digest(text, strlen(text), after);
}

/* Lines that others have put there stay: the keys go into what was there before any profile. */
static int merged(const struct pp_state *s, const struct pp_generation_entry *e, const char *before,
		  const char *set, struct pp_buf *ret, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF origin = PP_BUF(PP_DISK_FILE_MAX);
	int r = 0;

	if (e->managed && !pp_disk_same(&e->origin, &e->before)) {
		r = pp_state_content(s->disk, &e->origin, &origin, err);
		before = pp_buf_text(&origin);
	}
	if (!r)
		pp_profile_merge(before, set, ret);
	return r;
}

static int wanted(const struct pp_state *s, const struct pp_profile_file *f,
		  struct pp_generation_entry *e, struct pp_change_file *c, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_DISK_FILE_MAX);
	int r = 0;

	e->after = (struct pp_disk_state){0};
	switch (f->action) {
	case PP_PROFILE_WRITE:
		pp_buf_str(&text, f->text);
		declared(&e->after, &e->before, f->mode, f->text);
		break;
	case PP_PROFILE_SET:
		r = merged(s, e, c->before, f->text, &text, err);
		declared(&e->after, &e->before, e->before.exists ? e->before.mode : f->mode,
			 pp_buf_text(&text));
		break;
	case PP_PROFILE_KEEP:
		pp_buf_str(&text, c->before);
		e->after = e->before;
		break;
	case PP_PROFILE_ABSENT:
		break;
	}
	return r ? r : keep_text(&text, &c->after, err);
}

static int given_back(const struct pp_state *s, struct pp_generation_entry *e,
		      struct pp_change_file *c, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_DISK_FILE_MAX);
	int r = pp_state_content(s->disk, &e->origin, &text, err);

	e->managed = false;
	e->after = e->origin;
	return r ? r : keep_text(&text, &c->after, err);
}

static int add(struct pp_change *ch, const struct pp_state *s, const char *path,
	       const struct pp_profile_file *f, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF now = PP_BUF(PP_DISK_FILE_MAX);
	const struct pp_generation_entry *was = pp_generation_find(s->current, path);
	struct pp_generation_entry *e = &ch->next->entry[ch->next->n];
	struct pp_change_file *c = &ch->file[ch->next->n];
	bool managed = was && was->managed;
	int r;

	if (ch->next->n == PP_GENERATION_ENTRIES)
		return pp_error_set(err, -EFBIG, "more than %d files", PP_GENERATION_ENTRIES);
	if (f && f->action == PP_PROFILE_KEEP && !managed)
		return 0;
	r = pp_disk_read(s->disk, path, &now, &e->before, err);
	r = r ? r : keep_text(&now, &c->before, err);
	if (r)
		return r;
	e->path = pp_arena_str(&ch->next->arena, path);
	e->origin = managed ? was->origin : e->before;
	e->managed = true;
	c->of = f;
	r = f ? wanted(s, f, e, c, err) : given_back(s, e, c, err);
	if (!r && pp_disk_same(&e->before, &e->after))
		e->after = e->before;
	c->differs = !pp_disk_same(&e->before, &e->after);
	ch->differing += c->differs;
	ch->next->n++;
	return r;
}

/* Directories that are not there and must be, outermost first. */
static int add_dirs(struct pp_change *ch, const struct pp_state *s, const char *path,
		    struct pp_error *err)
{
	struct pp_generation *g = ch->next;
	char dir[PP_DISK_PATH];
	int r;

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		bool known = false;

		(void)snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
		for (unsigned int i = 0; i < g->n_dirs; i++)
			known |= !strcmp(g->dir[i], dir);
		r = known ? 1 : pp_disk_has_dir(s->disk, dir);
		if (r < 0)
			return pp_error_set(err, r, "%s: no directory that can be used", dir);
		if (r)
			continue;
		if (g->n_dirs == PP_GENERATION_DIRS)
			return pp_error_set(err, -EFBIG, "too many directories are missing");
		g->dir[g->n_dirs++] = pp_arena_str(&g->arena, dir);
	}
	return 0;
}

static void head(struct pp_change *ch, const struct pp_state *s)
{
	struct pp_generation *g = ch->next;
	const struct pp_profile *p = ch->profile;
	time_t now = time(NULL);
	char text[32] = "unknown";
	struct tm tm;

	if (gmtime_r(&now, &tm))
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	g->previous = s->current ? s->current->number : 0;
	g->number = g->previous + 1;
	g->name = pp_arena_str(&g->arena, p->name);
	g->title = pp_arena_str(&g->arena, p->title);
	g->sha256 = pp_arena_str(&g->arena, p->sha256);
	g->registration = p->registration;
	g->applied = pp_arena_str(&g->arena, text);
}

static int fill(struct pp_change *ch, const struct pp_state *s, struct pp_error *err)
{
	const struct pp_profile *p = ch->profile;
	int r = pp_disk_has_dir(s->disk, "/etc");

	if (r != 1)
		return pp_error_set(err, r ? r : -ENOENT, "%s has no /etc: no root of a system",
				    s->disk->name);
	r = 0;
	for (unsigned int i = 0; !r && i < p->n_files; i++)
		r = add(ch, s, p->file[i].path, &p->file[i], err);
	for (unsigned int i = 0; !r && s->current && i < s->current->n; i++)
		if (s->current->entry[i].managed &&
		    !pp_profile_file_of(p, s->current->entry[i].path))
			r = add(ch, s, s->current->entry[i].path, NULL, err);
	for (unsigned int i = 0; !r && i < ch->next->n; i++)
		if (ch->next->entry[i].after.exists)
			r = add_dirs(ch, s, ch->next->entry[i].path, err);
	if (!r && ch->next->arena.failed)
		r = pp_error_set(err, -ENOMEM, "out of memory");
	return r;
}

int pp_change_make(const struct pp_state *s, const struct pp_profile *p, struct pp_change **ret,
		   struct pp_error *err)
{
	struct pp_change *ch = calloc(1, sizeof(*ch));
	int r;

	if (!ch || pp_generation_new(&ch->next)) {
		free(ch);
		return pp_error_set(err, -ENOMEM, "out of memory");
	}
	ch->profile = p;
	head(ch, s);
	r = fill(ch, s, err);
	if (r)
		pp_change_free(ch);
	else
		*ret = ch;
	return r;
}

struct pp_change *pp_change_free(struct pp_change *c)
{
	if (!c)
		return NULL;
	for (unsigned int i = 0; i < PP_GENERATION_ENTRIES; i++) {
		free(c->file[i].before);
		free(c->file[i].after);
	}
	pp_generation_free(c->next);
	free(c);
	return NULL;
}

bool pp_change_drops_peermem(const struct pp_state *s, const struct pp_change *c)
{
	bool was = false, is = false, blocked = false;

	if (c->profile->registration != PP_REGISTERED_DMABUF)
		return false;
	if (s->current && s->current->registration == PP_REGISTERED_DMABUF)
		return false;
	for (unsigned int i = 0; i < c->next->n; i++) {
		const struct pp_spot *spot = pp_spot_find(c->next->entry[i].path);
		const char *before = c->file[i].before, *after = c->file[i].after;

		if (!strcmp(spot->name, "modules-load.d")) {
			was |= pp_profile_loads_peermem(before);
			is |= pp_profile_loads_peermem(after);
		}
		if (!strcmp(spot->name, "modprobe.d"))
			blocked |= pp_profile_blocks_peermem(after) &&
				   !pp_profile_blocks_peermem(before);
	}
	return blocked || (was && !is);
}

/* Is it met by each object that it is asked of? */
static bool is_met(const struct pp_profile *p, const struct pp_profile_need *need,
		   const struct pp_facts *facts)
{
	struct pp_need *row = facts ? calloc(PP_NEEDS, sizeof(*row)) : NULL;
	unsigned int n = row ? pp_need_test(p, facts, row) : 0;
	bool met = n > 0;

	for (unsigned int i = 0; i < n; i++)
		met &= row[i].need != need || row[i].state == PP_TRUE;
	free(row);
	return met;
}

const char *pp_change_forbidden(const struct pp_change *c, const struct pp_policy *policy,
				const struct pp_facts *facts, const char **ret_reason)
{
	const struct pp_profile *p = c->profile;

	for (unsigned int i = 0; i < c->next->n; i++) {
		const char *fix = c->file[i].of ? c->file[i].of->fix_id : NULL;

		if (c->file[i].differs && (*ret_reason = pp_policy_forbids(policy, fix)))
			return fix;
	}
	for (unsigned int i = 0; i < p->n_needs; i++)
		if ((*ret_reason = pp_policy_forbids(policy, p->need[i].fix_id)) &&
		    !is_met(p, &p->need[i], facts))
			return p->need[i].fix_id;
	return NULL;
}
