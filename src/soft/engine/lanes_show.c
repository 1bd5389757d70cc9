/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told of lanes.
 */
#include "soft/engine/parts.h"

#include "base/banned.h"

const char *soft_engine_link_of(const struct soft_qp *qp, const char **ret_reason)
{
	bool used = soft_lanes_usable(qp, ret_reason);

	if (!used)
		return "wire";
	if (!soft_lane_pull_errno(qp->lane))
		return "same-host (one copy)";
	*ret_reason = "the peer's process cannot read the memory of this one";
	return "same-host (two copies)";
}

void soft_engine_each_lane(struct soft_engine *e,
			   void (*each)(void *, const struct soft_lane_view *), void *arg)
{
	for (const struct soft_lane *l = e->lanes.outs; l; l = l->next) {
		struct soft_lane_view view = {
			.out = true,
			.up = l->up,
			.slot = l->slot,
			.users = l->users,
			.pull_errno = soft_lane_pull_errno(l),
			.loan_errno = soft_lane_loan_errno(l),
			.stats = &l->stats,
		};

		each(arg, &view);
	}
	for (const struct soft_lane_in *l = e->lanes.in; l; l = l->next) {
		struct soft_lane_view view = {
			.up = l->ring.shared != NULL,
			.slot = l->slot,
			.pid = l->pid,
			.pull_errno = l->pull_errno,
			.loan_errno = l->loan_errno,
			.shelf_errno = l->view ? -l->view->error : l->view_errno,
			.stats = &l->stats,
		};

		each(arg, &view);
	}
}

struct soft_lanes_refused soft_engine_lanes_refused(const struct soft_engine *e)
{
	return (struct soft_lanes_refused){e->lanes.other_users, e->lanes.broken};
}
