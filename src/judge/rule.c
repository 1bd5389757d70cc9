/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/rule_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "base/banned.h"

enum { ARENA_LIMIT = 16 << 20 };

static struct pp_rule *find(const struct pp_rules *r, const char *id)
{
	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->list[i].id, id))
			return &r->list[i];
	return NULL;
}

static int append(struct pp_rules *r, const struct pp_rule *rule, struct pp_error *err)
{
	struct pp_rule *grown;
	size_t cap = r->cap ? r->cap * 2 : 64;

	if (r->n == PP_RULES_MAX)
		return pp_error_set(err, -EFBIG, "more than %d rules", PP_RULES_MAX);
	if (r->n == r->cap) {
		grown = reallocarray(r->list, cap, sizeof(*grown));
		if (!grown)
			return pp_error_set(err, -ENOMEM, "out of memory for rules");
		r->list = grown;
		r->cap = cap;
	}
	r->list[r->n++] = *rule;
	return 0;
}

int pp_rules_disable(struct pp_rules *r, const struct pp_rule *rule, struct pp_error *err)
{
	struct pp_near near = PP_NEAR(rule->id);
	struct pp_rule *old = find(r, rule->id);

	if (old && old->tier < rule->tier) {
		old->disabled = true;
		old->tier = rule->tier;
		return 0;
	}
	for (size_t i = 0; i < r->n; i++)
		pp_near_offer(&near, r->list[i].id);
	return pp_error_set(err, -EINVAL, "there is no rule '%s' to disable%s%s%s", rule->id,
			    near.best && !old ? "; did you mean '" : "",
			    near.best && !old ? near.best : "", near.best && !old ? "'?" : "");
}

int pp_rules_add(struct pp_rules *r, const struct pp_rule *rule, struct pp_error *err)
{
	struct pp_rule *old = find(r, rule->id);

	if (!old)
		return append(r, rule, err);
	if (old->tier == rule->tier)
		return pp_error_set(err, -EINVAL, "rule '%s' stands in %s:%u already", old->id,
				    old->file, old->line);
	*old = *rule;
	return 0;
}

int pp_rules_new(struct pp_rules **ret)
{
	struct pp_rules *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->arena = PP_ARENA(ARENA_LIMIT);
	(void)crypto_hash_sha256_init(&r->text);
	*ret = r;
	return 0;
}

struct pp_rules *pp_rules_free(struct pp_rules *r)
{
	if (!r)
		return NULL;
	pp_arena_done(&r->arena);
	free(r->list);
	free(r);
	return NULL;
}

const struct pp_rule *pp_rules_at(const struct pp_rules *r, size_t i)
{
	return i < r->n ? &r->list[i] : NULL;
}

const struct pp_rule *pp_rules_find(const struct pp_rules *r, const char *id)
{
	return find(r, id);
}

/* Takes the condition's answer into the rule's; @holds is what an "unless" negates. */
static enum pp_truth both(enum pp_truth so_far, enum pp_truth holds, bool unless)
{
	if (unless && holds != PP_OPEN)
		holds = holds == PP_TRUE ? PP_FALSE : PP_TRUE;
	if (so_far == PP_FALSE || holds == PP_FALSE)
		return PP_FALSE;
	return so_far == PP_OPEN ? PP_OPEN : holds;
}

static void remember(enum pp_fact_id *list, unsigned int size, unsigned int *n, int missing)
{
	if (missing < 0)
		return;
	for (unsigned int i = 0; i < *n; i++)
		if ((int)list[i] == missing)
			return;
	if (*n < size)
		list[(*n)++] = (enum pp_fact_id)missing;
}

enum pp_truth pp_rule_test(const struct pp_rule *rule, const struct pp_facts *facts,
			   const struct pp_object *o, enum pp_fact_id *ret_missing,
			   unsigned int size, unsigned int *ret_n)
{
	enum pp_truth truth = PP_TRUE;
	unsigned int n = 0;
	int missing;

	for (unsigned int i = 0; i < rule->n_when + rule->n_unless && truth != PP_FALSE; i++) {
		bool unless = i >= rule->n_when;
		const struct pp_condition *c =
			unless ? &rule->unless[i - rule->n_when] : &rule->when[i];

		truth = both(truth, pp_condition_test(c, facts, o, &missing), unless);
		if (ret_missing)
			remember(ret_missing, size, &n, missing);
	}
	if (ret_n)
		*ret_n = truth == PP_OPEN ? n : 0;
	return truth;
}
