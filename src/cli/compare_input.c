/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/compare_input.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bundle/bundle.h"
#include "cli/input.h"
#include "base/banned.h"

#define MEMBER "canary.json"

int pp_trials_take(struct pp_trials *t, const char *name, const char *text, size_t len,
		   struct pp_error *err)
{
	struct pp_trial *trial;
	int r;

	if (t->n == PP_COMPARISON_TRIALS)
		return pp_error_set(err, -E2BIG, "%s: more than %d trials on one side", name,
				    PP_COMPARISON_TRIALS);
	trial = malloc(sizeof(*trial));
	if (!trial)
		return pp_error_set(err, -ENOMEM, "out of memory");
	r = pp_trial_read(name, text, len, trial, err);
	if (r)
		free(trial);
	else
		t->trial[t->n++] = trial;
	return r;
}

static int take_bundle(struct pp_trials *t, const char *path, struct pp_error *err)
{
	const struct pp_bundle_file *f;
	struct pp_bundle *b;
	int r = pp_bundle_open(path, &b, err);

	if (r)
		return r;
	f = pp_bundle_file(b, MEMBER);
	r = f ? pp_trials_take(t, path, f->data, f->len, err)
	      : pp_error_set(err, -ENODATA, "%s: this bundle is of no canary", path);
	pp_bundle_free(b);
	return r;
}

static int take_document(struct pp_trials *t, const char *path, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_TRIAL_BYTES);
	int r = pp_input_read(path, &text, err);

	return r ? r : pp_trials_take(t, path, pp_buf_text(&text), text.len, err);
}

static bool is_bundle(const char *path, const struct stat *st)
{
	char manifest[PATH_MAX];
	struct stat m;

	if (!S_ISDIR(st->st_mode))
		return pp_bundle_is_archive(path);
	return snprintf(manifest, sizeof(manifest), "%s/manifest.json", path) <
		       (int)sizeof(manifest) &&
	       !stat(manifest, &m);
}

static int visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

/* One level, by name; a directory in it must be a bundle. */
static int take_directory(struct pp_trials *t, const char *path, struct pp_error *err)
{
	struct dirent **entry;
	int n = scandir(path, &entry, visible, alphasort), r = 0;

	if (n < 0)
		return pp_error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!n)
		r = pp_error_set(err, -ENODATA, "%s: this directory is empty", path);
	for (int i = 0; i < n; i++) {
		char name[PATH_MAX];
		struct stat st;

		if (!r && snprintf(name, sizeof(name), "%s/%s", path, entry[i]->d_name) >=
				  (int)sizeof(name))
			r = pp_error_set(err, -ENAMETOOLONG, "%s: a name in it is too long", path);
		if (!r && stat(name, &st))
			r = pp_error_set(err, -errno, "%s: %s", name, strerror(errno));
		if (!r)
			r = is_bundle(name, &st) ? take_bundle(t, name, err)
						 : take_document(t, name, err);
		free(entry[i]);
	}
	free(entry);
	return r;
}

int pp_trials_add(struct pp_trials *t, const char *path, struct pp_error *err)
{
	struct stat st;

	if (!strcmp(path, "-"))
		return take_document(t, path, err);
	if (stat(path, &st))
		return pp_error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (is_bundle(path, &st))
		return take_bundle(t, path, err);
	return S_ISDIR(st.st_mode) ? take_directory(t, path, err) : take_document(t, path, err);
}

void pp_trials_done(struct pp_trials *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct pp_trial *trial = (struct pp_trial *)(uintptr_t)t->trial[i];

		pp_trial_done(trial);
		free(trial);
	}
	t->n = 0;
}
