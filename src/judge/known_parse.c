/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of the rule files in data/explain to sections.
 */
#include "judge/known_section.h"

#include <errno.h>
#include <string.h>

#include "base/ini.h"
#include "base/near.h"
#include "base/banned.h"

enum { ID_MAX = 63 };

/* Blames the line of the key that is wrong; on_key()'s caller would blame where the section ends.
 */
static int finish_section(struct pp_known_section *p)
{
	struct pp_known k = {.rule = {.id = p->id, .file = p->name, .line = p->id_line}};
	int r;

	if (!p->id)
		return 0;
	p->at = p->id_line;
	r = pp_known_take(p, &k, &p->own);
	if (!r) {
		p->at = p->id_line;
		r = pp_known_add(p->set, &k, &p->own);
	}
	return r ? pp_error_prefix(&p->own, "%s:%u: rule '%s'", p->name, p->at, p->id) : 0;
}

static int begin_section(struct pp_known_section *p, const char *id, unsigned int line,
			 struct pp_error *err)
{
	size_t len = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-");
	int r = finish_section(p);

	if (r)
		return r;
	if (!len || id[len] || len > ID_MAX)
		return pp_error_set(err, -EINVAL, "'%s' is no rule id: 1 to %d of a-z, 0-9, '-'",
				    id, ID_MAX);
	p->id = pp_arena_str(&p->set->arena, id);
	p->id_line = line;
	p->n = 0;
	return 0;
}

static int on_key(void *arg, const char *section, const char *key, const char *value,
		  unsigned int line, struct pp_error *err)
{
	struct pp_known_section *p = arg;
	struct pp_near near;

	if (!key)
		return begin_section(p, section, line, err);
	for (unsigned int i = 0; i < PP_KEYS; i++) {
		if (strcmp(key, pp_known_keys[i].name) != 0)
			continue;
		if (!*value || p->n == PP_KNOWN_LINES)
			return pp_error_set(err, -EINVAL, "key '%s' is empty, or one too many",
					    key);
		if (!pp_known_keys[i].repeats && pp_known_get(p, (enum pp_known_key)i))
			return pp_error_set(err, -EINVAL, "key '%s' stands twice", key);
		p->list[p->n++] = (struct pp_known_entry){
			(enum pp_known_key)i, pp_arena_str(&p->set->arena, value), line};
		return 0;
	}
	near = PP_NEAR(key);
	for (unsigned int i = 0; i < PP_KEYS; i++)
		pp_near_offer(&near, pp_known_keys[i].name);
	return pp_error_set(err, -EINVAL, "unknown key '%s'%s%s%s", key,
			    near.best ? "; did you mean '" : "", near.best ? near.best : "",
			    near.best ? "'?" : "");
}

int pp_known_parse(struct pp_known_set *k, const char *name, const char *text, size_t len,
		   struct pp_error *err)
{
	struct pp_known_section p = {.set = k, .name = pp_arena_str(&k->arena, name)};
	int r;

	if (len > PP_RULES_FILE_MAX)
		return pp_error_set(err, -EFBIG, "%s: longer than %d bytes", name,
				    PP_RULES_FILE_MAX);
	r = pp_ini_parse(name, text, len, on_key, &p, err);
	if (!r)
		r = finish_section(&p);
	if (p.own.code) {
		*err = p.own;
		r = err->code;
	}
	if (!r && k->arena.failed)
		r = pp_error_set(err, -ENOMEM, "%s: out of memory for rules", name);
	return r;
}
