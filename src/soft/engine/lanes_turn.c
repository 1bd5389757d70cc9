/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lanes bring, who comes and goes, and how the engine sleeps beside them.
 */
#include "soft/engine/lanes.h"

#include <errno.h>
#include <sys/epoll.h>

#include "soft/engine/direct.h"
#include "soft/engine/parts.h"

#include "base/banned.h"

/* What is left is there the next time. */
enum { EVENTS_MAX = 64, ACCEPTS_MAX = 16, WORDS_MAX = 64, IN_MAX = SOFT_SLOTS };

static void in_free(struct soft_engine *e, struct soft_lane_in *lane)
{
	for (struct soft_lane_in **at = &e->lanes.in; *at; at = &(*at)->next) {
		if (*at != lane)
			continue;
		*at = lane->next;
		e->lanes.num_in--;
		break;
	}
	(void)epoll_ctl(e->lanes.epoll_fd, EPOLL_CTL_DEL, lane->fd, NULL);
	soft_lane_in_close(lane);
}

/* true: somebody came, and another may have. */
static bool accept_one(struct soft_engine *e)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct soft_lanes *l = &e->lanes;
	struct soft_lane_in *lane;
	int rc = soft_lane_in_accept(l->listen_fd, &lane);

	if (rc == -EPERM)
		l->other_users++;
	if (rc < 0)
		return rc == -EPERM;
	event.data.ptr = lane;
	lane->next = l->in;
	l->in = lane;
	l->num_in++;
	if (l->num_in > IN_MAX || epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, lane->fd, &event) < 0)
		in_free(e, lane);
	return true;
}

static void on_record(void *arg, const struct soft_record *record, struct soft_packet *p)
{
	soft_engine_record(arg, record, p);
}

/* How many records; -EPROTO. */
static int receive(struct soft_lane_in *lane, size_t budget, struct soft_engine_input *in)
{
	return lane->ring.shared ? soft_lane_in_receive(lane, budget, on_record, in) : 0;
}

static void hear_in(struct soft_engine *e, struct soft_lane_in *lane)
{
	int rc = soft_lane_in_hear(lane, e->wake_fd);

	for (unsigned int n = 0; (rc == -EALREADY || rc == 0) && n < WORDS_MAX; n++) {
		struct soft_showing showing;

		rc = soft_lane_in_told(lane, &showing);
		if (!rc)
			soft_direct_told(e, lane, &showing);
	}
	if (rc == -EPROTO)
		e->lanes.broken++;
	if (rc < 0 && rc != -EAGAIN) {
		struct soft_engine_input in = {.engine = e, .now = pp_clock_monotonic()};

		/* What it wrote before its end came here. */
		(void)receive(lane, SOFT_LANE_WINDOW + SOFT_RING_BYTES, &in);
		in_free(e, lane);
	}
}

static void hear_out(struct soft_engine *e, struct soft_lane *lane)
{
	int rc = soft_lane_hear(lane);
	bool was = rc == -EALREADY;

	for (unsigned int n = 0; (rc == -EALREADY || (was && rc == 0)) && n < WORDS_MAX; n++) {
		struct soft_door_answer answer;

		rc = soft_lane_answered(lane, &answer);
		if (!rc)
			soft_direct_answered(e, lane, &answer);
	}
	if (rc == -EAGAIN)
		return;
	if (rc < 0) {
		soft_lanes_end(e, lane, "the peer's process has closed the lane");
		return;
	}
	/* The next thing that each sends goes there. */
	for (struct soft_qp *qp = e->table.all; qp; qp = qp->table_next)
		if (qp->lane == lane)
			soft_engine_ready(e, qp);
}

void soft_lanes_events(struct soft_engine *e)
{
	struct epoll_event event;

	/* One at a time: an event may end what another is of. */
	for (int i = 0; i < EVENTS_MAX && epoll_wait(e->lanes.epoll_fd, &event, 1, 0) == 1; i++) {
		enum soft_lane_end *end = event.data.ptr;

		if (!end)
			for (int n = 0; n < ACCEPTS_MAX && accept_one(e); n++)
				;
		else if (*end == SOFT_LANE_IN)
			hear_in(e, (struct soft_lane_in *)(void *)end);
		else
			hear_out(e, (struct soft_lane *)(void *)end);
	}
}

unsigned int soft_lanes_receive(struct soft_engine *e, struct soft_engine_input *in)
{
	struct soft_lane_in *next;
	unsigned int received = 0;

	for (struct soft_lane_in *lane = e->lanes.in; lane; lane = next) {
		int n;

		next = lane->next;
		n = receive(lane, SOFT_RECEIVE_BUDGET, in);
		if (n < 0) {
			e->lanes.broken++;
			in_free(e, lane);
			continue;
		}
		received += (unsigned int)n;
	}
	if (received)
		e->lanes.busy = in->now;
	return received;
}

void soft_lanes_flush(struct soft_engine *e)
{
	struct soft_lane *next;

	for (struct soft_lane *lane = e->lanes.outs; lane; lane = next) {
		next = lane->next;
		soft_lane_flush(lane);
		if (lane->ring.broken) {
			e->lanes.broken++;
			soft_lanes_end(e, lane, "the peer's process wrote what cannot be");
		}
	}
}

bool soft_lanes_sleep(struct soft_engine *e)
{
	bool empty = true;

	for (struct soft_lane_in *lane = e->lanes.in; lane; lane = lane->next)
		if (lane->ring.shared)
			soft_ring_sleep(&lane->ring);
	for (struct soft_lane_in *lane = e->lanes.in; lane && empty; lane = lane->next)
		if (lane->ring.shared)
			empty = soft_ring_empty(&lane->ring);
	return empty;
}

void soft_lanes_awake(struct soft_engine *e)
{
	for (struct soft_lane_in *lane = e->lanes.in; lane; lane = lane->next)
		if (lane->ring.shared)
			soft_ring_awake(&lane->ring);
}
