/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/ini.h"
#include "base/near.h"
#include "base/parse.h"
#include "judge/policy_watch.h"
#include "judge/textfile.h"
#include "judge/transfer.h"
#include "base/banned.h"

enum { FORBIDDEN_MAX = 256, FILE_MAX = 256 << 10 };

struct entry {
	const char *fix_id, *reason;
};

struct pp_policy {
	struct pp_arena arena;
	const char *name; /* NULL: empty policy */
	struct entry entry[FORBIDDEN_MAX];
	size_t n;
	struct pp_margins margins;
	bool given[4]; /* margins: of spread, gpu_host, hop, from */
	struct pp_policy_watches watch;
};

/* "0.05": digits, one point, nothing else; above 0, at most 1. */
static int parse_ratio(const char *text, double *ret)
{
	size_t digits = strspn(text, "0123456789"), more = 0;
	double value;

	if (text[digits] == '.')
		more = strspn(text + digits + 1, "0123456789") + 1;
	if (!digits || more == 1 || text[digits + more] || digits + more > 16)
		return -EINVAL;
	value = strtod(text, NULL);
	if (!(value > 0 && value <= 1))
		return -ERANGE;
	*ret = value;
	return 0;
}

static int on_margin(struct pp_policy *p, const char *key, const char *value, struct pp_error *err)
{
	static const char *const keys[] = {"spread", "gpu_host", "hop", "from"};
	double *const ratio[] = {&p->margins.spread, &p->margins.gpu_host, &p->margins.hop};
	struct pp_near near = PP_NEAR(key);
	size_t i = 0;
	int r;

	for (; i < PP_ARRAY_LEN(keys) && strcmp(keys[i], key) != 0; i++)
		pp_near_offer(&near, keys[i]);
	if (i == PP_ARRAY_LEN(keys))
		return pp_error_set(err, -EINVAL, "unknown margin '%s'%s%s%s", key,
				    near.best ? "; did you mean '" : "", near.best ? near.best : "",
				    near.best ? "'?" : "");
	if (p->given[i])
		return pp_error_set(err, -EINVAL, "'%s' is given twice", key);
	p->given[i] = true;
	if (i < PP_ARRAY_LEN(ratio))
		r = parse_ratio(value, ratio[i]);
	else
		r = pp_parse_size(value, (uint64_t)1 << 40, &p->margins.from);
	if (r)
		return pp_error_set(err, -EINVAL, "'%s = %s': %s", key, value,
				    i < PP_ARRAY_LEN(ratio)
					    ? "a ratio above 0 and at most 1, as 0.05"
					    : "a size of bytes, as 1MiB");
	return 0;
}

static int on_forbidden(struct pp_policy *p, const char *key, const char *value,
			struct pp_error *err)
{
	if (pp_policy_forbids(p, key))
		return pp_error_set(err, -EINVAL, "'%s' is forbidden twice", key);
	if (!*value)
		return pp_error_set(err, -EINVAL,
				    "'%s' needs the reason: it is shown instead of the fix", key);
	if (p->n == FORBIDDEN_MAX)
		return pp_error_set(err, -EFBIG, "more than %d forbidden fixes", FORBIDDEN_MAX);
	p->entry[p->n++] =
		(struct entry){pp_arena_str(&p->arena, key), pp_arena_str(&p->arena, value)};
	return 0;
}

static int on_key(void *arg, const char *section, const char *key, const char *value,
		  unsigned int line, struct pp_error *err)
{
	struct pp_policy *p = arg;

	if (strcmp(section, "forbid") != 0 && strcmp(section, "transfer") != 0 &&
	    strcmp(section, "monitor") != 0)
		return pp_error_set(
			err, -EINVAL,
			"unknown section '%s'; there are [forbid], [transfer] and [monitor]",
			section);
	if (!key)
		return 0;
	if (*section == 'm')
		return pp_policy_watch_take(&p->watch, &p->arena, key, value, line, err);
	return *section == 'f' ? on_forbidden(p, key, value, err) : on_margin(p, key, value, err);
}

static struct pp_policy *empty(void)
{
	struct pp_policy *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->arena = PP_ARENA(FILE_MAX * 2);
	p->margins = pp_margins_default;
	return p;
}

int pp_policy_parse(const char *name, const char *text, size_t len, struct pp_policy **ret,
		    struct pp_error *err)
{
	struct pp_policy *p = empty();
	int r;

	if (!p)
		return pp_error_set(err, -ENOMEM, "%s: out of memory", name);
	r = len > FILE_MAX ? pp_error_set(err, -EFBIG, "%s: longer than %d bytes", name, FILE_MAX)
			   : pp_ini_parse(name, text, len, on_key, p, err);
	p->name = pp_arena_str(&p->arena, name);
	if (!r && p->arena.failed)
		r = pp_error_set(err, -ENOMEM, "%s: out of memory", name);
	if (r) {
		pp_policy_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

int pp_policy_load(const char *path, struct pp_policy **ret, struct pp_error *err)
{
	struct pp_buf PP_AUTO_BUF text = PP_BUF(FILE_MAX);
	const char *site = PEERPATH_SYSCONFDIR "/policy.conf";
	int r = pp_textfile_read(path ? path : site, &text, err);

	if (r == -ENOENT && !path) {
		*ret = empty();
		return *ret ? 0 : pp_error_set(err, -ENOMEM, "out of memory");
	}
	return r ? r : pp_policy_parse(path ? path : site, pp_buf_text(&text), text.len, ret, err);
}

struct pp_policy *pp_policy_free(struct pp_policy *p)
{
	if (p)
		pp_arena_done(&p->arena);
	free(p);
	return NULL;
}

const char *pp_policy_name(const struct pp_policy *p)
{
	return p->name;
}

const struct pp_margins *pp_policy_margins(const struct pp_policy *p)
{
	return p ? &p->margins : &pp_margins_default;
}

const char *pp_policy_word(const struct pp_policy *p, size_t i)
{
	return i < p->n ? p->entry[i].fix_id : NULL;
}

const char *pp_policy_forbids(const struct pp_policy *p, const char *fix_id)
{
	for (size_t i = 0; p && fix_id && i < p->n; i++)
		if (!strcmp(p->entry[i].fix_id, fix_id))
			return p->entry[i].reason;
	return NULL;
}

const struct pp_policy_watch *pp_policy_watch_at(const struct pp_policy *p, size_t i)
{
	return p && i < p->watch.n ? &p->watch.list[i] : NULL;
}

static bool known(const char *fix_id, const struct pp_rules *rules, struct pp_near *near)
{
	const struct pp_rule *rule;

	for (size_t i = 0; (rule = pp_rules_at(rules, i)); i++) {
		if (!rule->fix_id)
			continue;
		if (!strcmp(rule->fix_id, fix_id))
			return true;
		pp_near_offer(near, rule->fix_id);
	}
	return false;
}

int pp_policy_check(const struct pp_policy *p, const struct pp_rules *rules, struct pp_error *err)
{
	for (size_t i = 0; i < p->n; i++) {
		struct pp_near near = PP_NEAR(p->entry[i].fix_id);

		if (!known(p->entry[i].fix_id, rules, &near))
			return pp_error_set(
				err, -EINVAL, "%s forbids '%s', which is no rule's fix%s%s%s",
				p->name, p->entry[i].fix_id, near.best ? "; did you mean '" : "",
				near.best ? near.best : "", near.best ? "'?" : "");
	}
	return 0;
}
