/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/engine/direct.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "soft/copy/cuda_peer.h"
#include "soft/engine/parts.h"

#include "base/banned.h"

static const pp_ns ASKS_AGAIN = PP_SECOND;
static const uint64_t LARGEST = UINT64_C(1) << 46;

/* Of one allocation, however many threads register in it at once: under gpus.making. */
static const char *join(struct soft_engine *e, struct soft_region *region, uint64_t at,
			uint64_t len, bool vmm)
{
	struct soft_exports *x = &e->gpus.exports;
	struct soft_allocation a;
	const char *why = soft_cuda_allocation_of(at, len, &a);

	if (why)
		return why;
	a.kind = vmm ? SOFT_EXPORT_VMM : SOFT_EXPORT_IPC;
	soft_engine_lock(e);
	region->export = soft_exports_use(x, &a);
	soft_engine_unlock(e);
	if (region->export)
		return NULL;
	why = soft_cuda_allocation_share(&a, vmm);
	if (why)
		return why;
	soft_engine_lock(e);
	region->export = soft_exports_add(x, &a);
	soft_engine_unlock(e);
	if (region->export)
		return NULL;
	if (a.fd >= 0)
		(void)close(a.fd);
	return "too many allocations are registered";
}

void soft_direct_register(struct soft_engine *e, struct soft_region *region, uint64_t at,
			  uint64_t len, bool vmm)
{
	pthread_mutex_lock(&e->gpus.making);
	region->not_direct = join(e, region, at, len, vmm);
	pthread_mutex_unlock(&e->gpus.making);
}

void soft_direct_end_answers(struct soft_engine *e, struct soft_region *region)
{
	if (region->loan && e->mover.shelf)
		soft_shelf_loan_give(e->mover.shelf, region->loan);
	region->loan = 0;
}

void soft_direct_revoke(struct soft_engine *e, const struct soft_region *region)
{
	for (struct soft_qp *qp = e->table.all; qp; qp = qp->table_next)
		soft_outgoing_revoke(&qp->req.outgoing, region);
}

/* From all who have it. */
static void take_back(struct soft_engine *e, struct soft_export *x)
{
	for (struct soft_lane *lane = e->lanes.outs; lane; lane = lane->next) {
		struct soft_lane_show *show = &lane->shows[soft_export_place(x->number)];

		if (show->number != x->number)
			continue;
		show->withdrawn = true;
		if (show->state == SOFT_SHOW_REFUSED)
			memset(show, 0, sizeof(*show));
		else
			(void)soft_lane_withdraw(lane, x->number);
	}
	soft_export_settle(x);
}

void soft_direct_leave(struct soft_engine *e, struct soft_region *region)
{
	const struct timespec nap = {.tv_nsec = 50000};
	pp_ns until = pp_clock_monotonic() + SOFT_CUDA_SLOW;
	struct soft_export *x = region->export;
	uint32_t number;
	bool gone;

	if (!x)
		return;
	soft_engine_lock(e);
	region->export = NULL;
	number = x->number;
	if (!--x->regions)
		take_back(e, x);
	gone = x->number != number || x->regions;
	soft_engine_unlock(e);
	while (!gone && pp_clock_monotonic() < until) {
		(void)nanosleep(&nap, NULL);
		soft_engine_lock(e);
		gone = x->number != number;
		soft_engine_unlock(e);
	}
}

static const char *refusal(int error)
{
	switch (error) {
	case ENODEV:
		return "the peer's process has no GPU in use";
	case EXDEV:
		return "the peer's process has it mapped for another of its GPUs";
	case EPERM:
		return "it is switched off at the peer";
	case EOPNOTSUPP:
		return "the peer's driver cannot map memory of other processes";
	case ENOMEM:
		return "there is no room for it in the peer's process";
	default:
		return "the peer's driver refused to map it";
	}
}

/* Says it to the reader, for the first time or once more. */
static const char *show_it(struct soft_lane *lane, struct soft_export *x,
			   struct soft_lane_show *show)
{
	int rc = soft_lane_show(lane, x);

	show->number = x->number;
	show->state = rc ? SOFT_SHOW_REFUSED : SOFT_SHOW_SHOWN;
	show->error = rc ? ENODEV : 0;
	show->answer = rc ? pp_clock_monotonic() : 0;
	x->lanes += !rc;
	return rc ? "the lane's connection is full" : "the peer's process has not mapped it yet";
}

/* NULL: the peer's GPU may copy. */
static const char *ask(struct soft_lane *lane, struct soft_export *x)
{
	struct soft_lane_show *show = &lane->shows[soft_export_place(x->number)];

	if (soft_lane_loan_errno(lane))
		return refusal(soft_lane_loan_errno(lane));
	if (show->number && show->number != x->number)
		return "the peer's process has an earlier allocation to let go";
	switch (show->state) {
	case SOFT_SHOW_HELD:
		return show->withdrawn ? "the allocation is on its way out" : NULL;
	case SOFT_SHOW_SHOWN:
		return "the peer's process has not mapped it yet";
	case SOFT_SHOW_REFUSED:
		if (show->error != ENODEV || pp_clock_monotonic() - show->answer < ASKS_AGAIN)
			return refusal(show->error);
		return show_it(lane, x, show);
	default:
		return show_it(lane, x, show);
	}
}

bool soft_direct_shows(struct soft_qp *qp, const struct soft_region *region)
{
	/* Neither may do what the other end could notice in a capture of the wire. */
	if (!qp->jumbo)
		qp->not_direct = "the queue pair uses the wire";
	else if (soft_wire_of(qp)->config.gpu_staged)
		qp->not_direct = "switched off here";
	else
		qp->not_direct = ask(qp->lane, region->export);
	return !qp->not_direct;
}

void soft_direct_answered(struct soft_engine *e, struct soft_lane *lane,
			  const struct soft_door_answer *a)
{
	struct soft_lane_show *show = &lane->shows[soft_export_place(a->number)];
	struct soft_export *x = soft_exports_find(&e->gpus.exports, a->number);

	/* Of what was never shown, or has been answered, nothing is believed. */
	if (show->number != a->number || !a->number || show->state == SOFT_SHOW_REFUSED)
		return;
	if (a->what == 0) {
		show->state = SOFT_SHOW_HELD;
		return;
	}
	if (a->what == SOFT_IMPORT_GONE || show->withdrawn) {
		memset(show, 0, sizeof(*show));
	} else {
		show->state = SOFT_SHOW_REFUSED;
		show->error = -a->what;
		show->answer = pp_clock_monotonic();
	}
	if (x) {
		x->lanes--;
		soft_export_settle(x);
	}
}

void soft_direct_lane_ended(struct soft_engine *e, const struct soft_lane *lane)
{
	for (unsigned int i = 0; i < SOFT_EXPORTS_MAX; i++) {
		const struct soft_lane_show *show = &lane->shows[i];
		struct soft_export *x = soft_exports_find(&e->gpus.exports, show->number);

		if (!x || show->state == SOFT_SHOW_REFUSED)
			continue;
		x->lanes--;
		soft_export_settle(x);
	}
}

static bool switched_off(const struct soft_engine *e)
{
	for (const struct soft_wire *w = e->wires; w; w = w->next)
		if (!w->config.gpu_staged)
			return false;
	return true;
}

/* 0: it will be answered. Takes the descriptor. */
static int begin(struct soft_engine *e, struct soft_lane_in *lane, const struct soft_showing *s)
{
	struct soft_mapping mapping = {
		.of = {.kind = (enum soft_export_kind)s->kind, .len = s->bytes, .fd = s->fd}};
	const struct soft_export *own = NULL;
	int rc = 0;

	memcpy(mapping.of.handle, s->handle, sizeof(mapping.of.handle));
	if (lane->pid == getpid()) {
		own = soft_exports_find(&e->gpus.exports, s->number);
		mapping.at = own ? own->of.base : 0;
		mapping.of.len = own ? own->of.len : 0;
	}
	if (!lane->view || !e->gpus.mapper)
		rc = -ENODEV;
	else if (switched_off(e))
		rc = -EPERM;
	else if (!s->bytes || s->bytes > LARGEST || (lane->pid == getpid() && !own))
		rc = -EINVAL;
	if (rc) {
		if (s->fd >= 0)
			(void)close(s->fd);
		return rc;
	}
	return soft_import_begin(lane->view,
				 soft_cuda_device_copier(e->gpus.mapper, /* vmm= */ true),
				 s->number, &mapping, own != NULL);
}

void soft_direct_told(struct soft_engine *e, struct soft_lane_in *lane,
		      const struct soft_showing *s)
{
	int rc = SOFT_IMPORT_GONE;

	if (s->kind != SOFT_EXPORT_NONE) {
		rc = begin(e, lane, s);
		if (!rc)
			return;
	} else if (lane->view) {
		soft_import_withdraw(lane->view, s->number);
		return;
	}
	soft_lane_in_answer(lane, s->number, rc);
}
