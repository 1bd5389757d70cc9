/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/engine/origin.h"

#include <string.h>

#include "base/banned.h"

enum {
	TRAIN_MAX = 128, /* packets; the kernel's limit for UDP_SEGMENT */
	RETURNS_MAX = 4,
	/* Linux has one counter for all flows from host to host, of which this process may see few,
	 * and moves it on by a random share of the ticks that passed (ip_idents_reserve()). */
	AHEAD = 16384,
	AHEAD_EACH_US = 4, /* more than a kernel sends */
	BEHIND_MAX = 64,   /* several processors send */
};

static const pp_ns SILENT = 10 * PP_SECOND;

static uint32_t tag_of(const struct soft_icrc_flow *flow)
{
	uint32_t tag = flow->sport, part;

	for (size_t i = 0; i < sizeof(flow->src.raw); i += sizeof(part)) {
		memcpy(&part, flow->src.raw + i, sizeof(part));
		tag = (tag ^ part) * 0x9e3779b1u;
		memcpy(&part, flow->dst.raw + i, sizeof(part));
		tag = (tag ^ part) * 0x85ebca6bu;
	}
	return tag | 1;
}

/* Within what the counter may have gone on by since. */
static bool counts_on(const struct soft_origin *o, uint16_t id, pp_ns now)
{
	pp_ns ahead = AHEAD + (now - o->seen) / 1000 * AHEAD_EACH_US;

	return (uint16_t)(id - o->last + BEHIND_MAX) < ahead + BEHIND_MAX;
}

static bool fits(const struct soft_origin *o, const struct soft_icrc_id *id, pp_ns now)
{
	if (id->df != o->df)
		return false;
	if (o->order != SOFT_COUNTER && id->id < TRAIN_MAX)
		return true;
	return o->order != SOFT_TRAINS && counts_on(o, id->id, now);
}

static void learn(struct soft_origin *o, uint16_t id, pp_ns now)
{
	if (o->order == SOFT_UNSURE && id >= TRAIN_MAX)
		o->order = SOFT_COUNTER;
	else if (o->order == SOFT_UNSURE && id <= o->last && ++o->returns == RETURNS_MAX)
		o->order = SOFT_TRAINS;
	o->last = id;
	o->seen = now;
}

bool soft_origin_fits(struct soft_origin table[SOFT_ORIGINS], const struct soft_icrc_flow *flow,
		      const struct soft_icrc_id *id, pp_ns now)
{
	uint32_t tag = tag_of(flow);
	struct soft_origin *o = &table[(tag >> 16) % SOFT_ORIGINS];

	if (!flow->ipv4)
		return true;
	if (o->tag != tag || now - o->seen > SILENT) {
		*o = (struct soft_origin){.tag = tag, .last = id->id, .df = id->df, .seen = now};
		if (!id->df || id->id >= TRAIN_MAX)
			o->order = SOFT_COUNTER;
		return true;
	}
	if (!fits(o, id, now)) {
		o->tag = 0;
		return false;
	}
	learn(o, id->id, now);
	return true;
}
