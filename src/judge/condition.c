/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/condition.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "base/near.h"
#include "base/parse.h"
#include "base/version.h"
#include "base/banned.h"

enum { LONGEST = 1024 };

#define ON(type) (1u << (type))
enum {
	ANY = ON(PP_STR) | ON(PP_INT) | ON(PP_BOOL) | ON(PP_VERSION) | ON(PP_LIST),
	ORDERED = ON(PP_INT) | ON(PP_VERSION),
	SCALAR = ORDERED | ON(PP_STR) | ON(PP_BOOL),
	TEXT = ON(PP_STR) | ON(PP_VERSION) | ON(PP_LIST),
};

/* The operators, and the types of fact that each one has a meaning for. */
static const struct {
	const char *word;
	enum pp_op op;
	unsigned int types;
	bool operand; /* a value follows */
} operators[] = {
	{"==", PP_OP_EQ, SCALAR, true},		{"!=", PP_OP_NE, SCALAR, true},
	{"<=", PP_OP_LE, ORDERED, true},	{"<", PP_OP_LT, ORDERED, true},
	{">=", PP_OP_GE, ORDERED, true},	{">", PP_OP_GT, ORDERED, true},
	{"~", PP_OP_MATCH, TEXT, true},		{"contains", PP_OP_CONTAINS, TEXT, true},
	{"is known", PP_OP_KNOWN, ANY, false},	{"is unknown", PP_OP_UNKNOWN, ANY, false},
	{"is empty", PP_OP_EMPTY, TEXT, false}, {"is not empty", PP_OP_NOT_EMPTY, TEXT, false},
};

static const char *const type_names[] = {
	[PP_STR] = "text",	    [PP_INT] = "a number", [PP_BOOL] = "yes or no",
	[PP_VERSION] = "a version", [PP_LIST] = "a list",
};

/* Kinds whose facts a rule of each scope may use. */
static const unsigned int reach[PP_KINDS] = {
	[PP_NODE] = ON(PP_NODE),
	[PP_GPU] = ON(PP_GPU) | ON(PP_NODE),
	[PP_HCA] = ON(PP_HCA) | ON(PP_NODE),
	[PP_PORT] = ON(PP_PORT) | ON(PP_HCA) | ON(PP_NODE),
	[PP_LINK] = ON(PP_LINK) | ON(PP_NODE),
	[PP_PAIR] = ON(PP_PAIR) | ON(PP_GPU) | ON(PP_HCA) | ON(PP_NODE),
};

int pp_condition_fact(enum pp_kind scope, const char *key, enum pp_fact_id *ret,
		      struct pp_error *err)
{
	struct pp_near near = PP_NEAR(key);
	enum pp_fact_id id;

	if (pp_fact_find(key, &id)) {
		for (size_t i = 0; i < PP_FACTS; i++)
			pp_near_offer(&near, pp_fact_table[i].key);
		return pp_error_set(err, -EINVAL, "unknown fact '%s'%s%s%s", key,
				    near.best ? "; did you mean '" : "", near.best ? near.best : "",
				    near.best ? "'?" : "");
	}
	if (!(reach[scope] & ON(pp_fact_table[id].kind)))
		return pp_error_set(err, -EINVAL,
				    "'%s' is a fact of a %s, which a rule for a %s cannot see", key,
				    pp_kind_name(pp_fact_table[id].kind), pp_kind_name(scope));
	*ret = id;
	return 0;
}

/* Right side by the type of the fact on the left. */
static int parse_operand(struct pp_arena *arena, enum pp_kind scope, const char *text,
			 struct pp_condition *c, struct pp_error *err)
{
	enum pp_type type = pp_fact_table[c->fact].type;
	enum pp_fact_id other;
	uint64_t size;
	bool flag;
	int r;

	if (*text == '@') {
		r = pp_condition_fact(scope, text + 1, &other, err);
		if (r)
			return r;
		if (pp_fact_table[other].type != type || type == PP_LIST)
			return pp_error_set(err, -EINVAL, "'%s' and '%s' cannot be compared",
					    pp_fact_table[c->fact].key, text + 1);
		c->other = (int)other;
		return 0;
	}
	if (type == PP_BOOL) {
		r = pp_parse_bool(text, &flag);
		c->number = r ? 0 : flag;
	} else if (type == PP_INT) {
		r = pp_parse_i64(text, INT64_MIN, INT64_MAX, &c->number);
		if (r && !pp_parse_size(text, INT64_MAX, &size)) {
			c->number = (int64_t)size;
			r = 0;
		}
	} else {
		r = type == PP_VERSION && c->op <= PP_OP_GE && !pp_version_valid(text) ? -EINVAL
										       : 0;
	}
	if (r)
		return pp_error_set(err, -EINVAL, "'%s' is %s; '%s' is not",
				    pp_fact_table[c->fact].key, type_names[type], text);
	c->value = pp_arena_str(arena, text);
	return 0;
}

/* "fact op rest": cuts the fact off; blanks separate, so that keys may hold any other byte. */
static char *cut_word(char *text)
{
	char *end = text + strcspn(text, " \t");

	if (*end)
		*end++ = '\0';
	return end + strspn(end, " \t");
}

static int parse_operator(struct pp_arena *arena, enum pp_kind scope, char *rest,
			  struct pp_condition *c, struct pp_error *err)
{
	unsigned int type = ON(pp_fact_table[c->fact].type);
	size_t len;

	for (size_t i = 0; i < PP_ARRAY_LEN(operators); i++) {
		len = strlen(operators[i].word);
		if (strncmp(rest, operators[i].word, len) != 0 ||
		    (rest[len] && rest[len] != ' ' && rest[len] != '\t'))
			continue;
		if (!(operators[i].types & type))
			return pp_error_set(err, -EINVAL,
					    "'%s' has no meaning for '%s', which is %s",
					    operators[i].word, pp_fact_table[c->fact].key,
					    type_names[pp_fact_table[c->fact].type]);
		c->op = operators[i].op;
		rest = pp_trim(rest + len);
		if (operators[i].operand != (*rest != '\0'))
			return pp_error_set(err, -EINVAL, "'%s' %s", operators[i].word,
					    *rest ? "takes no value" : "needs a value");
		return *rest ? parse_operand(arena, scope, rest, c, err) : 0;
	}
	return pp_error_set(err, -EINVAL,
			    "no operator at '%s'; they are == != < <= > >= ~ contains, "
			    "is known, is unknown, is empty, is not empty",
			    rest);
}

int pp_condition_parse(struct pp_arena *arena, enum pp_kind scope, const char *text,
		       struct pp_condition *ret, struct pp_error *err)
{
	struct pp_condition c = {.other = -1};
	char copy[LONGEST], *word, *rest;
	size_t len = strlen(text);
	int r;

	if (len >= sizeof(copy))
		return pp_error_set(err, -EINVAL, "condition is longer than %d bytes", LONGEST - 1);
	memcpy(copy, text, len + 1);
	word = pp_trim(copy);
	rest = cut_word(word);
	r = pp_condition_fact(scope, word, &c.fact, err);
	if (!r)
		r = parse_operator(arena, scope, rest, &c, err);
	if (r)
		return r;
	c.text = pp_arena_str(arena, text);
	*ret = c;
	return 0;
}

const struct pp_object *pp_condition_holder(const struct pp_facts *facts, const struct pp_object *o,
					    enum pp_kind kind)
{
	if (o->kind == kind)
		return o;
	if (kind == PP_NODE)
		return pp_object_next(facts, PP_NODE, NULL);
	if (o->parent && o->parent->kind == kind)
		return o->parent;
	return o->peer && o->peer->kind == kind ? o->peer : NULL;
}

/* One alternative of a pattern, [p, end); backtracks to the last '*' only. */
static bool match_one(const char *p, const char *end, const char *text)
{
	const char *star = NULL, *retry = NULL;

	while (*text) {
		if (p < end && *p == '*') {
			star = ++p;
			retry = text;
		} else if (p < end && (*p == '?' || *p == *text)) {
			p++;
			text++;
		} else if (star) {
			p = star;
			text = ++retry;
		} else {
			return false;
		}
	}
	while (p < end && *p == '*')
		p++;
	return p == end;
}

bool pp_glob_match(const char *pattern, const char *text)
{
	const char *end;

	for (;; pattern = end + 1) {
		end = pattern + strcspn(pattern, "|");
		if (match_one(pattern, end, text))
			return true;
		if (!*end)
			return false;
	}
}

static bool order_holds(enum pp_op op, int order)
{
	switch (op) {
	case PP_OP_EQ:
		return order == 0;
	case PP_OP_NE:
		return order != 0;
	case PP_OP_LT:
		return order < 0;
	case PP_OP_LE:
		return order <= 0;
	case PP_OP_GT:
		return order > 0;
	case PP_OP_GE:
		return order >= 0;
	default:
		return false;
	}
}

static bool list_holds(const struct pp_condition *c, const char *const *list)
{
	if (c->op == PP_OP_EMPTY || c->op == PP_OP_NOT_EMPTY)
		return (list[0] == NULL) == (c->op == PP_OP_EMPTY);
	for (; *list; list++)
		if (c->op == PP_OP_MATCH ? pp_glob_match(c->value, *list)
					 : !strcmp(c->value, *list))
			return true;
	return false;
}

static bool text_holds(const struct pp_condition *c, const char *text, const char *value)
{
	switch (c->op) {
	case PP_OP_MATCH:
		return pp_glob_match(value, text);
	case PP_OP_CONTAINS:
		return strstr(text, value) != NULL;
	case PP_OP_EMPTY:
		return !*text;
	case PP_OP_NOT_EMPTY:
		return *text != '\0';
	default:
		return order_holds(c->op, strcmp(text, value));
	}
}

/* Both sides known. A version that does not start with a number cannot be placed in an order. */
static enum pp_truth known_holds(const struct pp_condition *c, const struct pp_fact *fact,
				 const struct pp_fact *other)
{
	const char *value = other ? other->str : c->value;
	int64_t number;

	switch (pp_fact_table[fact->id].type) {
	case PP_LIST:
		return list_holds(c, fact->list) ? PP_TRUE : PP_FALSE;
	case PP_INT:
	case PP_BOOL:
		number = other ? other->i64 : c->number;
		return order_holds(c->op, (fact->i64 > number) - (fact->i64 < number)) ? PP_TRUE
										       : PP_FALSE;
	case PP_VERSION:
		if (c->op > PP_OP_GE)
			break;
		if (!pp_version_valid(fact->str) || !pp_version_valid(value))
			return PP_OPEN;
		return order_holds(c->op, pp_version_compare(fact->str, value)) ? PP_TRUE
										: PP_FALSE;
	case PP_STR:
		break;
	}
	return text_holds(c, fact->str, value) ? PP_TRUE : PP_FALSE;
}

static const struct pp_fact *look_up(const struct pp_facts *facts, const struct pp_object *o,
				     enum pp_fact_id id)
{
	const struct pp_fact *fact =
		pp_fact_get(pp_condition_holder(facts, o, pp_fact_table[id].kind), id);

	return fact && fact->known ? fact : NULL;
}

enum pp_truth pp_condition_test(const struct pp_condition *c, const struct pp_facts *facts,
				const struct pp_object *o, int *ret_missing)
{
	const struct pp_fact *fact = look_up(facts, o, c->fact), *other = NULL;
	enum pp_truth truth = PP_OPEN;
	int missing = (int)c->fact;

	if (c->op == PP_OP_KNOWN || c->op == PP_OP_UNKNOWN)
		truth = (fact != NULL) == (c->op == PP_OP_KNOWN) ? PP_TRUE : PP_FALSE;
	else if (fact && c->other >= 0)
		other = look_up(facts, o, (enum pp_fact_id)c->other);
	if (fact && c->other >= 0 && !other)
		missing = c->other;
	else if (fact && truth == PP_OPEN)
		truth = known_holds(c, fact, other);
	if (ret_missing)
		*ret_missing = truth == PP_OPEN ? missing : -1;
	return truth;
}
