/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

static void path_of(const char *name, char path[PP_DISK_PATH])
{
	(void)snprintf(path, PP_DISK_PATH, "%s/%s", PP_STATE_DIR, name);
}

void pp_state_generation_name(unsigned int number, char name[64])
{
	(void)snprintf(name, 64, "generations/%u", number);
}

static int damaged(const char *path, int r, struct pp_error *err)
{
	char why[512];

	(void)snprintf(why, sizeof(why), "%s", err->text);
	return pp_error_set(err, r == -ENOMEM ? r : -EBADMSG, "%s is damaged: %.300s", path, why);
}

int pp_state_generation(const struct pp_disk *d, unsigned int number, struct pp_generation **ret,
			struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_GENERATION_BYTES);
	struct pp_disk_state state;
	char name[64], path[PP_DISK_PATH];
	int r;

	pp_state_generation_name(number, name);
	path_of(name, path);
	r = pp_disk_read(d, path, &text, &state, err);
	if (r)
		return r;
	if (!state.exists)
		return pp_error_set(err, -EBADMSG, "%s is missing", path);
	r = pp_generation_parse(name, pp_buf_text(&text), text.len, ret, err);
	if (r)
		return damaged(path, r, err);
	if ((*ret)->number == number)
		return 0;
	*ret = pp_generation_free(*ret);
	return pp_error_set(err, -EBADMSG, "%s is that of another number", path);
}

static int read_journal(struct pp_state *s, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(4096);
	struct pp_disk_state state;
	char path[PP_DISK_PATH];
	int r;

	path_of("journal", path);
	r = pp_disk_read(s->disk, path, &text, &state, err);
	if (r || !state.exists)
		return r;
	r = pp_journal_parse("journal", pp_buf_text(&text), text.len, &s->journal, err);
	s->unfinished = !r;
	return r ? damaged(path, r, err) : 0;
}

static int read_current(struct pp_state *s, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(4096);
	struct pp_disk_state state;
	char path[PP_DISK_PATH];
	unsigned int number;
	int r;

	path_of("current", path);
	r = pp_disk_read(s->disk, path, &text, &state, err);
	if (r || !state.exists)
		return r;
	r = pp_current_parse("current", pp_buf_text(&text), text.len, &number, err);
	if (r)
		return damaged(path, r, err);
	return number ? pp_state_generation(s->disk, number, &s->current, err) : 0;
}

static int read_again(struct pp_state *s, struct pp_error *err)
{
	int r;

	s->current = pp_generation_free(s->current);
	s->unfinished = false;
	r = read_journal(s, err);
	return r ? r : read_current(s, err);
}

int pp_state_read(const struct pp_disk *d, struct pp_state *ret, struct pp_error *err)
{
	int r;

	*ret = (struct pp_state){.disk = d, .lock = -1};
	r = read_again(ret, err);
	if (r != -EACCES)
		return r;
	ret->hidden = true;
	*err = (struct pp_error){0};
	return 0;
}

int pp_state_lock(struct pp_state *s, struct pp_error *err)
{
	static const char *const dirs[] = {"/var", "/var/lib", "/var/lib/peerpath"};
	static const char *const own[] = {PP_STATE_DIR, PP_STATE_DIR "/generations",
					  PP_STATE_DIR "/blobs"};
	int r = 0;

	for (size_t i = 0; !r && i < PP_ARRAY_LEN(dirs); i++)
		r = pp_disk_has_dir(s->disk, dirs[i]) == 1
			    ? 0
			    : pp_disk_mkdir(s->disk, dirs[i], 0755, err);
	for (size_t i = 0; !r && i < PP_ARRAY_LEN(own); i++)
		r = pp_disk_has_dir(s->disk, own[i]) == 1
			    ? 0
			    : pp_disk_mkdir(s->disk, own[i], 0700, err);
	r = r ? r : pp_disk_lock(s->disk, PP_STATE_DIR "/lock", &s->lock, err);
	return r ? r : read_again(s, err);
}

void pp_state_done(struct pp_state *s)
{
	if (!s->disk) /* never read */
		return;
	s->current = pp_generation_free(s->current);
	pp_cleanup_close(&s->lock);
}

int pp_state_content(const struct pp_disk *d, const struct pp_disk_state *state, struct pp_buf *ret,
		     struct pp_error *err)
{
	struct pp_disk_state found;
	char path[PP_DISK_PATH];
	int r;

	if (!state->exists)
		return 0;
	(void)snprintf(path, sizeof(path), "%s/blobs/%s", PP_STATE_DIR, state->sha256);
	r = pp_disk_read(d, path, ret, &found, err);
	if (!r && (!found.exists || strcmp(found.sha256, state->sha256) != 0))
		r = pp_error_set(err, -EBADMSG, "%s is %s", path,
				 found.exists ? "damaged" : "missing");
	return r;
}

int pp_state_put(const struct pp_disk *d, const char *name, const struct pp_buf *text,
		 struct pp_error *err)
{
	static const struct pp_disk_state private = {
		.mode = 0600, .uid = (uid_t)-1, .gid = (gid_t)-1};
	char path[PP_DISK_PATH], fresh[PP_DISK_PATH + 4];
	int r;

	if (text->failed)
		return pp_error_set(err, text->failed, "%s: out of memory", name);
	path_of(name, path);
	(void)snprintf(fresh, sizeof(fresh), "%s.new", path);
	r = pp_disk_create(d, fresh, pp_buf_text(text), text->len, &private, err);
	r = r ? r : pp_disk_rename(d, fresh, path, err);
	return r ? r : pp_disk_sync(d, path, err);
}

int pp_state_keep(const struct pp_disk *d, const struct pp_disk_state *state, const char *bytes,
		  struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_DISK_FILE_MAX + 1);
	char name[96], path[PP_DISK_PATH];
	struct pp_error ignored = {0};
	struct pp_disk_state found;

	if (!state->exists)
		return 0;
	(void)snprintf(name, sizeof(name), "blobs/%s", state->sha256);
	path_of(name, path);
	if (!pp_disk_read(d, path, /* ret= */ NULL, &found, &ignored) && found.exists &&
	    !strcmp(found.sha256, state->sha256))
		return 0;
	pp_buf_add(&text, bytes, (size_t)state->bytes);
	return pp_state_put(d, name, &text, err);
}
