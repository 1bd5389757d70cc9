/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where rules come from: directories of *.rules files.
 */
#include "judge/rule_set.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/textfile.h"
#include "base/banned.h"

enum { FILES_MAX = 256, PATH_LONGEST = 4096 };

static int is_rules(const struct dirent *e)
{
	size_t len = strlen(e->d_name);

	return e->d_name[0] != '.' && len > 6 && !strcmp(e->d_name + len - 6, ".rules");
}

/* Byte order, whatever the locale: the order of loading must not depend on who runs it. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int load_file(struct pp_rules *r, unsigned int tier, const char *dir, const char *name,
		     struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_RULES_FILE_MAX);
	char path[PATH_LONGEST];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, name), error;

	if (n < 0 || (size_t)n >= sizeof(path))
		return pp_error_set(err, -ENAMETOOLONG, "path of rule file '%s' is too long", name);
	error = pp_textfile_read(path, &text, err);
	if (error)
		return error;
	r->files++;
	(void)crypto_hash_sha256_update(&r->text, (const unsigned char *)pp_buf_text(&text),
					text.len);
	return pp_rules_parse(r, tier, path, pp_buf_text(&text), text.len, err);
}

int pp_rules_load_dir(struct pp_rules *r, unsigned int tier, const char *dir, struct pp_error *err)
{
	struct dirent **names = NULL;
	int n = scandir(dir, &names, is_rules, by_name), error = 0;
	char text[128];

	if (n < 0) {
		error = -errno;
		return pp_error_set(err, error, "cannot read rules of '%s': %s", dir,
				    pp_errno_text(error, text, sizeof(text)));
	}
	if (n > FILES_MAX)
		error = pp_error_set(err, -EFBIG, "'%s' holds more than %d rule files", dir,
				     FILES_MAX);
	for (int i = 0; i < n; i++) {
		if (!error)
			error = load_file(r, tier, dir, names[i]->d_name, err);
		free(names[i]);
	}
	free(names);
	return error;
}

/* The installed rules; a program that runs from its build tree has none, and uses its sources'. */
static int load_own(struct pp_rules *r, struct pp_error *err)
{
	int error = pp_rules_load_dir(r, 0, PEERPATH_DATADIR "/rules", err);

	r->own = true;
	r->where = error == -ENOENT ? "source tree" : "installed";
	if (error == -ENOENT)
		error = pp_rules_load_dir(r, 0, PEERPATH_SOURCE_DATADIR "/rules", err);
	return error;
}

static int load_site(struct pp_rules *r, struct pp_error *err)
{
	size_t own = r->files;
	int error = pp_rules_load_dir(r, 1, PEERPATH_SYSCONFDIR "/rules.d", err);

	if (r->files > own) {
		r->own = false;
		r->where = pp_arena_printf(&r->arena, "%s and rules.d", r->where);
	}
	return error == -ENOENT ? 0 : error;
}

/* Its last name: where a home directory lies is nobody's business. */
static const char *last_name(struct pp_rules *r, const char *dir)
{
	size_t end = strlen(dir), at;

	while (end > 1 && dir[end - 1] == '/')
		end--;
	for (at = end; at > 0 && dir[at - 1] != '/';)
		at--;
	return pp_arena_strn(&r->arena, dir + at, end - at);
}

void pp_rules_origin(const struct pp_rules *r, struct pp_rules_origin *ret)
{
	crypto_hash_sha256_state text = r->text;
	unsigned char hash[crypto_hash_sha256_BYTES];

	*ret = (struct pp_rules_origin){.where = r->where ? r->where : "-", .own = r->own};
	(void)crypto_hash_sha256_final(&text, hash);
	sodium_bin2hex(ret->sha256, sizeof(ret->sha256), hash, sizeof(hash));
}

int pp_rules_load(const char *dir, struct pp_rules **ret, struct pp_error *err)
{
	struct pp_rules *r = NULL;
	int error = pp_rules_new(&r);

	if (!dir)
		dir = secure_getenv("PEERPATH_RULES");
	if (error)
		return pp_error_set(err, error, "out of memory for rules");
	error = dir ? pp_rules_load_dir(r, 0, dir, err) : load_own(r, err);
	if (!error && !dir)
		error = load_site(r, err);
	if (dir)
		r->where = last_name(r, dir);
	if (!error && !pp_rules_at(r, 0))
		error = pp_error_set(err, -EINVAL, "no rules in '%s'",
				     dir ? dir : PEERPATH_DATADIR "/rules");
	if (error) {
		pp_rules_free(r);
		return error;
	}
	*ret = r;
	return 0;
}
