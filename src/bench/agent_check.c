/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fill, check: what the memory holds, outside of the timed part.
 *
 * Each end fills all of its memory with a pattern of its own. After a run the slots of the way that
 * messages came must hold the sender's pattern, at the same offsets, and every other byte still
 * one's own: a message that went beside its slot, or into a region that begins elsewhere, is found
 * by what it overwrote, and one that never came by what it left.
 *
 * check answers "bytes", "wrong", "first" and "flush".
 */
#include <errno.h>

#include "bench/agent_state.h"
#include "base/banned.h"

int pp_agent_fill(struct pp_agent *a, const struct pp_command *c, struct pp_json *out,
		  struct pp_error *err)
{
	(void)out;
	if (!a->memory)
		return pp_error_set(err, -EINVAL, "fill: nothing is open");
	return pp_memory_fill(a->memory, 0, a->memory->size, (uint64_t)c->fill.seed, err);
}

struct comparing {
	struct pp_agent *agent;
	const struct pp_check_command *c;
	uint64_t bytes, wrong, first;
	struct pp_error *err;
};

static int compare(struct comparing *k, uint64_t offset, uint64_t len, int64_t seed)
{
	struct pp_memory_checked found = {0};
	int r = pp_memory_check(k->agent->memory, offset, len, (uint64_t)seed, offset, &found,
				k->err);

	if (r)
		return r;
	if (found.wrong && !k->wrong)
		k->first = found.first;
	k->bytes += found.bytes;
	k->wrong += found.wrong;
	return 0;
}

static int visit(void *arg, uint64_t offset, uint64_t len, int in_slot)
{
	struct comparing *k = arg;

	return compare(k, offset, len, in_slot ? k->c->seed : k->c->own);
}

int pp_agent_check(struct pp_agent *a, const struct pp_command *c, struct pp_json *out,
		   struct pp_error *err)
{
	struct comparing k = {.agent = a, .c = &c->check, .err = err};
	const char *flush = NULL;
	int r;

	if (!a->memory)
		return pp_error_set(err, -EINVAL, "check: nothing is open");
	r = pp_memory_flush(a->memory, &flush, err);
	if (!r && !c->check.size)
		r = compare(&k, 0, a->memory->size, c->check.own);
	if (!r && c->check.size)
		r = pp_agent_lay(a, (uint64_t)c->check.size, err);
	if (!r && c->check.size)
		r = pp_slots_walk(&a->slots, (unsigned int)c->check.way, a->memory->size, visit,
				  &k);
	if (r)
		return r;
	pp_json_u64(out, "bytes", k.bytes);
	pp_json_u64(out, "wrong", k.wrong);
	pp_json_u64(out, "first", k.first);
	pp_json_str(out, "flush", flush);
	return 0;
}
