/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections of the rule files in data/explain to known problems. Conditions are parsed when their
 * section is complete: its scope may stand below them.
 */
#include "judge/known_set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/ini.h"
#include "base/near.h"
#include "base/parse.h"
#include "base/banned.h"

enum { ID_MAX = 63, LINES = 64, LONGEST = 1024 };

enum key {
	KEY_TITLE,
	KEY_PROBLEM,
	KEY_CAUSE,
	KEY_DECIDE,
	KEY_FIX,
	KEY_FIX_ID,
	KEY_REVERSE,
	KEY_NEXT,
	KEY_SOURCE,
	KEY_REVIEWED,
	KEY_NOT,
	KEY_CONTROL,
	KEY_KIND,
	KEY_FOR,
	KEY_ALONE,
	KEY_HINTED,
	KEY_CONFIRMED,
	KEY_BEATS,
	KEY_FOLLOWS,
	KEY_MATCH,
	KEY_WITH,
	KEY_WITHOUT,
	KEY_HINT,
	KEY_REQUIRES,
	KEY_EXCLUDES,
	KEY_SHOW,
	KEYS
};

static const struct {
	const char *name;
	bool repeats, needed; /* needed of problems, consequences and harmless ones */
} keys[KEYS] = {
	[KEY_TITLE] = {"title", false, true},
	[KEY_PROBLEM] = {"problem", false, true},
	[KEY_CAUSE] = {"cause", false, true},
	[KEY_DECIDE] = {"decide", false, true},
	[KEY_FIX] = {"fix", false, true},
	[KEY_FIX_ID] = {"fix-id", false, false},
	[KEY_REVERSE] = {"reverse", false, false},
	[KEY_NEXT] = {"next", false, true},
	[KEY_SOURCE] = {"source", false, true},
	[KEY_REVIEWED] = {"reviewed", false, true},
	[KEY_NOT] = {"not", false, false},
	[KEY_CONTROL] = {"control", false, false},
	[KEY_KIND] = {"kind", false, false},
	[KEY_FOR] = {"for", false, false},
	[KEY_ALONE] = {"alone", false, false},
	[KEY_HINTED] = {"hinted", false, false},
	[KEY_CONFIRMED] = {"confirmed", false, false},
	[KEY_BEATS] = {"beats", false, false},
	[KEY_FOLLOWS] = {"follows", false, false},
	[KEY_MATCH] = {"match", true, true},
	[KEY_WITH] = {"with", true, false},
	[KEY_WITHOUT] = {"without", true, false},
	[KEY_HINT] = {"hint", true, false},
	[KEY_REQUIRES] = {"requires", true, false},
	[KEY_EXCLUDES] = {"excludes", true, false},
	[KEY_SHOW] = {"show", false, false},
};

struct entry {
	enum key key;
	const char *value;
	unsigned int line;
};

struct parser {
	struct pp_known_set *set;
	const char *name;
	const char *id;		  /* of the section being read; NULL before the first */
	unsigned int id_line, at; /* at: line to blame */
	struct entry list[LINES];
	unsigned int n;
};

static int bad_word(const char *key, const char *value, struct pp_error *err)
{
	return pp_error_set(err, -EINVAL, "'%s' is no value of '%s'", value, key);
}

static const char *get(const struct parser *p, enum key key)
{
	for (unsigned int i = 0; i < p->n; i++)
		if (p->list[i].key == key)
			return p->list[i].value;
	return NULL;
}

static int take_kind(const struct parser *p, struct pp_known *k, struct pp_error *err)
{
	const char *value = get(p, KEY_KIND);

	if (!value)
		return 0;
	for (unsigned int i = 0; i < PP_KNOWN_KINDS; i++) {
		if (strcmp(value, pp_known_kind_name((enum pp_known_kind)i)) != 0)
			continue;
		k->kind = (enum pp_known_kind)i;
		return 0;
	}
	return bad_word("kind", value, err);
}

static int take_certainty(const struct parser *p, enum key key, enum pp_certainty otherwise,
			  enum pp_certainty *ret, struct pp_error *err)
{
	const char *value = get(p, key);

	*ret = otherwise;
	if (!value)
		return 0;
	for (unsigned int i = PP_POSSIBLE; i <= PP_CERTAIN; i++) {
		if (strcmp(value, pp_certainty_name((enum pp_certainty)i)) != 0)
			continue;
		*ret = (enum pp_certainty)i;
		return 0;
	}
	return bad_word(keys[key].name, value, err);
}

static int take_certainties(const struct parser *p, struct pp_known *k, struct pp_error *err)
{
	int r = take_certainty(p, KEY_ALONE, PP_POSSIBLE, &k->alone, err);

	if (!r)
		r = take_certainty(p, KEY_HINTED, k->alone > PP_LIKELY ? k->alone : PP_LIKELY,
				   &k->hinted, err);
	if (!r)
		r = take_certainty(p, KEY_CONFIRMED, k->alone > PP_LIKELY ? k->alone : PP_LIKELY,
				   &k->confirmed, err);
	return r;
}

static int take_names(struct parser *p, enum key key, const char *ret[PP_KNOWN_NAMES],
		      struct pp_error *err)
{
	const char *at = get(p, key);
	unsigned int n = 0;
	size_t len;

	for (; at && *at; at += len, at += strspn(at, " ")) {
		len = strcspn(at, " ");
		if (n == PP_KNOWN_NAMES)
			return pp_error_set(err, -EINVAL, "more than %d names in '%s'",
					    PP_KNOWN_NAMES, keys[key].name);
		ret[n++] = pp_arena_strn(&p->set->arena, at, len);
	}
	return 0;
}

/* The next " or " outside quotes; NULL none. */
static char *find_or(char *text)
{
	bool quoted = false;

	for (; *text; text++) {
		quoted ^= *text == '"';
		if (!quoted && !strncmp(text, " or ", 4))
			return text;
	}
	return NULL;
}

/* "signature or signature" */
static int take_clue(struct parser *p, const char *text, struct pp_clue *ret, struct pp_error *err)
{
	char copy[LONGEST], *at = copy, *or_;
	int r;

	if (strlen(text) >= sizeof(copy))
		return pp_error_set(err, -EINVAL, "longer than %d bytes", LONGEST - 1);
	memcpy(copy, text, strlen(text) + 1);
	if (!ret->n)
		ret->first = (unsigned int)p->set->n_signatures;
	for (; at; at = or_) {
		or_ = find_or(at);
		if (or_) {
			*or_ = '\0';
			or_ += 4;
		}
		r = pp_known_add_signature(p->set, at, err);
		if (r)
			return r;
		ret->n++;
	}
	return 0;
}

/* Lines of one key become alternatives of one clue, or a clue each. */
static int take_clues(struct parser *p, enum key key, struct pp_clue *clues, unsigned int *ret_n,
		      struct pp_error *err)
{
	unsigned int n = 0;
	int r;

	for (unsigned int i = 0; i < p->n; i++) {
		if (p->list[i].key != key)
			continue;
		p->at = p->list[i].line;
		if (ret_n && n == PP_KNOWN_CLUES)
			return pp_error_set(err, -EINVAL, "more than %d lines of '%s'",
					    PP_KNOWN_CLUES, keys[key].name);
		r = take_clue(p, p->list[i].value, ret_n ? &clues[n] : clues, err);
		if (r)
			return r;
		n++;
	}
	if (ret_n)
		*ret_n = n;
	return 0;
}

/* A condition with {driver} is parsed again for each text, with what the text names. */
static int take_template(struct parser *p, struct pp_known *k, const char *value,
			 struct pp_error *err)
{
	struct pp_condition unused;
	char copy[LONGEST];
	const char *brace = strstr(value, "{driver}");

	(void)snprintf(copy, sizeof(copy), "%.*sx%s", (int)(brace - value), value,
		       brace + strlen("{driver}"));
	k->templates[k->n_templates++] = pp_arena_str(&p->set->arena, value);
	return pp_condition_parse(&p->set->arena, k->rule.scope, copy, &unused, err);
}

static int take_conditions(struct parser *p, struct pp_known *k, enum key key,
			   struct pp_condition **ret, unsigned int *ret_n, struct pp_error *err)
{
	struct pp_condition *list =
		pp_arena_array(&p->set->arena, PP_RULE_CONDITIONS, sizeof(*list));
	unsigned int n = 0;
	int r;

	if (!list)
		return pp_error_set(err, -ENOMEM, "out of memory for rules");
	for (unsigned int i = 0; i < p->n; i++) {
		if (p->list[i].key != key)
			continue;
		p->at = p->list[i].line;
		if (n + k->n_templates == PP_RULE_CONDITIONS)
			return pp_error_set(err, -EINVAL, "more than %d lines of '%s'",
					    PP_RULE_CONDITIONS, keys[key].name);
		if (key == KEY_EXCLUDES && strstr(p->list[i].value, "{driver}"))
			r = take_template(p, k, p->list[i].value, err);
		else
			r = pp_condition_parse(&p->set->arena, k->rule.scope, p->list[i].value,
					       &list[n++], err);
		if (r)
			return r;
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

static int take_show(struct parser *p, struct pp_known *k, struct pp_error *err)
{
	const char *at = get(p, KEY_SHOW);
	enum pp_fact_id *list =
		pp_arena_array(&p->set->arena, PP_RULE_SHOWN, sizeof(enum pp_fact_id));
	char key[128];
	size_t len;
	int r;

	if (!list)
		return pp_error_set(err, -ENOMEM, "out of memory for rules");
	for (; at && *at; at += len, at += strspn(at, " ")) {
		len = strcspn(at, " ");
		if (len >= sizeof(key) || k->rule.n_show == PP_RULE_SHOWN)
			return pp_error_set(err, -EINVAL, "'show' is at most %d facts",
					    PP_RULE_SHOWN);
		memcpy(key, at, len);
		key[len] = '\0';
		r = pp_condition_fact(k->rule.scope, key, &list[k->rule.n_show++], err);
		if (r)
			return r;
	}
	k->rule.show = list;
	return 0;
}

static int take_texts(const struct parser *p, struct pp_known *k, struct pp_error *err)
{
	struct pp_rule *rule = &k->rule;
	bool silent = k->kind == PP_KNOWN_FORMAT || k->kind == PP_KNOWN_ALARM;

	for (unsigned int i = 0; i < KEYS; i++)
		if (keys[i].needed && !get(p, (enum key)i) && (!silent || i == KEY_MATCH))
			return pp_error_set(err, -EINVAL, "rule '%s' lacks '%s'", p->id,
					    keys[i].name);
	rule->title = get(p, KEY_TITLE);
	rule->problem = get(p, KEY_PROBLEM);
	rule->cause = get(p, KEY_CAUSE);
	rule->decide = get(p, KEY_DECIDE);
	rule->fix = get(p, KEY_FIX);
	rule->fix_id = get(p, KEY_FIX_ID);
	rule->reverse = get(p, KEY_REVERSE);
	rule->next = get(p, KEY_NEXT);
	rule->source = get(p, KEY_SOURCE);
	rule->reviewed = get(p, KEY_REVIEWED);
	k->not_text = get(p, KEY_NOT);
	k->control = get(p, KEY_CONTROL);
	if (rule->fix_id && !rule->reverse)
		return pp_error_set(err, -EINVAL, "rule '%s': 'fix-id' needs 'reverse'", p->id);
	if (rule->source && strncmp(rule->source, "https://", 8) != 0)
		return pp_error_set(err, -EINVAL, "rule '%s': 'source' is no https:// address",
				    p->id);
	return 0;
}

static int take_all(struct parser *p, struct pp_known *k, struct pp_error *err)
{
	const char *scope = get(p, KEY_FOR);
	int r = take_kind(p, k, err);

	if (!r)
		r = take_texts(p, k, err);
	if (!r && scope && pp_kind_parse(scope, &k->rule.scope))
		r = bad_word("for", scope, err);
	if (!r)
		r = take_certainties(p, k, err);
	if (!r)
		r = take_names(p, KEY_BEATS, k->beats, err);
	if (!r)
		r = take_names(p, KEY_FOLLOWS, k->follows, err);
	if (!r)
		r = take_clues(p, KEY_MATCH, &k->match, NULL, err);
	if (!r)
		r = take_clues(p, KEY_WITH, k->with, &k->n_with, err);
	if (!r)
		r = take_clues(p, KEY_WITHOUT, &k->without, NULL, err);
	if (!r)
		r = take_clues(p, KEY_HINT, k->hint, &k->n_hint, err);
	if (!r)
		r = take_conditions(p, k, KEY_REQUIRES, &k->rule.when, &k->rule.n_when, err);
	if (!r)
		r = take_conditions(p, k, KEY_EXCLUDES, &k->rule.unless, &k->rule.n_unless, err);
	return r ? r : take_show(p, k, err);
}

static int finish_section(struct parser *p, struct pp_error *err)
{
	struct pp_known k = {.rule = {.id = p->id, .file = p->name, .line = p->id_line}};
	int r;

	if (!p->id)
		return 0;
	p->at = p->id_line;
	r = take_all(p, &k, err);
	if (!r) {
		p->at = p->id_line;
		r = pp_known_add(p->set, &k, err);
	}
	return r ? pp_error_prefix(err, "rule '%s', line %u", p->id, p->at) : 0;
}

static int begin_section(struct parser *p, const char *id, unsigned int line, struct pp_error *err)
{
	size_t len = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-");
	int r = finish_section(p, err);

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
	struct parser *p = arg;
	struct pp_near near;

	if (!key)
		return begin_section(p, section, line, err);
	near = PP_NEAR(key);
	for (unsigned int i = 0; i < KEYS; i++) {
		pp_near_offer(&near, keys[i].name);
		if (strcmp(key, keys[i].name) != 0)
			continue;
		if (!*value || p->n == LINES)
			return pp_error_set(err, -EINVAL, "key '%s' is empty, or one too many",
					    key);
		if (!keys[i].repeats && get(p, (enum key)i))
			return pp_error_set(err, -EINVAL, "key '%s' stands twice", key);
		p->list[p->n++] =
			(struct entry){(enum key)i, pp_arena_str(&p->set->arena, value), line};
		return 0;
	}
	return pp_error_set(err, -EINVAL, "unknown key '%s'%s%s%s", key,
			    near.best ? "; did you mean '" : "", near.best ? near.best : "",
			    near.best ? "'?" : "");
}

int pp_known_parse(struct pp_known_set *k, const char *name, const char *text, size_t len,
		   struct pp_error *err)
{
	struct parser p = {.set = k, .name = pp_arena_str(&k->arena, name)};
	int r;

	if (len > PP_RULES_FILE_MAX)
		return pp_error_set(err, -EFBIG, "%s: longer than %d bytes", name,
				    PP_RULES_FILE_MAX);
	r = pp_ini_parse(name, text, len, on_key, &p, err);
	if (!r && finish_section(&p, err))
		r = pp_error_prefix(err, "%s", name);
	if (!r && k->arena.failed)
		r = pp_error_set(err, -ENOMEM, "%s: out of memory for rules", name);
	return r;
}
