/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which queue pair uses which lane.
 */
#include "soft/engine/lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/compiler.h"
#include "soft/engine/direct.h"
#include "soft/engine/parts.h"
#include "soft/link/host.h"

#include "base/banned.h"

enum { HOSTS_MAX = 256 };

static const pp_ns ASKED_GOOD = PP_SECOND;

int soft_lanes_init(struct soft_lanes *lanes)
{
	lanes->listen_fd = -1;
	lanes->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return lanes->epoll_fd < 0 ? -errno : 0;
}

void soft_lanes_done(struct soft_engine *e)
{
	struct soft_lanes *l = &e->lanes;
	int fds[] = {l->epoll_fd, l->listen_fd};

	/* First: a child shares the set with its parent, and must not take anything out of it. */
	l->epoll_fd = l->listen_fd = -1;
	for (size_t i = 0; i < PP_ARRAY_LEN(fds); i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
	while (l->outs)
		soft_lanes_end(e, l->outs, "the device is closed");
	while (l->in) {
		struct soft_lane_in *in = l->in;

		l->in = in->next;
		if (e->inherited)
			soft_lane_in_forget_view(in);
		soft_lane_in_close(in);
	}
	l->num_in = 0;
}

void soft_lanes_listen(struct soft_engine *e)
{
	struct soft_lanes *l = &e->lanes;
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
	int fd;

	if (l->epoll_fd < 0 || l->listen_fd >= 0)
		return;
	fd = soft_door_listen(soft_slot_number(e->slot));
	if (fd < 0)
		return;
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		(void)close(fd);
		return;
	}
	l->listen_fd = fd;
}

/* Is the address one of this network namespace? Else the slot in a number is another machine's. */
static bool is_here(struct soft_engine *e, const struct soft_gid *gid)
{
	struct soft_host_address *hosts PP_AUTO_FREE = NULL;
	struct soft_lanes *l = &e->lanes;
	pp_ns now = pp_clock_monotonic();
	int n;

	for (const struct soft_wire *w = e->wires; w; w = w->next)
		for (unsigned int i = 0; i < w->config.num_gids; i++)
			if (soft_gid_equal(&w->config.gids[i], gid))
				return true;
	if (l->asked_at && now - l->asked_at < ASKED_GOOD && soft_gid_equal(&l->asked, gid))
		return l->asked_here;
	hosts = calloc(HOSTS_MAX, sizeof(*hosts));
	n = hosts ? soft_host_addresses(hosts, HOSTS_MAX) : -ENOMEM;
	l->asked = *gid;
	l->asked_at = now;
	l->asked_here = false;
	for (int i = 0; i < n && !l->asked_here; i++)
		l->asked_here = soft_gid_equal(&hosts[i].gid, gid);
	return l->asked_here;
}

static const char *reason_of(int rc)
{
	switch (-rc) {
	case ECONNREFUSED:
		return "the peer's process has the same-host link switched off, or is gone";
	case EPERM:
		return "the peer's process is another user's";
	case EAGAIN:
		return "the peer's process does not answer";
	default:
		return "no descriptor or memory for a lane";
	}
}

static const char *open_lane(struct soft_engine *e, unsigned int slot)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct soft_lane *lane;
	int rc = soft_lane_open(slot, soft_slot_number(e->slot), soft_gpus_shelf(e), &lane);

	if (rc < 0)
		return reason_of(rc);
	event.data.ptr = lane;
	if (epoll_ctl(e->lanes.epoll_fd, EPOLL_CTL_ADD, lane->fd, &event) < 0) {
		soft_lane_close(lane);
		return reason_of(-errno);
	}
	lane->next = e->lanes.outs;
	e->lanes.outs = e->lanes.out[slot] = lane;
	return NULL;
}

/* Leads @qp to the lane of its peer, if there can be one. */
static void attach(struct soft_engine *e, struct soft_qp *qp)
{
	unsigned int slot = qp->attr.remote_qpn >> SOFT_SLOT_SHIFT & (SOFT_SLOTS - 1);

	if (soft_qp_table_wire(&e->table, qp)->config.wire_only)
		qp->wire_reason = "switched off here";
	else if (e->lanes.epoll_fd < 0)
		qp->wire_reason = "no descriptor or memory for a lane";
	else if (!is_here(e, &qp->path.flow.dst))
		qp->wire_reason = "the peer is not on this host";
	else if (!e->lanes.out[slot])
		qp->wire_reason = open_lane(e, slot);
	if (qp->wire_reason)
		return;
	qp->lane = e->lanes.out[slot];
	qp->lane->users++;
}

/* What is under way counts where its answers will be counted. */
static void use_window(struct soft_qp *qp, struct soft_window *window)
{
	if (qp->window == window)
		return;
	soft_window_dropped(qp->window, qp->req.bytes_out);
	soft_window_sent(window, qp->req.bytes_out);
	qp->window = window;
}

static void leave(struct soft_qp *qp, const char *why)
{
	use_window(qp, qp->wire_window);
	qp->lane = NULL;
	qp->jumbo = qp->reads = 0;
	qp->full = false;
	qp->wire_reason = why;
}

static void lane_free(struct soft_engine *e, struct soft_lane *lane)
{
	struct soft_lane **at = &e->lanes.outs;

	while (*at != lane)
		at = &(*at)->next;
	*at = lane->next;
	e->lanes.out[lane->slot] = NULL;
	soft_direct_lane_ended(e, lane);
	if (e->lanes.epoll_fd >= 0)
		(void)epoll_ctl(e->lanes.epoll_fd, EPOLL_CTL_DEL, lane->fd, NULL);
	soft_lane_close(lane);
}

void soft_lanes_end(struct soft_engine *e, struct soft_lane *lane, const char *why)
{
	for (struct soft_qp *qp = e->table.all; qp; qp = qp->table_next) {
		if (qp->lane != lane)
			continue;
		leave(qp, why);
		soft_engine_ready(e, qp);
	}
	lane_free(e, lane);
}

void soft_lanes_detach(struct soft_engine *e, struct soft_qp *qp)
{
	struct soft_lane *lane = qp->lane;

	qp->wire_reason = NULL;
	if (!lane)
		return;
	soft_lane_take_back_of(lane, qp->num);
	leave(qp, NULL);
	if (--lane->users == 0)
		lane_free(e, lane);
}

static bool connected(const struct soft_qp *qp)
{
	return qp->transport != SOFT_UD && qp->state >= SOFT_QP_RTR && qp->state <= SOFT_QP_SQE;
}

bool soft_lanes_usable(const struct soft_qp *qp, const char **ret_reason)
{
	if (qp->transport == SOFT_UD)
		*ret_reason = "datagrams go by the wire";
	else if (!qp->lane)
		*ret_reason = qp->wire_reason;
	else if (!qp->lane->up)
		*ret_reason = "the peer's process has not answered yet";
	else if (soft_fault_active(&soft_wire_of(qp)->fault))
		*ret_reason = "faults are made on the wire";
	else
		return true;
	return false;
}

void soft_lanes_route(struct soft_engine *e, struct soft_qp *qp)
{
	struct soft_lane_shape shape = {0};
	const char *reason;
	bool use;

	if (!connected(qp)) {
		/* What was flushed may be the client's again. */
		if (qp->lane)
			soft_lane_take_back_of(qp->lane, qp->num);
		return;
	}
	if (!qp->lane && !qp->wire_reason)
		attach(e, qp);
	if (!qp->lane)
		return;
	use = soft_lanes_usable(qp, &reason);
	use_window(qp, use ? &qp->lane->window : qp->wire_window);
	if (use)
		shape = soft_lane_shape(qp->lane);
	qp->jumbo = shape.jumbo;
	qp->reads = shape.reads;
	qp->full = shape.full;
}

void soft_lanes_send(struct soft_engine *e, struct soft_qp *qp, const struct soft_packet *p,
		     const struct iovec *pieces, unsigned int num_pieces)
{
	struct soft_record_route route = {qp->path.flow.src, qp->path.flow.dst,
					  qp->path.traffic_class};

	if (soft_lane_send(qp->lane, &route, qp->num, p, pieces, num_pieces))
		e->lanes.sent++;
}

void soft_lanes_take_back(struct soft_engine *e, const void *base, uint64_t len)
{
	for (struct soft_lane *lane = e->lanes.outs; lane; lane = lane->next)
		soft_lane_take_back(lane, (uintptr_t)base, (uintptr_t)base + len);
}
