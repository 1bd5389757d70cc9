/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/rollout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/ini.h"
#include "base/near.h"
#include "base/parse.h"
#include "profile/profile.h"
#include "base/banned.h"

static const char *const step_names[] = {"pair", "reboot", "pool", "cluster", "rollback"};

const char *pp_step_name(enum pp_step s)
{
	return step_names[s];
}

const char *pp_step_state_name(enum pp_step_state s)
{
	static const char *const names[] = {"done",    "next",	  "waiting",
					    "stopped", "skipped", "unknown"};

	return names[s];
}

static int unknown_word(const char *what, const char *word, const char *const *known, size_t n,
			struct pp_error *err)
{
	struct pp_near near = PP_NEAR(word);

	for (size_t i = 0; i < n; i++)
		pp_near_offer(&near, known[i]);
	return pp_error_set(err, -EINVAL, "unknown %s '%.100s'%s%s%s", what, word,
			    near.best ? "; did you mean '" : "", near.best ? near.best : "",
			    near.best ? "'?" : "");
}

static int on_head(struct pp_rollout *r, const char *key, const char *value, struct pp_error *err)
{
	static const char *const keys[] = {"name", "from", "to", "through", "simulation"};
	const char **texts[] = {&r->name, &r->from, &r->to};
	int e = 0;

	for (size_t i = 0; i < PP_ARRAY_LEN(texts); i++) {
		if (strcmp(keys[i], key) != 0)
			continue;
		if (*texts[i] || !*value)
			return pp_error_set(err, -EINVAL, "'%s' is %s", key,
					    *texts[i] ? "given twice" : "empty");
		*texts[i] = pp_arena_str(&r->arena, value);
		return 0;
	}
	if (!strcmp(key, "through"))
		e = pp_gate_parse(value, &r->through);
	else if (!strcmp(key, "simulation"))
		e = pp_parse_bool(value, &r->simulation);
	else
		return unknown_word("key", key, keys, PP_ARRAY_LEN(keys), err);
	return e ? pp_error_set(err, -EINVAL, "'%s = %.100s' cannot be", key, value) : 0;
}

static int add(struct pp_rollout *r, enum pp_step step, enum pp_rollout_role role, const char *path,
	       struct pp_error *err)
{
	if (!*path)
		return 0; /* the place in the plan where a path is to be put */
	if (r->n == PP_ROLLOUT_BUNDLES)
		return pp_error_set(err, -EFBIG, "more than %d bundles", PP_ROLLOUT_BUNDLES);
	for (unsigned int i = 0; i < r->n; i++)
		if (!strcmp(r->bundle[i].path, path) && r->bundle[i].step == step)
			return pp_error_set(err, -EINVAL, "'%.200s' stands in this step twice",
					    path);
	r->bundle[r->n++] = (struct pp_rollout_bundle){
		.step = step, .role = role, .path = pp_arena_str(&r->arena, path)};
	return 0;
}

static int on_step(struct pp_rollout *r, enum pp_step step, const char *key, const char *value,
		   struct pp_error *err)
{
	static const char *const keys[] = {"before", "after", "nodes", "change"};
	uint64_t nodes;

	if (!strcmp(key, step == PP_STEP_ROLLBACK ? "change" : "before") && step != PP_STEP_REBOOT)
		return add(r, step, PP_ROLLOUT_BEFORE, value, err);
	if (!strcmp(key, "after"))
		return add(r, step, PP_ROLLOUT_AFTER, value, err);
	if (strcmp(key, "nodes") != 0 || (step != PP_STEP_POOL && step != PP_STEP_CLUSTER))
		return unknown_word("key", key, keys, PP_ARRAY_LEN(keys), err);
	if (*value && pp_parse_u64(value, 1, PP_ROLLOUT_NODES, &nodes))
		return pp_error_set(err, -EINVAL, "'nodes = %.100s': 1 to %d", value,
				    PP_ROLLOUT_NODES);
	r->nodes[step] = *value ? (unsigned int)nodes : 0;
	return 0;
}

static int on_key(void *arg, const char *section, const char *key, const char *value,
		  unsigned int line, struct pp_error *err)
{
	static const char *const words[] = {"rollout", "pair",	  "reboot",
					    "pool",    "cluster", "rollback"};
	size_t i = 0;

	(void)line;
	while (i < PP_ARRAY_LEN(words) && strcmp(words[i], section) != 0)
		i++;
	if (i == PP_ARRAY_LEN(words))
		return unknown_word("section", section, words, PP_ARRAY_LEN(words), err);
	if (!key)
		return 0;
	return i ? on_step(arg, (enum pp_step)(i - 1), key, value, err)
		 : on_head(arg, key, value, err);
}

int pp_rollout_parse(const char *name, const char *text, size_t len, struct pp_rollout **ret,
		     struct pp_error *err)
{
	struct pp_rollout *r = calloc(1, sizeof(*r));
	int e;

	if (r)
		r->bundle = calloc(PP_ROLLOUT_BUNDLES, sizeof(*r->bundle));
	if (!r || !r->bundle) {
		pp_rollout_free(r);
		return pp_error_set(err, -ENOMEM, "%s: out of memory", name);
	}
	r->arena = PP_ARENA((size_t)64 << 20);
	r->through = PP_GATE_MEMORY;
	r->nodes[PP_STEP_PAIR] = r->nodes[PP_STEP_REBOOT] = 2;
	e = len > PP_ROLLOUT_BYTES
		    ? pp_error_set(err, -EFBIG, "%s: longer than %d bytes", name, PP_ROLLOUT_BYTES)
		    : pp_ini_parse(name, text, len, on_key, r, err);
	if (!e && (!r->from || !r->to))
		e = pp_error_set(err, -EINVAL, "%s: [rollout] needs from and to", name);
	if (!e &&
	    (!pp_profile_is_name(r->from) || !pp_profile_is_name(r->to) || !strcmp(r->from, r->to)))
		e = pp_error_set(err, -EINVAL, "%s: from and to are names of two profiles", name);
	if (!e && r->arena.failed)
		e = pp_error_set(err, -ENOMEM, "%s: out of memory", name);
	if (e)
		pp_rollout_free(r);
	else
		*ret = r;
	return e;
}

struct pp_rollout *pp_rollout_free(struct pp_rollout *r)
{
	if (!r)
		return NULL;
	pp_arena_done(&r->arena);
	free(r->bundle);
	free(r);
	return NULL;
}

static void nodes_line(unsigned int nodes, struct pp_buf *ret)
{
	if (nodes)
		pp_buf_printf(ret, "nodes = %u\n", nodes);
	else
		pp_buf_str(ret, "nodes =\n");
}

void pp_rollout_plan(const char *from, const char *to, unsigned int pool, unsigned int cluster,
		     struct pp_buf *ret)
{
	pp_buf_printf(
		ret,
		"# Rollout of a profile: put the path of each bundle behind its key, one line "
		"each,\n"
		"# then run 'peerpath rollout status THIS-FILE'. Paths count from this file.\n\n"
		"[rollout]\nfrom = %s\nto = %s\n"
		"# The gate that every bundle reaches: memory, library or application.\n"
		"through = memory\n\n"
		"# Two nodes of one topology class. On each: peerpath prove --peer OTHER -o ...,\n"
		"# peerpath profile apply %s, what it says is to be done by hand, prove again.\n"
		"[pair]\nbefore =\nbefore =\nafter =\nafter =\n\n"
		"# The same two, rebooted: peerpath prove --peer OTHER --after-reboot AFTER -o "
		"...\n"
		"[reboot]\nafter =\nafter =\n\n"
		"# A small pool: before and after of each node.\n[pool]\n",
		from, to, to);
	nodes_line(pool, ret);
	pp_buf_str(ret, "before =\nafter =\n\n# The others.\n[cluster]\n");
	nodes_line(cluster, ret);
	pp_buf_printf(
		ret, "before =\nafter =\n\n"
		     "# Only when it is taken back (peerpath profile rollback): the bundle of the\n"
		     "# change and that of its rollback, of each node. Both are kept.\n"
		     "[rollback]\nchange =\nafter =\n");
}
