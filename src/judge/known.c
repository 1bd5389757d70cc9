/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/known_set.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/derived.h"
#include "judge/textfile.h"
#include "base/compiler.h"
#include "base/near.h"
#include "base/banned.h"

enum { ARENA_LIMIT = 16 << 20, FILES_MAX = 256, PATH_LONGEST = 4096 };

const char *pp_certainty_name(enum pp_certainty c)
{
	static const char *const words[] = {"possible", "likely", "certain"};

	return words[c];
}

const char *pp_known_kind_name(enum pp_known_kind k)
{
	static const char *const words[PP_KNOWN_KINDS] = {"problem",  "consequence", "state",
							  "harmless", "format",	     "alarm"};

	return words[k];
}

int pp_known_new(struct pp_known_set **ret)
{
	struct pp_known_set *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	k->arena = PP_ARENA(ARENA_LIMIT);
	r = pp_automaton_new(&k->automaton);
	if (r) {
		free(k);
		return r;
	}
	*ret = k;
	return 0;
}

struct pp_known_set *pp_known_free(struct pp_known_set *k)
{
	if (!k)
		return NULL;
	pp_automaton_free(k->automaton);
	pp_arena_done(&k->arena);
	free(k->list);
	free(k->signatures);
	free(k->owner);
	free(k->index);
	free(k->anchored);
	free(k);
	return NULL;
}

const struct pp_known *pp_known_find(const struct pp_known_set *k, const char *id)
{
	for (size_t i = 0; i < k->n; i++)
		if (!strcmp(k->list[i].rule.id, id))
			return &k->list[i];
	return NULL;
}

int pp_known_add_signature(struct pp_known_set *k, const char *text, struct pp_error *err)
{
	size_t cap = k->signature_cap ? k->signature_cap * 2 : 256;
	struct pp_signature *grown;
	unsigned int *owner;
	int r;

	if (k->n_signatures == PP_SIGNATURES_MAX)
		return pp_error_set(err, -EFBIG, "more than %d signatures", PP_SIGNATURES_MAX);
	if (k->n_signatures == k->signature_cap) {
		grown = reallocarray(k->signatures, cap, sizeof(*grown));
		if (grown)
			k->signatures = grown;
		owner = reallocarray(k->owner, cap, sizeof(*owner));
		if (owner)
			k->owner = owner;
		if (!grown || !owner)
			return pp_error_set(err, -ENOMEM, "out of memory for rules");
		k->signature_cap = cap;
	}
	r = pp_signature_parse(&k->arena, k->automaton, text, &k->signatures[k->n_signatures], err);
	if (r)
		return r;
	k->owner[k->n_signatures++] = (unsigned int)k->n;
	return 0;
}

int pp_known_add(struct pp_known_set *k, const struct pp_known *one, struct pp_error *err)
{
	const struct pp_known *old = pp_known_find(k, one->rule.id);
	size_t cap = k->cap ? k->cap * 2 : 128;
	struct pp_known *grown;

	if (old)
		return pp_error_set(err, -EINVAL, "rule '%s' stands in %s:%u already", old->rule.id,
				    old->rule.file, old->rule.line);
	if (k->n == PP_KNOWN_MAX)
		return pp_error_set(err, -EFBIG, "more than %d rules", PP_KNOWN_MAX);
	if (k->n == k->cap) {
		grown = reallocarray(k->list, cap, sizeof(*grown));
		if (!grown)
			return pp_error_set(err, -ENOMEM, "out of memory for rules");
		k->list = grown;
		k->cap = cap;
	}
	k->list[k->n++] = *one;
	return 0;
}

static int check_names(const struct pp_known_set *k, const struct pp_known *one,
		       const char *const names[PP_KNOWN_NAMES], struct pp_error *err)
{
	for (unsigned int i = 0; i < PP_KNOWN_NAMES && names[i]; i++) {
		struct pp_near near = PP_NEAR(names[i]);

		if (pp_known_find(k, names[i]))
			continue;
		for (size_t n = 0; n < k->n; n++)
			pp_near_offer(&near, k->list[n].rule.id);
		return pp_error_set(err, -EINVAL, "%s:%u: rule '%s': there is no rule '%s'%s%s%s",
				    one->rule.file, one->rule.line, one->rule.id, names[i],
				    near.best ? "; did you mean '" : "", near.best ? near.best : "",
				    near.best ? "'?" : "");
	}
	return 0;
}

/* Visits each (literal, signature) of the anchors. */
static void each_anchor(const struct pp_known_set *k,
			void (*visit)(struct pp_known_set *k, unsigned int literal,
				      unsigned int signature),
			struct pp_known_set *arg)
{
	for (size_t i = 0; i < k->n_signatures; i++) {
		const struct pp_term *t = &k->signatures[i].terms[k->signatures[i].anchor];

		for (unsigned int n = 0; n < t->n_literals; n++)
			visit(arg, t->literals[n], (unsigned int)i);
	}
}

static void count_anchor(struct pp_known_set *k, unsigned int literal, unsigned int signature)
{
	(void)signature;
	k->index[literal + 1]++;
}

/* While filling, index[literal] is where the next one goes: at the end it is literal + 1's start.
 */
static void put_anchor(struct pp_known_set *k, unsigned int literal, unsigned int signature)
{
	k->anchored[k->index[literal]++] = signature;
}

static int watch(struct pp_known_set *k, const char *word, struct pp_error *err)
{
	if (k->n_watched == PP_KNOWN_WATCHED)
		return pp_error_set(err, -EFBIG, "more than %d words are watched for",
				    PP_KNOWN_WATCHED);
	return pp_automaton_add(k->automaton, word, &k->watched[k->n_watched++], err);
}

static int add_quotes(struct pp_known_set *k, struct pp_error *err)
{
	static const char *const warning[] = {"NCCL WARN", "NCCL WARN "};
	static const char *const announce[] = {"Last error:", "Last NCCL warning(error) log entry"};
	int r = 0;

	for (unsigned int i = 0; !r && i < PP_ARRAY_LEN(warning); i++)
		r = pp_automaton_add(k->automaton, warning[i], &k->warning[i], err);
	for (unsigned int i = 0; !r && i < PP_ARRAY_LEN(announce); i++)
		r = pp_automaton_add(k->automaton, announce[i], &k->announce[i], err);
	return r;
}

static void tell_shapes(struct pp_known_set *k)
{
	for (size_t i = 0; i < k->n_signatures; i++)
		pp_shapes_tell(&k->shapes, k->signatures[i].text);
	for (size_t i = 0; i < pp_automaton_literals(k->automaton); i++)
		pp_shapes_tell(&k->shapes, pp_automaton_text(k->automaton, (unsigned int)i));
}

int pp_known_finish(struct pp_known_set *k, struct pp_error *err)
{
	size_t literals;
	int r = 0;

	for (size_t i = 0; !r && i < k->n; i++) {
		r = check_names(k, &k->list[i], k->list[i].beats, err);
		if (!r)
			r = check_names(k, &k->list[i], k->list[i].follows, err);
	}
	for (unsigned int i = 0; !r && pp_derived_word(i); i++)
		r = watch(k, pp_derived_word(i), err);
	k->first_component = k->n_watched;
	for (unsigned int i = 0; !r && pp_component_word(i); i++)
		r = watch(k, pp_component_word(i), err);
	if (!r)
		r = add_quotes(k, err);
	literals = pp_automaton_literals(k->automaton);
	tell_shapes(k);
	if (!r)
		r = pp_automaton_build(k->automaton, err);
	if (r)
		return r;
	k->index = calloc(literals + 2, sizeof(*k->index));
	if (!k->index)
		return pp_error_set(err, -ENOMEM, "out of memory for rules");
	each_anchor(k, count_anchor, k);
	for (size_t i = 0; i < literals; i++)
		k->index[i + 1] += k->index[i];
	k->anchored = calloc(k->index[literals] + 1, sizeof(*k->anchored));
	if (!k->anchored)
		return pp_error_set(err, -ENOMEM, "out of memory for rules");
	each_anchor(k, put_anchor, k);
	memmove(k->index + 1, k->index, literals * sizeof(*k->index));
	k->index[0] = 0;
	return 0;
}

static int is_rules(const struct dirent *e)
{
	size_t len = strlen(e->d_name);

	return e->d_name[0] != '.' && len > 6 && !strcmp(e->d_name + len - 6, ".rules");
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int load_file(struct pp_known_set *k, const char *dir, const char *name,
		     struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(PP_RULES_FILE_MAX);
	char path[PATH_LONGEST];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, name), r;

	if (n < 0 || (size_t)n >= sizeof(path))
		return pp_error_set(err, -ENAMETOOLONG, "path of rule file '%s' is too long", name);
	r = pp_textfile_read(path, &text, err);
	return r ? r : pp_known_parse(k, path, pp_buf_text(&text), text.len, err);
}

static int load_dir(struct pp_known_set *k, const char *dir, struct pp_error *err)
{
	struct dirent **list = NULL;
	int n = scandir(dir, &list, is_rules, by_name), r = 0;
	char text[128];

	if (n < 0) {
		r = -errno;
		if (r == -ENOTDIR)
			return pp_error_set(
				err, r, "'%s' is a file: a directory with *.rules files is wanted",
				dir);
		return pp_error_set(err, r, "cannot read rules of '%s': %s", dir,
				    pp_errno_text(r, text, sizeof(text)));
	}
	if (n > FILES_MAX)
		r = pp_error_set(err, -EFBIG, "'%s' holds more than %d rule files", dir, FILES_MAX);
	for (int i = 0; i < n; i++) {
		if (!r)
			r = load_file(k, dir, list[i]->d_name, err);
		free(list[i]);
	}
	free(list);
	return r;
}

int pp_known_load(const char *dir, struct pp_known_set **ret, struct pp_error *err)
{
	struct pp_known_set *k = NULL;
	int r = pp_known_new(&k);

	if (r)
		return pp_error_set(err, r, "out of memory for rules");
	if (!dir)
		dir = secure_getenv("PEERPATH_EXPLAIN");
	r = load_dir(k, dir ? dir : PEERPATH_DATADIR "/explain", err);
	if (r == -ENOENT && !dir)
		r = load_dir(k, PEERPATH_SOURCE_DATADIR "/explain", err);
	if (!r && !k->n)
		r = pp_error_set(err, -EINVAL, "no rules in '%s'",
				 dir ? dir : PEERPATH_DATADIR "/explain");
	if (!r)
		r = pp_known_finish(k, err);
	if (r) {
		pp_known_free(k);
		return r;
	}
	*ret = k;
	return 0;
}
