/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A complete section to a known problem. Conditions are parsed here: their scope may stand below
 * them in the file.
 */
#include "judge/known_section.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

enum { LONGEST = 1024 };

const struct pp_known_key_info pp_known_keys[PP_KEYS] = {
	[PP_KEY_TITLE] = {"title", false, true},
	[PP_KEY_PROBLEM] = {"problem", false, true},
	[PP_KEY_CAUSE] = {"cause", false, true},
	[PP_KEY_DECIDE] = {"decide", false, true},
	[PP_KEY_FIX] = {"fix", false, true},
	[PP_KEY_FIX_ID] = {"fix-id", false, false},
	[PP_KEY_REVERSE] = {"reverse", false, false},
	[PP_KEY_NEXT] = {"next", false, true},
	[PP_KEY_SOURCE] = {"source", false, true},
	[PP_KEY_REVIEWED] = {"reviewed", false, true},
	[PP_KEY_NOT] = {"not", false, false},
	[PP_KEY_CONTROL] = {"control", false, false},
	[PP_KEY_KIND] = {"kind", false, false},
	[PP_KEY_FOR] = {"for", false, false},
	[PP_KEY_ALONE] = {"alone", false, false},
	[PP_KEY_HINTED] = {"hinted", false, false},
	[PP_KEY_CONFIRMED] = {"confirmed", false, false},
	[PP_KEY_BEATS] = {"beats", false, false},
	[PP_KEY_LAST] = {"last", false, false},
	[PP_KEY_FOLLOWS] = {"follows", false, false},
	[PP_KEY_MATCH] = {"match", true, true},
	[PP_KEY_WITH] = {"with", true, false},
	[PP_KEY_WITHOUT] = {"without", true, false},
	[PP_KEY_HINT] = {"hint", true, false},
	[PP_KEY_REQUIRES] = {"requires", true, false},
	[PP_KEY_EXCLUDES] = {"excludes", true, false},
	[PP_KEY_VERSIONS] = {"versions", false, false},
	[PP_KEY_SHOW] = {"show", false, false},
};

static int bad_word(const char *key, const char *value, struct pp_error *err)
{
	return pp_error_set(err, -EINVAL, "'%s' is no value of '%s'", value, key);
}

const char *pp_known_get(const struct pp_known_section *p, enum pp_known_key key)
{
	for (unsigned int i = 0; i < p->n; i++)
		if (p->list[i].key == key)
			return p->list[i].value;
	return NULL;
}

static int take_kind(const struct pp_known_section *p, struct pp_known *k, struct pp_error *err)
{
	const char *value = pp_known_get(p, PP_KEY_KIND);

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

static int take_certainty(const struct pp_known_section *p, enum pp_known_key key,
			  enum pp_certainty otherwise, enum pp_certainty *ret, struct pp_error *err)
{
	const char *value = pp_known_get(p, key);

	*ret = otherwise;
	if (!value)
		return 0;
	for (unsigned int i = PP_POSSIBLE; i <= PP_CERTAIN; i++) {
		if (strcmp(value, pp_certainty_name((enum pp_certainty)i)) != 0)
			continue;
		*ret = (enum pp_certainty)i;
		return 0;
	}
	return bad_word(pp_known_keys[key].name, value, err);
}

static int take_certainties(const struct pp_known_section *p, struct pp_known *k,
			    struct pp_error *err)
{
	const char *last = pp_known_get(p, PP_KEY_LAST);
	int r = take_certainty(p, PP_KEY_ALONE, PP_POSSIBLE, &k->alone, err);

	if (!r && last && strcmp(last, "yes") != 0)
		r = bad_word("last", last, err);
	k->last = last != NULL;
	if (!r)
		r = take_certainty(p, PP_KEY_HINTED, k->alone > PP_LIKELY ? k->alone : PP_LIKELY,
				   &k->hinted, err);
	if (!r)
		r = take_certainty(p, PP_KEY_CONFIRMED, k->alone > PP_LIKELY ? k->alone : PP_LIKELY,
				   &k->confirmed, err);
	return r;
}

static int take_names(struct pp_known_section *p, enum pp_known_key key,
		      const char *ret[PP_KNOWN_NAMES], struct pp_error *err)
{
	const char *at = pp_known_get(p, key);
	unsigned int n = 0;
	size_t len;

	for (; at && *at; at += len, at += strspn(at, " ")) {
		len = strcspn(at, " ");
		if (n == PP_KNOWN_NAMES)
			return pp_error_set(err, -EINVAL, "more than %d names in '%s'",
					    PP_KNOWN_NAMES, pp_known_keys[key].name);
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
static int take_clue(struct pp_known_section *p, const char *text, struct pp_clue *ret,
		     struct pp_error *err)
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
static int take_clues(struct pp_known_section *p, enum pp_known_key key, struct pp_clue *clues,
		      unsigned int *ret_n, struct pp_error *err)
{
	unsigned int n = 0;
	int r;

	for (unsigned int i = 0; i < p->n; i++) {
		if (p->list[i].key != key)
			continue;
		p->at = p->list[i].line;
		if (ret_n && n == PP_KNOWN_CLUES)
			return pp_error_set(err, -EINVAL, "more than %d lines of '%s'",
					    PP_KNOWN_CLUES, pp_known_keys[key].name);
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
static int take_template(struct pp_known_section *p, struct pp_known *k, const char *value,
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

static int take_conditions(struct pp_known_section *p, struct pp_known *k, enum pp_known_key key,
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
					    PP_RULE_CONDITIONS, pp_known_keys[key].name);
		if (key == PP_KEY_EXCLUDES && strstr(p->list[i].value, "{driver}"))
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

static int take_versions(struct pp_known_section *p, struct pp_known *k, struct pp_error *err)
{
	const char *value = pp_known_get(p, PP_KEY_VERSIONS);

	for (unsigned int i = 0; value && i < p->n; i++)
		if (p->list[i].key == PP_KEY_VERSIONS)
			p->at = p->list[i].line;
	return value ? pp_ranges_parse(value, k->ranges, &k->n_ranges, err) : 0;
}

static int take_show(struct pp_known_section *p, struct pp_known *k, struct pp_error *err)
{
	const char *at = pp_known_get(p, PP_KEY_SHOW);
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

static int take_texts(const struct pp_known_section *p, struct pp_known *k, struct pp_error *err)
{
	struct pp_rule *rule = &k->rule;
	bool silent = k->kind == PP_KNOWN_FORMAT || k->kind == PP_KNOWN_ALARM;

	for (unsigned int i = 0; i < PP_KEYS; i++)
		if (pp_known_keys[i].needed && !pp_known_get(p, (enum pp_known_key)i) &&
		    (!silent || i == PP_KEY_MATCH))
			return pp_error_set(err, -EINVAL, "'%s' is missing", pp_known_keys[i].name);
	rule->title = pp_known_get(p, PP_KEY_TITLE);
	rule->problem = pp_known_get(p, PP_KEY_PROBLEM);
	rule->cause = pp_known_get(p, PP_KEY_CAUSE);
	rule->decide = pp_known_get(p, PP_KEY_DECIDE);
	rule->fix = pp_known_get(p, PP_KEY_FIX);
	rule->fix_id = pp_known_get(p, PP_KEY_FIX_ID);
	rule->reverse = pp_known_get(p, PP_KEY_REVERSE);
	rule->next = pp_known_get(p, PP_KEY_NEXT);
	rule->source = pp_known_get(p, PP_KEY_SOURCE);
	rule->reviewed = pp_known_get(p, PP_KEY_REVIEWED);
	k->not_text = pp_known_get(p, PP_KEY_NOT);
	k->control = pp_known_get(p, PP_KEY_CONTROL);
	if (rule->fix_id && !rule->reverse)
		return pp_error_set(err, -EINVAL, "'fix-id' needs 'reverse'");
	if (rule->source && strncmp(rule->source, "https://", 8) != 0)
		return pp_error_set(err, -EINVAL, "'source' is no https:// address");
	return 0;
}

int pp_known_take(struct pp_known_section *p, struct pp_known *k, struct pp_error *err)
{
	const char *scope = pp_known_get(p, PP_KEY_FOR);
	int r = take_kind(p, k, err);

	if (!r)
		r = take_texts(p, k, err);
	if (!r && scope && pp_kind_parse(scope, &k->rule.scope))
		r = bad_word("for", scope, err);
	if (!r)
		r = take_certainties(p, k, err);
	if (!r)
		r = take_names(p, PP_KEY_BEATS, k->beats, err);
	if (!r)
		r = take_names(p, PP_KEY_FOLLOWS, k->follows, err);
	if (!r)
		r = take_clues(p, PP_KEY_MATCH, &k->match, NULL, err);
	if (!r)
		r = take_clues(p, PP_KEY_WITH, k->with, &k->n_with, err);
	if (!r)
		r = take_clues(p, PP_KEY_WITHOUT, &k->without, NULL, err);
	if (!r)
		r = take_clues(p, PP_KEY_HINT, k->hint, &k->n_hint, err);
	if (!r)
		r = take_conditions(p, k, PP_KEY_REQUIRES, &k->rule.when, &k->rule.n_when, err);
	if (!r)
		r = take_conditions(p, k, PP_KEY_EXCLUDES, &k->rule.unless, &k->rule.n_unless, err);
	if (!r)
		r = take_versions(p, k, err);
	return r ? r : take_show(p, k, err);
}
