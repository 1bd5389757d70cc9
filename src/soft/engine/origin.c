/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/engine/origin.h"

#include <string.h>

#include "base/banned.h"

enum {
	TRAIN_MAX = 128, /* packets; the kernel's limit for UDP_SEGMENT */
	/* Linux moves its counter on by a random share of the ticks that passed
	 * (ip_idents_reserve()): so far within SILENT. */
	AHEAD_MAX = 16384,
	BEHIND_MAX = 64, /* several processors send */
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

static bool fits(const struct soft_origin *o, const struct soft_icrc_id *id)
{
	if (id->df != o->df)
		return false;
	if (o->counts)
		return id->id < TRAIN_MAX;
	return (uint16_t)(id->id - o->last + BEHIND_MAX) < AHEAD_MAX + BEHIND_MAX;
}

bool soft_origin_fits(struct soft_origin table[SOFT_ORIGINS], const struct soft_icrc_flow *flow,
		      const struct soft_icrc_id *id, pp_ns now)
{
	uint32_t tag = tag_of(flow);
	struct soft_origin *o = &table[(tag >> 16) % SOFT_ORIGINS];

	if (!flow->ipv4)
		return true;
	if (o->tag != tag || now - o->seen > SILENT)
		*o = (struct soft_origin){
			.tag = tag, .df = id->df, .counts = id->df && id->id < TRAIN_MAX};
	else if (!fits(o, id)) {
		o->tag = 0;
		return false;
	}
	o->last = id->id;
	o->seen = now;
	return true;
}
