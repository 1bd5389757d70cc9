/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program asked of its library and no event of the kernel answers: it is the call of a
 * region that netlink lists with that key, or the only thing that is seen of one. The library is
 * believed for what it was asked, never for what came of it.
 */
#include "trace/table_parts.h"
#include "base/banned.h"

static bool fits(const struct pp_region *r, const struct pp_event *call)
{
	return !r->called && (!call->length || !r->length || call->length == r->length) &&
	       (!r->tid || r->tid == call->tid);
}

static void alone(struct pp_join *j, const struct pp_event *call)
{
	struct pp_region *r = pp_join_row(j, call->hca);

	if (!r)
		return;
	r->called = call->symbol;
	r->lkey = call->lkey;
	r->has_keys = true;
	r->length = call->length;
	r->address = call->address;
	r->tid = call->tid;
	r->added = call->at;
	r->comm = pp_arena_str(j->t->arena, call->comm);
	if (call->pid)
		pp_join_own_pid(j, r, call->pid);
	r->why_process = "only its library was seen to register";
	r->why = pp_arena_printf(
		j->t->arena, "the program called %s(), and nothing of the kernel shows the region",
		call->symbol);
}

void pp_join_calls(struct pp_join *j, const struct pp_episodes *e)
{
	for (size_t i = 0; i < e->n_calls; i++) {
		const struct pp_event *call = e->call[i];
		struct pp_region *r = pp_join_by_lkey(j, call->hca, call->lkey);

		if (r && fits(r, call))
			r->called = call->symbol;
		else
			alone(j, call);
	}
}
