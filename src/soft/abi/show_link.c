/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which link each queue pair uses, and the lanes of this process, as JSON.
 */
#include "soft/abi/show_link.h"

#include <string.h>

#include "soft/engine/lanes.h"

#include "base/banned.h"

/* How memory of GPUs went that was sent, or read by the peer: the last of it. */
static void show_memory(struct pp_json *json, const struct soft_qp *qp)
{
	const char *reason = NULL;

	if (!qp->direct_bytes && !qp->staged_bytes)
		return;
	pp_json_str(json, "gpu_memory",
		    !soft_lanes_usable(qp, &reason) ? "wire"
		    : qp->is_direct		    ? "direct"
						    : "staged");
	if (!qp->is_direct && !reason)
		reason = qp->not_direct;
	if (reason)
		pp_json_str(json, "not_direct", reason);
	pp_json_u64(json, "direct_bytes", qp->direct_bytes);
	pp_json_u64(json, "staged_bytes", qp->staged_bytes);
}

void soft_show_link(struct pp_json *json, const struct soft_qp *qp)
{
	const char *reason = NULL;

	pp_json_str(json, "link", soft_engine_link_of(qp, &reason));
	if (reason)
		pp_json_str(json, "reason", reason);
	show_memory(json, qp);
}

#define STATS(X)        \
	X(records)      \
	X(bytes)        \
	X(pulls)        \
	X(pulled_bytes) \
	X(lent)         \
	X(lent_bytes)   \
	X(mapped)       \
	X(mapped_bytes) \
	X(direct)       \
	X(direct_bytes) \
	X(lost)         \
	X(wakes)
#define WRITE(field) pp_json_u64(json, #field, lane->stats->field);

static void show_lane(void *arg, const struct soft_lane_view *lane)
{
	struct pp_json *json = arg;

	pp_json_object(json, NULL);
	pp_json_str(json, "direction", lane->out ? "out" : "in");
	pp_json_u64(json, "slot", lane->slot);
	if (lane->out)
		pp_json_u64(json, "queue_pairs", lane->users);
	else
		pp_json_i64(json, "pid", lane->pid);
	pp_json_bool(json, "answered", lane->up);
	pp_json_u64(json, "copies", lane->pull_errno ? 2 : 1);
	if (lane->pull_errno)
		pp_json_str(json, "reason", strerrordesc_np(lane->pull_errno));
	if (lane->loan_errno)
		pp_json_str(json, "not_direct", strerrordesc_np(lane->loan_errno));
	if (lane->shelf_errno)
		pp_json_str(json, "not_lent", strerrordesc_np(lane->shelf_errno));
	STATS(WRITE)
	pp_json_end_object(json);
}

void soft_show_lanes(struct pp_json *json, struct soft_engine *engine)
{
	struct soft_lanes_refused refused = soft_engine_lanes_refused(engine);

	pp_json_array(json, "lanes");
	soft_engine_each_lane(engine, show_lane, json);
	pp_json_end_array(json);
	pp_json_object(json, "lanes_refused");
	pp_json_u64(json, "other_users", refused.other_users);
	pp_json_u64(json, "broken", refused.broken);
	pp_json_end_object(json);
}
