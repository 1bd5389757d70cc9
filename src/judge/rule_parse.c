/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/rule_set.h"

#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "base/ini.h"
#include "base/near.h"
#include "base/parse.h"
#include "base/banned.h"

enum { ID_MAX = 63 };

/* A condition whose rule is not complete yet: its scope may stand below it. */
struct raw {
	const char *text;
	unsigned int line;
	bool unless;
	struct raw *next;
};

/* A section while its file is read. */
struct draft {
	struct pp_rule rule;
	bool has_scope, has_verdict;
	const char *show; /* words */
	unsigned int show_line;
	struct raw *first, *last;
	struct draft *next;
};

struct parser {
	struct pp_rules *rules;
	const char *name;
	unsigned int tier;
	struct draft *first, *last;
};

#define TEXT_KEY(key, member, needed)                         \
	{                                                     \
		key, offsetof(struct pp_rule, member), needed \
	}

static const struct {
	const char *key;
	size_t offset;
	bool needed;
} text_keys[] = {
	TEXT_KEY("title", title, true),	   TEXT_KEY("problem", problem, true),
	TEXT_KEY("cause", cause, true),	   TEXT_KEY("decide", decide, true),
	TEXT_KEY("fix", fix, true),	   TEXT_KEY("next", next, true),
	TEXT_KEY("source", source, true),  TEXT_KEY("reviewed", reviewed, true),
	TEXT_KEY("fix-id", fix_id, false), TEXT_KEY("reverse", reverse, false),
};

static const char *const other_keys[] = {"for",	    "when",   "unless",	 "show",
					 "verdict", "advice", "disabled"};

static const char **text_at(struct pp_rule *rule, size_t i)
{
	return (const char **)(void *)((char *)rule + text_keys[i].offset);
}

static int unknown_key(const char *key, struct pp_error *err)
{
	struct pp_near near = PP_NEAR(key);

	for (size_t i = 0; i < PP_ARRAY_LEN(text_keys); i++)
		pp_near_offer(&near, text_keys[i].key);
	for (size_t i = 0; i < PP_ARRAY_LEN(other_keys); i++)
		pp_near_offer(&near, other_keys[i]);
	return pp_error_set(err, -EINVAL, "unknown key '%s'%s%s%s", key,
			    near.best ? "; did you mean '" : "", near.best ? near.best : "",
			    near.best ? "'?" : "");
}

static bool id_valid(const char *id)
{
	size_t len = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return len && !id[len] && len <= ID_MAX;
}

static int begin(struct parser *p, const char *id, unsigned int line, struct pp_error *err)
{
	struct draft *d;

	if (!id_valid(id))
		return pp_error_set(err, -EINVAL, "'%s' is no rule id: 1 to %d of a-z, 0-9, '-'",
				    id, ID_MAX);
	for (d = p->first; d; d = d->next)
		if (!strcmp(d->rule.id, id))
			return pp_error_set(err, -EINVAL, "rule '%s' stands in line %u already", id,
					    d->rule.line);
	d = pp_arena_alloc(&p->rules->arena, sizeof(*d));
	if (!d)
		return pp_error_set(err, -ENOMEM, "out of memory for rules");
	d->rule.id = pp_arena_str(&p->rules->arena, id);
	d->rule.file = p->name;
	d->rule.line = line;
	d->rule.tier = p->tier;
	if (p->last)
		p->last->next = d;
	else
		p->first = d;
	p->last = d;
	return 0;
}

static int add_condition(struct parser *p, bool unless, const char *value, unsigned int line,
			 struct pp_error *err)
{
	struct draft *d = p->last;
	struct raw *raw = pp_arena_alloc(&p->rules->arena, sizeof(*raw));

	if (!raw)
		return pp_error_set(err, -ENOMEM, "out of memory for rules");
	if (d->rule.n_when + d->rule.n_unless == PP_RULE_CONDITIONS)
		return pp_error_set(err, -EINVAL, "more than %d conditions in rule '%s'",
				    PP_RULE_CONDITIONS, d->rule.id);
	*raw = (struct raw){pp_arena_str(&p->rules->arena, value), line, unless, NULL};
	if (d->last)
		d->last->next = raw;
	else
		d->first = raw;
	d->last = raw;
	*(unless ? &d->rule.n_unless : &d->rule.n_when) += 1;
	return 0;
}

static int flag_key(const char *key, const char *value, bool *ret, struct pp_error *err)
{
	return pp_parse_bool(value, ret)
		       ? pp_error_set(err, -EINVAL, "'%s' is yes or no, not '%s'", key, value)
		       : 0;
}

static int other_key(struct parser *p, const char *key, const char *value, unsigned int line,
		     struct pp_error *err)
{
	struct draft *d = p->last;

	if (!strcmp(key, "when") || !strcmp(key, "unless"))
		return add_condition(p, *key == 'u', value, line, err);
	if (!strcmp(key, "show")) {
		d->show = pp_arena_str(&p->rules->arena, value);
		d->show_line = line;
		return 0;
	}
	if (!strcmp(key, "advice"))
		return flag_key(key, value, &d->rule.advice, err);
	if (!strcmp(key, "disabled"))
		return flag_key(key, value, &d->rule.disabled, err);
	if (!strcmp(key, "for")) {
		d->has_scope = true;
		return pp_kind_parse(value, &d->rule.scope)
			       ? pp_error_set(err, -EINVAL,
					      "'%s' is none of node, gpu, hca, port, link, pair",
					      value)
			       : 0;
	}
	if (!strcmp(key, "verdict")) {
		d->has_verdict = true;
		if (pp_verdict_parse(value, &d->rule.verdict) || d->rule.verdict == PP_PASS)
			return pp_error_set(err, -EINVAL, "'%s' is none of degraded, unknown, fail",
					    value);
		return 0;
	}
	return unknown_key(key, err);
}

static int on_key(void *arg, const char *section, const char *key, const char *value,
		  unsigned int line, struct pp_error *err)
{
	struct parser *p = arg;
	const char **text;

	if (!key)
		return begin(p, section, line, err);
	for (size_t i = 0; i < PP_ARRAY_LEN(text_keys); i++) {
		if (strcmp(key, text_keys[i].key) != 0)
			continue;
		text = text_at(&p->last->rule, i);
		if (*text)
			return pp_error_set(err, -EINVAL, "key '%s' stands twice", key);
		*text = pp_arena_str(&p->rules->arena, value);
		return **text ? 0 : pp_error_set(err, -EINVAL, "key '%s' is empty", key);
	}
	return other_key(p, key, value, line, err);
}

static bool date_valid(const char *text)
{
	static const char shape[] = "dddd-dd-dd";

	for (size_t i = 0; i < sizeof(shape); i++)
		if (shape[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != shape[i])
			return false;
	return true;
}

/* Each word an address; each problem a letter and a number. */
static bool words_valid(const char *text, bool (*valid)(const char *word))
{
	for (; *text; text += strcspn(text, " "), text += strspn(text, " "))
		if (!valid(text))
			return false;
	return true;
}

static bool address_valid(const char *word)
{
	return !strncmp(word, "https://", 8);
}

static bool problem_valid(const char *word)
{
	size_t digits = strspn(word + 1, "0123456789");

	if (*word == '-')
		return !word[1];
	return (*word == 'P' || *word == 'R') && digits &&
	       (!word[1 + digits] || word[1 + digits] == ' ');
}

static int check_texts(struct draft *d, struct pp_error *err)
{
	struct pp_rule *rule = &d->rule;

	for (size_t i = 0; i < PP_ARRAY_LEN(text_keys); i++)
		if (text_keys[i].needed && !*text_at(rule, i))
			return pp_error_set(err, -EINVAL, "rule '%s' lacks '%s'", rule->id,
					    text_keys[i].key);
	if (!d->has_scope || !rule->n_when)
		return pp_error_set(err, -EINVAL, "rule '%s' lacks '%s'", rule->id,
				    d->has_scope ? "when" : "for");
	if (d->has_verdict == rule->advice)
		return pp_error_set(err, -EINVAL,
				    "rule '%s' needs either 'verdict' or 'advice = yes'", rule->id);
	if (rule->fix_id && (!id_valid(rule->fix_id) || !rule->reverse))
		return pp_error_set(err, -EINVAL,
				    "rule '%s': 'fix-id' is one word, and needs 'reverse'",
				    rule->id);
	if (!date_valid(rule->reviewed))
		return pp_error_set(err, -EINVAL, "rule '%s': 'reviewed' is a date, YYYY-MM-DD",
				    rule->id);
	if (!words_valid(rule->source, address_valid))
		return pp_error_set(err, -EINVAL,
				    "rule '%s': 'source' is one or more https:// addresses",
				    rule->id);
	if (!words_valid(rule->problem, problem_valid))
		return pp_error_set(err, -EINVAL, "rule '%s': 'problem' is '-' or words as P7, R4",
				    rule->id);
	return 0;
}

/*
 * Rules judge what is known; where ignorance itself decides, taking a fact away must not clear
 * a verdict. So "is known" may not be needed to fire, and what fires on ignorance says `unknown`.
 */
static int check_ignorance(const struct pp_rule *rule, const struct pp_condition *c, bool unless,
			   struct pp_error *err)
{
	bool rewards = c->op == (unless ? PP_OP_UNKNOWN : PP_OP_KNOWN);
	bool punishes = c->op == (unless ? PP_OP_KNOWN : PP_OP_UNKNOWN);

	if (rule->advice)
		return 0;
	if (rewards)
		return pp_error_set(err, -EINVAL,
				    "'%s' would clear the rule where the fact is missing: "
				    "for advice only",
				    c->text);
	if (punishes && rule->verdict != PP_UNKNOWN)
		return pp_error_set(err, -EINVAL, "'%s' needs 'verdict = unknown' or advice",
				    c->text);
	return 0;
}

static int resolve(struct pp_rules *rules, struct draft *d, unsigned int *ret_line,
		   struct pp_error *err)
{
	struct pp_rule *rule = &d->rule;
	struct pp_condition *next[2];
	int r;

	rule->when = next[0] = pp_arena_array(&rules->arena, rule->n_when, sizeof(*next[0]));
	rule->unless = next[1] = pp_arena_array(&rules->arena, rule->n_unless, sizeof(*next[1]));
	if (rules->arena.failed)
		return pp_error_set(err, -ENOMEM, "out of memory for rules");
	for (struct raw *raw = d->first; raw; raw = raw->next) {
		*ret_line = raw->line;
		r = pp_condition_parse(&rules->arena, rule->scope, raw->text, next[raw->unless],
				       err);
		if (!r)
			r = check_ignorance(rule, next[raw->unless], raw->unless, err);
		if (r)
			return r;
		next[raw->unless]++;
	}
	return 0;
}

/* "key key ...": what is shown beside the facts of the conditions. */
static int resolve_show(struct pp_rules *rules, struct draft *d, struct pp_error *err)
{
	enum pp_fact_id *list =
		pp_arena_array(&rules->arena, PP_RULE_SHOWN, sizeof(enum pp_fact_id));
	const char *at = d->show;
	char key[128];
	size_t len;
	int r;

	if (!list)
		return pp_error_set(err, -ENOMEM, "out of memory for rules");
	for (; *at; at += len, at += strspn(at, " ")) {
		len = strcspn(at, " ");
		if (len >= sizeof(key) || d->rule.n_show == PP_RULE_SHOWN)
			return pp_error_set(err, -EINVAL, "'show' is at most %d facts",
					    PP_RULE_SHOWN);
		memcpy(key, at, len);
		key[len] = '\0';
		r = pp_condition_fact(d->rule.scope, key, &list[d->rule.n_show], err);
		if (r)
			return r;
		d->rule.n_show++;
	}
	d->rule.show = list;
	return 0;
}

static int accept(struct pp_rules *r, struct draft *d, unsigned int *ret_line, struct pp_error *err)
{
	int error;

	*ret_line = d->rule.line;
	if (d->rule.disabled)
		return pp_rules_disable(r, &d->rule, err);
	error = check_texts(d, err);
	if (!error)
		error = resolve(r, d, ret_line, err);
	if (!error && d->show) {
		*ret_line = d->show_line;
		error = resolve_show(r, d, err);
	}
	if (error)
		return error;
	*ret_line = d->rule.line;
	return pp_rules_add(r, &d->rule, err);
}

int pp_rules_parse(struct pp_rules *r, unsigned int tier, const char *name, const char *text,
		   size_t len, struct pp_error *err)
{
	struct parser p = {.rules = r, .tier = tier, .name = pp_arena_str(&r->arena, name)};
	unsigned int line = 0;
	int error;

	if (len > PP_RULES_FILE_MAX)
		return pp_error_set(err, -EFBIG, "%s: longer than %d bytes", name,
				    PP_RULES_FILE_MAX);
	error = pp_ini_parse(name, text, len, on_key, &p, err);
	if (error)
		return error;
	for (struct draft *d = p.first; d; d = d->next) {
		error = accept(r, d, &line, err);
		if (error)
			return pp_error_prefix(err, "%s:%u", name, line);
	}
	return r->arena.failed ? pp_error_set(err, -ENOMEM, "%s: out of memory for rules", name)
			       : 0;
}
