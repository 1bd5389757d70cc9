/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/generation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/ini.h"
#include "base/parse.h"
#include "base/banned.h"

int pp_generation_new(struct pp_generation **ret)
{
	struct pp_generation *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	g->arena = PP_ARENA(4 * PP_GENERATION_BYTES);
	*ret = g;
	return 0;
}

struct pp_generation *pp_generation_free(struct pp_generation *g)
{
	if (g)
		pp_arena_done(&g->arena);
	free(g);
	return NULL;
}

const struct pp_generation_entry *pp_generation_find(const struct pp_generation *g,
						     const char *path)
{
	for (unsigned int i = 0; g && i < g->n; i++)
		if (!strcmp(g->entry[i].path, path))
			return &g->entry[i];
	return NULL;
}

static void state_text(const char *key, const struct pp_disk_state *s, struct pp_buf *ret)
{
	if (!s->exists)
		pp_buf_printf(ret, "%s = absent\n", key);
	else
		pp_buf_printf(ret, "%s = %04o %u %u %lld %lld %llu %s\n", key, s->mode, s->uid,
			      s->gid, (long long)s->mtime_s, (long long)s->mtime_ns,
			      (unsigned long long)s->bytes, s->sha256);
}

void pp_generation_write(const struct pp_generation *g, struct pp_buf *ret)
{
	pp_buf_printf(ret,
		      "# Written by 'peerpath profile': what it will roll back by. Not to be "
		      "edited.\n[generation]\nnumber = %u\nprevious = %u\nname = %s\ntitle = %s\n"
		      "registration = %s\nprofile-sha256 = %s\napplied = %s\n",
		      g->number, g->previous, g->name, g->title,
		      pp_registration_name(g->registration), g->sha256, g->applied);
	for (unsigned int i = 0; i < g->n_dirs; i++)
		pp_buf_printf(ret, "made = %s\n", g->dir[i]);
	for (unsigned int i = 0; i < g->n; i++) {
		pp_buf_printf(ret, "\n[file %s]\nmanaged = %s\n", g->entry[i].path,
			      g->entry[i].managed ? "yes" : "no");
		state_text("origin", &g->entry[i].origin, ret);
		state_text("before", &g->entry[i].before, ret);
		state_text("after", &g->entry[i].after, ret);
	}
}

/* The next word, cut off; NULL past the end. */
static char *next_word(char **at)
{
	char *word = *at + strspn(*at, " ");
	size_t len = strcspn(word, " ");

	if (!len)
		return NULL;
	*at = word + len + (word[len] != '\0');
	word[len] = '\0';
	return word;
}

static int parse_mode(const char *text, unsigned int *ret)
{
	unsigned int mode = 0;

	if (strlen(text) != 4 || strspn(text, "01234567") != 4 || text[0] != '0')
		return -EINVAL;
	for (; *text; text++)
		mode = mode * 8 + (unsigned int)(*text - '0');
	*ret = mode;
	return 0;
}

static bool is_digest(const char *text)
{
	return strspn(text, "0123456789abcdef") == 64 && !text[64];
}

static int parse_state(const char *value, struct pp_disk_state *ret)
{
	static const int64_t limits[][2] = {{0, UINT32_MAX - 1},
					    {0, UINT32_MAX - 1},
					    {INT64_MIN, INT64_MAX},
					    {0, 999999999},
					    {0, PP_DISK_FILE_MAX}};
	struct pp_disk_state s = {.exists = true};
	int64_t number[PP_ARRAY_LEN(limits)];
	char text[256], *at = text, *word;

	if (!strcmp(value, "absent")) {
		*ret = (struct pp_disk_state){0};
		return 0;
	}
	if (strlen(value) >= sizeof(text))
		return -EINVAL;
	memcpy(text, value, strlen(value) + 1);
	word = next_word(&at);
	if (!word || parse_mode(word, &s.mode))
		return -EINVAL;
	for (size_t i = 0; i < PP_ARRAY_LEN(limits); i++) {
		word = next_word(&at);
		if (!word || pp_parse_i64(word, limits[i][0], limits[i][1], &number[i]))
			return -EINVAL;
	}
	word = next_word(&at);
	if (!word || !is_digest(word) || next_word(&at))
		return -EINVAL;
	s.uid = (uid_t)number[0];
	s.gid = (gid_t)number[1];
	s.mtime_s = number[2];
	s.mtime_ns = number[3];
	s.bytes = (uint64_t)number[4];
	memcpy(s.sha256, word, sizeof(s.sha256));
	*ret = s;
	return 0;
}

/* What was read of a section: each key once. */
struct reader {
	struct pp_generation *g;
	unsigned int head, file; /* bits of the keys seen */
};

/* A value no longer than fits with its key on a line that can be read again. */
enum { HEAD_KEYS = 7, FILE_KEYS = 4, GENERATION_VALUE = 4000 };

static int seen(unsigned int *set, size_t bit, const char *key, struct pp_error *err)
{
	if (*set & 1u << bit)
		return pp_error_set(err, -EINVAL, "'%s' is given twice", key);
	*set |= 1u << bit;
	return 0;
}

static int wrong(const char *key, const char *value, struct pp_error *err)
{
	return pp_error_set(err, -EINVAL, "'%s = %.100s' cannot be", key, value);
}

/* Directories of profiles' places are made, no others. */
static bool is_made(const char *path)
{
	const struct pp_spot *s;
	size_t len = strlen(path);

	for (unsigned int i = 0; (s = pp_spot_at(i)); i++)
		if (len && !strncmp(s->before, path, len) && s->before[len] == '/')
			return true;
	return false;
}

static int on_made(struct pp_generation *g, const char *value, struct pp_error *err)
{
	if (!is_made(value) || g->n_dirs == PP_GENERATION_DIRS)
		return wrong("made", value, err);
	g->dir[g->n_dirs++] = pp_arena_str(&g->arena, value);
	return 0;
}

static int on_head(struct reader *t, const char *key, const char *value, struct pp_error *err)
{
	static const char *const keys[HEAD_KEYS] = {
		"number", "previous", "registration", "name", "title", "profile-sha256", "applied"};
	struct pp_generation *g = t->g;
	const char **texts[] = {&g->name, &g->title, &g->sha256, &g->applied};
	uint64_t number;
	size_t i = 0;

	if (!strcmp(key, "made"))
		return on_made(g, value, err);
	while (i < HEAD_KEYS && strcmp(keys[i], key) != 0)
		i++;
	if (i == HEAD_KEYS)
		return pp_error_set(err, -EINVAL, "unknown key '%s'", key);
	if (seen(&t->head, i, key, err))
		return -EINVAL;
	if (i < 2 && pp_parse_u64(value, 1 - i, PP_GENERATION_LAST, &number))
		return wrong(key, value, err);
	if (i < 2)
		*(i ? &g->previous : &g->number) = (unsigned int)number;
	if (i == 2 && pp_registration_parse(value, &g->registration))
		return wrong(key, value, err);
	if ((i == 3 && !pp_profile_is_name(value)) || (i == 5 && !is_digest(value)) ||
	    strlen(value) > GENERATION_VALUE)
		return wrong(key, value, err);
	if (i >= 3)
		*texts[i - 3] = pp_arena_str(&g->arena, value);
	return 0;
}

static int on_file_key(struct reader *t, const char *key, const char *value, struct pp_error *err)
{
	static const char *const keys[FILE_KEYS] = {"origin", "before", "after", "managed"};
	struct pp_generation_entry *e = &t->g->entry[t->g->n - 1];
	struct pp_disk_state *states[] = {&e->origin, &e->before, &e->after};
	size_t i = 0;

	while (i < FILE_KEYS && strcmp(keys[i], key) != 0)
		i++;
	if (i == FILE_KEYS)
		return pp_error_set(err, -EINVAL, "unknown key '%s'", key);
	if (seen(&t->file, i, key, err))
		return -EINVAL;
	if (i == 3 ? pp_parse_bool(value, &e->managed) : parse_state(value, states[i]))
		return wrong(key, value, err);
	return 0;
}

static int file_done(struct reader *t, struct pp_error *err)
{
	bool whole = !t->g->n || t->file == (1u << FILE_KEYS) - 1;

	return whole ? 0
		     : pp_error_set(err, -EINVAL, "[file %s] is not whole",
				    t->g->entry[t->g->n - 1].path);
}

static int on_section(struct reader *t, const char *section, struct pp_error *err)
{
	struct pp_generation *g = t->g;

	if (!strcmp(section, "generation"))
		return g->n ? pp_error_set(err, -EINVAL, "[generation] comes first") : 0;
	if (strncmp(section, "file ", 5) != 0 || !pp_spot_find(section + 5))
		return pp_error_set(err, -EINVAL, "unknown section '%.100s'", section);
	if (file_done(t, err))
		return -EINVAL;
	if (pp_generation_find(g, section + 5) || g->n == PP_GENERATION_ENTRIES)
		return pp_error_set(err, -EINVAL, "'%s' is one too many", section);
	g->entry[g->n++].path = pp_arena_str(&g->arena, section + 5);
	t->file = 0;
	return 0;
}

static int on_key(void *arg, const char *section, const char *key, const char *value,
		  unsigned int line, struct pp_error *err)
{
	struct reader *t = arg;

	(void)line;
	if (!key)
		return on_section(t, section, err);
	return *section == 'g' ? on_head(t, key, value, err) : on_file_key(t, key, value, err);
}

int pp_generation_parse(const char *name, const char *text, size_t len, struct pp_generation **ret,
			struct pp_error *err)
{
	struct reader t = {0};
	int r = pp_generation_new(&t.g);

	if (r)
		return pp_error_set(err, r, "%s: out of memory", name);
	r = pp_ini_parse(name, text, len, on_key, &t, err);
	if (!r && (r = file_done(&t, err)))
		(void)pp_error_prefix(err, "%s", name);
	if (!r && t.head != (1u << HEAD_KEYS) - 1)
		r = pp_error_set(err, -EINVAL, "%s: [generation] is not whole", name);
	if (!r && t.g->previous >= t.g->number)
		r = pp_error_set(err, -EINVAL, "%s: comes before its predecessor", name);
	if (!r && t.g->arena.failed)
		r = pp_error_set(err, -ENOMEM, "%s: out of memory", name);
	if (r)
		pp_generation_free(t.g);
	else
		*ret = t.g;
	return r;
}
