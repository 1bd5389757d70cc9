/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile's text into a struct pp_profile. Strict: what is not known is refused with the nearest
 * name, so that a misspelt key never means "nothing to do".
 */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/ini.h"
#include "base/near.h"
#include "base/parse.h"
#include "profile/profile.h"
#include "base/banned.h"

enum { ARENA = 4 * PP_PROFILE_BYTES };

struct draft {
	struct pp_profile *p;
	struct pp_buf text;	      /* lines of the file that is being read */
	struct pp_profile_file *file; /* NULL: the section is none of a file */
	const char *operator_name;    /* of a section of values */
	bool registration, file_mode;
};

static int unknown(const char *what, const char *word, const char *const *known, size_t n,
		   struct pp_error *err)
{
	struct pp_near near = PP_NEAR(word);

	for (size_t i = 0; i < n; i++)
		pp_near_offer(&near, known[i]);
	return pp_error_set(err, -EINVAL, "unknown %s '%s'%s%s%s", what, word,
			    near.best ? "; did you mean '" : "", near.best ? near.best : "",
			    near.best ? "'?" : "");
}

static int once(const char **slot, struct pp_profile *p, const char *key, const char *value,
		struct pp_error *err)
{
	if (*slot)
		return pp_error_set(err, -EINVAL, "'%s' is given twice", key);
	if (!*value)
		return pp_error_set(err, -EINVAL, "'%s' is empty", key);
	*slot = pp_arena_str(&p->arena, value);
	return 0;
}

static int on_head(struct draft *d, const char *key, const char *value, struct pp_error *err)
{
	static const char *const keys[] = {"name", "title", "source", "reviewed", "registration"};
	const char **slots[] = {&d->p->name, &d->p->title, &d->p->source, &d->p->reviewed};

	for (size_t i = 0; i < PP_ARRAY_LEN(slots); i++) {
		if (strcmp(keys[i], key) != 0)
			continue;
		/* The title stands on one line of what is rolled back by. */
		if (strlen(value) > PP_PROFILE_HEAD)
			return pp_error_set(err, -EFBIG, "'%s' is longer than %d bytes", key,
					    PP_PROFILE_HEAD);
		return once(slots[i], d->p, key, value, err);
	}
	if (strcmp(key, "registration") != 0)
		return unknown("key", key, keys, PP_ARRAY_LEN(keys), err);
	if (d->registration)
		return pp_error_set(err, -EINVAL, "'registration' is given twice");
	d->registration = true;
	if (pp_registration_parse(value, &d->p->registration) ||
	    (d->p->registration != PP_REGISTERED_DMABUF &&
	     d->p->registration != PP_REGISTERED_PEERMEM))
		return pp_error_set(err, -EINVAL, "'registration = %s': dmabuf or peermem", value);
	return 0;
}

/* The kind is the fact's own: "nvidia.flavour" is of the node, "hca.firmware" of each hca. */
static int on_require(struct draft *d, const char *value, struct pp_error *err)
{
	struct pp_profile *p = d->p;
	struct pp_profile_need *need = &p->need[p->n_needs];
	size_t len = strcspn(value, " \t=!<>~");
	enum pp_fact_id id;
	char key[128];
	int r;

	if (p->n_needs == PP_PROFILE_NEEDS)
		return pp_error_set(err, -EFBIG, "more than %d requirements", PP_PROFILE_NEEDS);
	(void)snprintf(key, sizeof(key), "%.*s", (int)(len < 127 ? len : 127), value);
	need->scope = pp_fact_find(key, &id) ? PP_NODE : pp_fact_table[id].kind;
	r = pp_condition_parse(&p->arena, need->scope, value, &need->when, err);
	if (!r)
		p->n_needs++;
	return r;
}

static int on_need(struct draft *d, const char *key, const char *value, struct pp_error *err)
{
	static const char *const keys[] = {"require", "install", "fix"};
	struct pp_profile *p = d->p;
	struct pp_profile_need *last;

	if (!strcmp(key, "require"))
		return on_require(d, value, err);
	if (strcmp(key, "install") != 0 && strcmp(key, "fix") != 0)
		return unknown("key", key, keys, PP_ARRAY_LEN(keys), err);
	if (!p->n_needs)
		return pp_error_set(err, -EINVAL, "'%s' stands behind no 'require'", key);
	last = &p->need[p->n_needs - 1];
	return once(*key == 'i' ? &last->install : &last->fix_id, p, key, value, err);
}

static int parse_mode(struct draft *d, const char *value, struct pp_error *err)
{
	static const char *const modes[] = {"0644", "0640", "0600", "0444"};
	static const unsigned int bits[] = {0644, 0640, 0600, 0444};

	if (d->file_mode)
		return pp_error_set(err, -EINVAL, "'mode' is given twice");
	for (size_t i = 0; i < PP_ARRAY_LEN(modes); i++)
		if (!strcmp(value, modes[i])) {
			d->file->mode = bits[i];
			d->file_mode = true;
			return 0;
		}
	return pp_error_set(err, -EINVAL, "'mode = %s': 0644, 0640, 0600 or 0444", value);
}

/* A key of NCCL's or of an environment: what a shell and every reader of these files agree on. */
static int on_set(struct draft *d, const char *key, const char *value, struct pp_error *err)
{
	size_t len = strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	char line[160];

	if (key[len] || (key[0] >= '0' && key[0] <= '9'))
		return pp_error_set(err, -EINVAL,
				    "'%s' is no name of a variable (capital letters, digits, _)",
				    key);
	if (value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				"0123456789_.,:/^=+-")])
		return pp_error_set(err, -EINVAL,
				    "'%s = %s': letters, digits and _ . , : / ^ = + - only", key,
				    value);
	(void)snprintf(line, sizeof(line), "\n%s=", key);
	if (strstr(pp_buf_text(&d->text), line) ||
	    !strncmp(pp_buf_text(&d->text), line + 1, strlen(line + 1)))
		return pp_error_set(err, -EINVAL, "'%s' is given twice", key);
	pp_buf_printf(&d->text, "%s=%s\n", key, value);
	return 0;
}

static int on_file(struct draft *d, const char *key, const char *value, struct pp_error *err)
{
	static const char *const keys[] = {"line", "mode", "fix", "why"};

	if (!strcmp(key, "fix"))
		return once(&d->file->fix_id, d->p, key, value, err);
	if (!strcmp(key, "why"))
		return once(&d->file->why, d->p, key, value, err);
	if (d->file->action == PP_PROFILE_SET)
		return on_set(d, key, value, err);
	if (d->file->action == PP_PROFILE_WRITE && !strcmp(key, "line")) {
		pp_buf_printf(&d->text, "%s\n", value);
		return 0;
	}
	if (d->file->action == PP_PROFILE_WRITE && !strcmp(key, "mode"))
		return parse_mode(d, value, err);
	if (!strcmp(key, "line") || !strcmp(key, "mode"))
		return pp_error_set(err, -EINVAL, "'%s' goes with [write ...] only", key);
	return unknown("key", key, keys, PP_ARRAY_LEN(keys), err);
}

static int on_value(struct draft *d, const char *key, const char *value, struct pp_error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_.-";
	struct pp_profile *p = d->p;
	struct pp_profile_value *v = &p->value[p->n_values];
	static const char keep[] = "keep:";

	if (p->n_values == PP_PROFILE_VALUES)
		return pp_error_set(err, -EFBIG, "more than %d values", PP_PROFILE_VALUES);
	if (key[strspn(key, letters)] || key[0] == '.' || key[strlen(key) - 1] == '.' ||
	    strstr(key, ".."))
		return pp_error_set(err, -EINVAL, "'%s' is no dotted name of a value", key);
	if (strpbrk(value, "\"\\"))
		return pp_error_set(err, -EINVAL, "'%s': a value without quotes", key);
	*v = (struct pp_profile_value){.operator_name = d->operator_name,
				       .key = pp_arena_str(&p->arena, key)};
	if (!strncmp(value, keep, sizeof(keep) - 1)) {
		value += sizeof(keep) - 1;
		v->why = pp_arena_str(&p->arena, value + strspn(value, " "));
	} else {
		v->value = pp_arena_str(&p->arena, value);
	}
	p->n_values++;
	return 0;
}

/* The lines of a file are complete where the next section begins. */
static int finish_file(struct draft *d, struct pp_error *err)
{
	if (!d->file)
		return 0;
	if (d->text.failed)
		return pp_error_set(err, d->text.failed, "%s is longer than %d bytes",
				    d->file->path, PP_PROFILE_BYTES);
	if (d->file->action <= PP_PROFILE_SET && !d->text.len)
		return pp_error_set(err, -EINVAL, "[%s %s] holds nothing",
				    pp_profile_action_name(d->file->action), d->file->path);
	d->file->text = pp_arena_str(&d->p->arena, pp_buf_text(&d->text));
	d->file = NULL;
	d->file_mode = false;
	pp_buf_reset(&d->text);
	return 0;
}

static int begin_file(struct draft *d, enum pp_profile_action action, const char *path,
		      struct pp_error *err)
{
	const struct pp_spot *spot = pp_spot_find(path);
	struct pp_profile *p = d->p;

	if (!spot)
		return pp_error_set(err, -EINVAL,
				    "'%s' is no place of a profile: files of modprobe.d, "
				    "modules-load.d, sysctl.d, limits.d, system.conf.d, "
				    "environment.d, grub.d below /etc, and /etc/nccl.conf are",
				    path);
	if (pp_profile_file_of(p, path))
		return pp_error_set(err, -EINVAL, "'%s' has two sections", path);
	if (action == PP_PROFILE_SET && !spot->assigns)
		return pp_error_set(err, -EINVAL, "'%s' does not hold KEY=VALUE lines", path);
	if (p->n_files == PP_PROFILE_FILES)
		return pp_error_set(err, -EFBIG, "more than %d files", PP_PROFILE_FILES);
	d->file = &p->file[p->n_files++];
	*d->file = (struct pp_profile_file){.action = action,
					    .path = pp_arena_str(&p->arena, path),
					    .spot = spot,
					    .mode = 0644,
					    .text = ""};
	return 0;
}

static int begin_values(struct draft *d, const char *name, struct pp_error *err)
{
	static const char *const names[] = {"gpu-operator", "network-operator"};

	for (size_t i = 0; i < PP_ARRAY_LEN(names); i++)
		if (!strcmp(names[i], name)) {
			d->operator_name = names[i];
			return 0;
		}
	return unknown("operator", name, names, PP_ARRAY_LEN(names), err);
}

static int begin(struct draft *d, const char *section, struct pp_error *err)
{
	static const char *const words[] = {"write",  "set",	 "absent", "keep",
					    "values", "profile", "needs"};
	size_t len = strcspn(section, " \t");
	const char *rest = section + len + strspn(section + len, " \t");
	char word[32];
	int r = finish_file(d, err);

	d->operator_name = NULL;
	if (r)
		return r;
	(void)snprintf(word, sizeof(word), "%.*s", (int)(len < 31 ? len : 31), section);
	for (unsigned int i = 0; i <= PP_PROFILE_KEEP; i++)
		if (!strcmp(words[i], word))
			return begin_file(d, (enum pp_profile_action)i, rest, err);
	if (!strcmp(word, "values"))
		return begin_values(d, rest, err);
	if (!strcmp(section, "profile") || !strcmp(section, "needs"))
		return 0;
	return unknown("section", word, words, PP_ARRAY_LEN(words), err);
}

static int on_key(void *arg, const char *section, const char *key, const char *value,
		  unsigned int line, struct pp_error *err)
{
	struct draft *d = arg;

	(void)line;
	if (!key)
		return begin(d, section, err);
	if (d->file)
		return on_file(d, key, value, err);
	if (d->operator_name)
		return on_value(d, key, value, err);
	return !strcmp(section, "needs") ? on_need(d, key, value, err)
					 : on_head(d, key, value, err);
}

static int whole(const struct draft *d, const char *name, struct pp_error *err)
{
	const struct pp_profile *p = d->p;

	if (!p->name || !p->title || !d->registration)
		return pp_error_set(err, -EINVAL,
				    "%s: [profile] needs name, title and registration", name);
	if (!pp_profile_is_name(p->name))
		return pp_error_set(err, -EINVAL, "%s: '%s' is no name of a profile (a-z, 0-9, -)",
				    name, p->name);
	if (!p->n_files)
		return pp_error_set(err, -EINVAL, "%s: names no file", name);
	return p->arena.failed ? pp_error_set(err, -ENOMEM, "%s: out of memory", name) : 0;
}

int pp_profile_parse(const char *name, const char *text, size_t len, struct pp_profile **ret,
		     struct pp_error *err)
{
	struct draft d = {.p = calloc(1, sizeof(*d.p)), .text = PP_BUF(PP_PROFILE_BYTES)};
	unsigned char hash[crypto_hash_sha256_BYTES];
	int r;

	if (!d.p)
		return pp_error_set(err, -ENOMEM, "%s: out of memory", name);
	d.p->arena = PP_ARENA(ARENA);
	r = len > PP_PROFILE_BYTES
		    ? pp_error_set(err, -EFBIG, "%s: longer than %d bytes", name, PP_PROFILE_BYTES)
		    : pp_ini_parse(name, text, len, on_key, &d, err);
	if (!r && (r = finish_file(&d, err)))
		(void)pp_error_prefix(err, "%s", name);
	r = r ? r : whole(&d, name, err);
	pp_buf_done(&d.text);
	if (r) {
		pp_profile_free(d.p);
		return r;
	}
	(void)crypto_hash_sha256(hash, (const unsigned char *)text, len);
	sodium_bin2hex(d.p->sha256, sizeof(d.p->sha256), hash, sizeof(hash));
	*ret = d.p;
	return 0;
}

struct pp_profile *pp_profile_free(struct pp_profile *p)
{
	if (p)
		pp_arena_done(&p->arena);
	free(p);
	return NULL;
}
