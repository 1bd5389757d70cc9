/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/shelf.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "judge/textfile.h"
#include "base/banned.h"

static const char suffix[] = ".profile";

/* A program that runs from its build tree has none installed, and uses its sources'. */
static const char *const folders[] = {PEERPATH_SYSCONFDIR "/profiles.d",
				      PEERPATH_DATADIR "/profiles",
				      PEERPATH_SOURCE_DATADIR "/profiles"};

static bool there(const char *folder)
{
	DIR *d = opendir(folder);

	if (d)
		(void)closedir(d);
	return d;
}

static bool counts(size_t i)
{
	return i < 2 || !there(folders[1]);
}

/* The name of a file "NAME.profile" in @name; false for other files. */
static bool name_of(const char *file, char name[PP_SHELF_NAME])
{
	size_t len = strlen(file), end = sizeof(suffix) - 1;

	if (len <= end || len - end >= PP_SHELF_NAME || strcmp(file + len - end, suffix) != 0)
		return false;
	memcpy(name, file, len - end);
	name[len - end] = '\0';
	return pp_profile_is_name(name);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

int pp_shelf_list(char names[][PP_SHELF_NAME], unsigned int size)
{
	unsigned int n = 0, kept = 0;
	struct dirent *e;

	for (size_t i = 0; i < PP_ARRAY_LEN(folders); i++) {
		DIR *d = counts(i) ? opendir(folders[i]) : NULL;

		while (d && n < size && (e = readdir(d)))
			n += name_of(e->d_name, names[n]);
		if (d)
			(void)closedir(d);
	}
	qsort(names, n, sizeof(*names), by_text);
	for (unsigned int i = 0; i < n; i++)
		if (!kept || strcmp(names[kept - 1], names[i]) != 0)
			memmove(names[kept++], names[i], sizeof(*names));
	return (int)kept;
}

static int not_found(const char *word, struct pp_error *err)
{
	char names[PP_SHELF_MAX][PP_SHELF_NAME], all[256] = "";
	int n = pp_shelf_list(names, PP_SHELF_MAX);
	struct pp_near near = PP_NEAR(word);
	size_t len = 0;

	for (int i = 0; i < n; i++) {
		pp_near_offer(&near, names[i]);
		if (len < sizeof(all))
			len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%s", i ? ", " : "",
						names[i]);
	}
	return pp_error_set(err, -ENOENT, "no profile '%.60s'%s%s%s; there are %s", word,
			    near.best ? ", did you mean '" : "", near.best ? near.best : "",
			    near.best ? "'" : "", n ? all : "none");
}

static int load_file(const char *path, struct pp_profile **ret, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_PROFILE_BYTES);
	int r = pp_textfile_read(path, &text, err);

	return r ? r : pp_profile_parse(path, pp_buf_text(&text), text.len, ret, err);
}

/* By its name: the file must be of it, so that "apply X" never applies Y. */
static int load_named(const char *path, const char *name, struct pp_profile **ret,
		      struct pp_error *err)
{
	int r = load_file(path, ret, err);

	if (r || !strcmp((*ret)->name, name))
		return r;
	r = pp_error_set(err, -EINVAL, "%s: holds the profile '%s'", path, (*ret)->name);
	*ret = pp_profile_free(*ret);
	return r;
}

int pp_shelf_load(const char *word, struct pp_profile **ret, char **ret_path, struct pp_error *err)
{
	char path[PATH_MAX];
	int r = -ENOENT;

	if (strchr(word, '/')) {
		(void)snprintf(path, sizeof(path), "%s", word);
		r = load_file(word, ret, err);
	} else if (!pp_profile_is_name(word)) {
		return not_found(word, err);
	} else {
		for (size_t i = 0; r == -ENOENT && i < PP_ARRAY_LEN(folders); i++) {
			(void)snprintf(path, sizeof(path), "%s/%s%s", folders[i], word, suffix);
			if (counts(i))
				r = load_named(path, word, ret, err);
		}
		if (r == -ENOENT)
			return not_found(word, err);
	}
	if (!r && ret_path)
		*ret_path = strdup(path);
	return r;
}
