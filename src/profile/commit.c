/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/commit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

/* A generation and the direction in which its files go. */
struct move {
	const struct pp_disk *disk;
	const struct pp_generation *g;
	bool back;
};

static const struct pp_disk_state *from(const struct move *m, unsigned int i)
{
	return m->back ? &m->g->entry[i].after : &m->g->entry[i].before;
}

static const struct pp_disk_state *to(const struct move *m, unsigned int i)
{
	return m->back ? &m->g->entry[i].before : &m->g->entry[i].after;
}

static bool moves(const struct move *m, unsigned int i)
{
	return !pp_disk_same(from(m, i), to(m, i));
}

/*
 * Copies wait beside the file, where a rename suffices. No reader of these directories takes them
 * for its own: the names begin with a dot and do not end in ".conf" or ".cfg".
 */
static void beside(const char *path, const char *what, char name[PP_DISK_PATH])
{
	const char *slash = strrchr(path, '/');

	(void)snprintf(name, PP_DISK_PATH, "%.*s/.%s.peerpath-%s", (int)(slash - path), path,
		       slash + 1, what);
}

static int copy(const struct move *m, unsigned int i, const struct pp_disk_state *state,
		const char *what, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_DISK_FILE_MAX);
	char name[PP_DISK_PATH];
	int r;

	if (!state->exists)
		return 0;
	beside(m->g->entry[i].path, what, name);
	r = pp_state_content(m->disk, state, &text, err);
	return r ? r : pp_disk_create(m->disk, name, pp_buf_text(&text), text.len, state, err);
}

static int make_dirs(const struct move *m, struct pp_error *err)
{
	int r = 0;

	for (unsigned int i = 0; !m->back && !r && i < m->g->n_dirs; i++)
		r = pp_disk_mkdir(m->disk, m->g->dir[i], 0755, err);
	return r;
}

static int stage(const struct move *m, struct pp_error *err)
{
	int r = make_dirs(m, err);

	for (unsigned int i = 0; !r && i < m->g->n; i++) {
		if (!moves(m, i))
			continue;
		r = copy(m, i, to(m, i), "new", err);
		r = r ? r : copy(m, i, from(m, i), "old", err);
	}
	return r;
}

/* Copies of both kinds go, and made directories unless somebody uses them. */
static int sweep(const struct move *m, bool dirs, struct pp_error *err)
{
	static const char *const kinds[] = {"new", "old"};
	char name[PP_DISK_PATH];
	int r = 0;

	for (unsigned int i = 0; !r && i < 2 * m->g->n; i++) {
		if (!moves(m, i / 2))
			continue;
		beside(m->g->entry[i / 2].path, kinds[i % 2], name);
		r = pp_disk_unlink(m->disk, name, err);
	}
	for (unsigned int i = m->g->n_dirs; dirs && !r && i > 0; i--)
		r = pp_disk_rmdir(m->disk, m->g->dir[i - 1], err);
	return r;
}

/* The file becomes @target, by the copy @what. */
static int turn(const struct move *m, unsigned int i, const struct pp_disk_state *target,
		const struct pp_disk_state *other, const char *what, struct pp_error *err)
{
	const char *path = m->g->entry[i].path;
	struct pp_disk_state now, waiting;
	char name[PP_DISK_PATH];
	int r = pp_disk_read(m->disk, path, NULL, &now, err);

	if (r || pp_disk_same(&now, target))
		return r;
	if (!pp_disk_same(&now, other))
		return pp_error_set(err, -ESTALE, "%s was changed by others meanwhile", path);
	if (!target->exists)
		return (r = pp_disk_unlink(m->disk, path, err)) ? r
								: pp_disk_sync(m->disk, path, err);
	beside(path, what, name);
	r = pp_disk_read(m->disk, name, NULL, &waiting, err);
	if (!r && !pp_disk_same(&waiting, target))
		r = copy(m, i, target, what, err);
	r = r ? r : pp_disk_rename(m->disk, name, path, err);
	return r ? r : pp_disk_sync(m->disk, path, err);
}

static int forward(const struct move *m, struct pp_error *err)
{
	int r = make_dirs(m, err);

	for (unsigned int i = 0; !r && i < m->g->n; i++)
		if (moves(m, i))
			r = turn(m, i, to(m, i), from(m, i), "new", err);
	return r;
}

/* All of them, though one fails. What is neither was never ours to change: it stays. */
static int backward(const struct move *m, struct pp_error *err)
{
	struct pp_error one = {0};
	int r = 0, k;

	for (unsigned int i = 0; i < m->g->n; i++) {
		k = moves(m, i) ? turn(m, i, from(m, i), to(m, i), "old", &one) : 0;
		if (k && k != -ESTALE && !r) {
			*err = one;
			r = k;
		}
	}
	return r;
}

static int write_journal(const struct move *m, bool committed, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(4096);

	pp_journal_write(&(struct pp_journal){.rollback = m->back,
					      .of = m->g->number,
					      .committed = committed},
			 &text);
	return pp_state_put(m->disk, "journal", &text, err);
}

static int end_journal(const struct move *m, struct pp_error *err)
{
	int r = pp_disk_unlink(m->disk, PP_STATE_DIR "/journal", err);

	return r ? r : pp_disk_sync(m->disk, PP_STATE_DIR "/journal", err);
}

static int set_current(const struct move *m, unsigned int number, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(4096);

	pp_current_write(number, &text);
	return pp_state_put(m->disk, "current", &text, err);
}

/* Only where it was changed: on a full disk there may be no room for a new one. */
static int reset_current(const struct move *m, struct pp_error *err)
{
	unsigned int was = m->back ? m->g->number : m->g->previous, now = 0;
	struct pp_state s;
	int r = pp_state_read(m->disk, &s, err);

	if (!r)
		now = s.current ? s.current->number : 0;
	pp_state_done(&s);
	return r || now == was ? r : set_current(m, was, err);
}

/* A generation that is not, or no longer, in effect. */
static void forget(const struct move *m)
{
	struct pp_error ignored = {0};
	char name[64], path[PP_DISK_PATH];

	pp_state_generation_name(m->g->number, name);
	(void)snprintf(path, sizeof(path), "%s/%s", PP_STATE_DIR, name);
	(void)pp_disk_unlink(m->disk, path, &ignored);
}

static int undo_staged(const struct move *m, struct pp_error *err)
{
	int r = sweep(m, !m->back, err);

	r = r ? r : end_journal(m, err);
	if (!r && !m->back)
		forget(m);
	return r;
}

static int complete(const struct move *m, struct pp_error *err)
{
	int r = forward(m, err);

	return r ? r : set_current(m, m->back ? m->g->previous : m->g->number, err);
}

/* Nothing is lost when this fails: the next start does it. */
static void clean(const struct move *m)
{
	struct pp_error ignored = {0};

	if (!sweep(m, m->back, &ignored) && !end_journal(m, &ignored) && m->back)
		forget(m);
}

/*
 * After the journal says "committed". The first error is what the caller learns; one that is also
 * in the way back leaves the journal, and the next start goes on.
 */
static int commit(const struct move *m, bool *ret_undone, struct pp_error *err)
{
	struct pp_error back = {0};
	int r = complete(m, err);

	*ret_undone = false;
	if (!r) {
		clean(m);
		return 0;
	}
	if (backward(m, &back) || reset_current(m, &back) || undo_staged(m, &back)) {
		char why[256];

		(void)snprintf(why, sizeof(why), "%.255s", err->text);
		return pp_error_set(
			err, r, "%s; and undoing it: %.200s. The next 'peerpath profile' goes on",
			why, back.text);
	}
	*ret_undone = true;
	return r;
}

/* From "staged" on; an error before "committed" leaves nothing behind. */
static int run(const struct move *m, struct pp_error *err)
{
	struct pp_error ignored = {0};
	bool undone;
	int r = write_journal(m, false, err);

	r = r ? r : stage(m, err);
	r = r ? r : write_journal(m, true, err);
	if (!r)
		return commit(m, &undone, err);
	(void)undo_staged(m, &ignored);
	return r;
}

static int keep_contents(const struct pp_state *s, const struct pp_change *c, struct pp_error *err)
{
	int r = 0;

	for (unsigned int i = 0; !r && i < c->next->n; i++) {
		const struct pp_generation_entry *e = &c->next->entry[i];

		r = pp_state_keep(s->disk, &e->before, c->file[i].before, err);
		r = r ? r : pp_state_keep(s->disk, &e->after, c->file[i].after, err);
	}
	return r;
}

static int reload(struct pp_state *s, struct pp_error *err)
{
	const struct pp_disk *d = s->disk;
	struct pp_state fresh;
	int r = pp_state_read(d, &fresh, err);

	if (r) {
		pp_state_done(&fresh);
		return r;
	}
	pp_generation_free(s->current);
	fresh.lock = s->lock;
	*s = fresh;
	return 0;
}

int pp_commit_apply(struct pp_state *s, const struct pp_change *c, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_GENERATION_BYTES);
	struct move m = {.disk = s->disk, .g = c->next};
	char name[64];
	int r = keep_contents(s, c, err);

	if (r)
		return r;
	pp_generation_write(c->next, &text);
	pp_state_generation_name(c->next->number, name);
	r = pp_state_put(s->disk, name, &text, err);
	r = r ? r : run(&m, err);
	return r ? r : reload(s, err);
}

int pp_commit_rollback(struct pp_state *s, struct pp_error *err)
{
	struct move m = {.disk = s->disk, .g = s->current, .back = true};
	int r;

	if (!s->current)
		return pp_error_set(err, -ENOENT, "no profile is applied");
	r = run(&m, err);
	return r ? r : reload(s, err);
}

int pp_commit_recover(struct pp_state *s, enum pp_recovery *ret, struct pp_error *err)
{
	struct pp_generation *g = NULL;
	struct move m = {.disk = s->disk, .back = s->journal.rollback};
	bool undone = false;
	int r;

	*ret = PP_RECOVERY_NONE;
	if (!s->unfinished)
		return 0;
	r = pp_state_generation(s->disk, s->journal.of, &g, err);
	if (r)
		return r;
	m.g = g;
	*ret = s->journal.committed ? PP_RECOVERY_COMPLETED : PP_RECOVERY_UNDONE;
	r = s->journal.committed ? commit(&m, &undone, err) : undo_staged(&m, err);
	if (undone) {
		*ret = PP_RECOVERY_UNDONE;
		r = 0;
	}
	pp_generation_free(g);
	return r ? r : reload(s, err);
}
