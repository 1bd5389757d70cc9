/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is looked at as `identity` and `check` look at it: software, topology, module, ACS, IOMMU,
 * PCIe links, NCCL's files, and whether drivers answer. All of them come from one collected node,
 * so that the monitor and a proof never differ in what they see.
 *
 * A collection asks drivers and reads all of PCI's config space: on a live machine it is made once
 * an hour, and at once when one of the cheap files (glance.c) or words (wiring.c) is another; a
 * recording asks nobody, and is collected each time. While a driver has not answered, and its
 * helper has not left, it is not asked again: it would be one more process that cannot be ended.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/facts.h"
#include "daemon/glance.h"
#include "daemon/watch.h"
#include "daemon/wiring.h"
#include "base/banned.h"

enum { EVERY_LIVE = 60, RECORD_BYTES = 16 << 20, LOOKS_BYTES = 16 << 20 };

struct facts {
	struct pp_glance mark;
	unsigned int since; /* looks since the last collection */
	bool collected;
	struct pp_watch_hung hung;
	struct pp_arena arena; /* of last and of wiring */
	struct pp_wiring wiring;
	struct pp_looks last; /* what the last collection told, which stands until the next */
};

/* Has a helper that was let go not left yet? */
static bool still_stuck(struct pp_source *s)
{
	const struct pp_helper none = {0};

	pp_helpers_note(pp_source_helpers(s), &none); /* reaps whoever has left */
	return pp_source_helpers(s)->n_leaving > 0;
}

static bool is_due(struct pp_watch_context *at, struct facts *f)
{
	struct pp_glance now;
	bool changed;

	pp_glance_read(at->source, &now);
	changed = !f->collected || !pp_glance_equal(&now, &f->mark) ||
		  (at->live && pp_wiring_changed(&f->wiring, at->source));
	f->mark = now;
	f->since++;
	return changed || !at->live || f->since >= EVERY_LIVE;
}

/* With a record of our own, whose answers say which driver did not return. */
static int collect(struct pp_source *s, struct pp_node **ret, struct pp_watch_hung *hung,
		   struct pp_error *err)
{
	struct pp_record *before = pp_source_record(s), *record = NULL;
	int r = pp_record_new(RECORD_BYTES, &record);

	if (r)
		return pp_error_set(err, r, "out of memory");
	pp_source_set_record(s, record);
	r = pp_node_collect(s, ret, err);
	pp_source_set_record(s, before);
	pp_watch_hung_read(record, hung);
	pp_record_free(record);
	return r;
}

/* 0 without a node too: what is too much to hold is a look. */
static int renew(struct pp_watch_context *at, struct facts *f, struct pp_error *err)
{
	struct pp_node *node = NULL;
	int r = collect(at->source, &node, &f->hung, err);

	if (r && r != -EFBIG)
		return r;
	pp_arena_done(&f->arena);
	f->arena = PP_ARENA(LOOKS_BYTES);
	f->last = (struct pp_looks){.arena = &f->arena};
	f->wiring = (struct pp_wiring){0};
	f->collected = true;
	f->since = 0;
	if (r) {
		r = pp_look_unknown(&f->last, PP_SIGNAL_TOPOLOGY, "node", "%s", err->text);
		return r ? r
			 : pp_look_unknown(&f->last, PP_SIGNAL_FINGERPRINT, "node", "%s",
					   err->text);
	}
	r = pp_watch_facts_add(node, at->live, &f->last);
	if (!r)
		r = pp_watch_hung_add(&f->hung, &f->last);
	if (!r && at->live)
		r = pp_wiring_learn(node, &f->arena, &f->wiring);
	pp_node_free(node);
	return r;
}

static int look(struct pp_watch_context *at, void **state, struct pp_looks *into,
		struct pp_error *err)
{
	struct facts *f = pp_watch_state(state, sizeof(*f));
	int r = f ? 0 : -ENOMEM;

	if (!r && is_due(at, f) && !(at->live && f->hung.n && still_stuck(at->source)))
		r = renew(at, f, err);
	for (size_t i = 0; !r && i < f->last.n; i++)
		r = pp_looks_add(into, &f->last.looks[i]);
	return r ? pp_error_set(err, r, "watching facts: %s", pp_source_why(r)) : 0;
}

static void end(void *state)
{
	struct facts *f = state;

	if (f)
		pp_arena_done(&f->arena);
	free(f);
}

const struct pp_watcher pp_watch_facts = {
	.name = "facts", .period_ms = 60000, .look = look, .end = end};
