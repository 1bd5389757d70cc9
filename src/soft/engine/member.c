/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue pairs as members of the engine: their numbers, where they send, and their end.
 */
#include <errno.h>
#include <stddef.h>

#include "soft/engine/parts.h"

#include "base/banned.h"

int soft_engine_add_qp(struct soft_engine *e, struct soft_wire *wire, struct soft_qp *qp,
		       struct pp_error *err)
{
	int rc;

	if (e->inherited)
		return pp_error_set(err, -EIO, "the device was opened before fork()");
	if (!wire->link) {
		rc = soft_link_open(&wire->config, &wire->link, err);
		if (rc < 0)
			return rc;
		soft_engine_thread_wake(e);
	}
	if (!wire->config.wire_only)
		soft_lanes_listen(e);
	rc = soft_qp_table_add(&e->table, soft_slot_number(e->slot), wire, qp);
	if (rc < 0)
		return pp_error_set(err, rc, "no queue pair number is free");
	qp->regions = e->regions;
	qp->mover = &e->mover;
	qp->counters = &wire->counters;
	return 0;
}

void soft_engine_settle(struct soft_engine *e)
{
	pp_ns before = e->next_deadline;

	if (!e->inherited && e->held_until)
		soft_engine_hand_over(e, before, soft_engine_send_ready(e, pp_clock_monotonic()));
}

void soft_engine_remove_qp(struct soft_engine *e, struct soft_qp *qp)
{
	pp_ns before = e->next_deadline;

	soft_engine_unready(e, qp);
	soft_lanes_detach(e, qp);
	soft_qp_table_remove(&e->table, qp);
	soft_engine_window_put(e, qp->window);
	qp->window = qp->wire_window = NULL;
	/* What waited for the window that this one held may go on. */
	if (!e->inherited)
		soft_engine_hand_over(e, before, soft_engine_send_ready(e, pp_clock_monotonic()));
}

void soft_engine_qp_ready(struct soft_qp *qp)
{
	soft_engine_ready(soft_wire_of(qp)->engine, qp);
}

void soft_engine_qp_withdraw(struct soft_qp *qp)
{
	if (qp->lane)
		soft_lane_take_back_of(qp->lane, qp->num);
}

void soft_engine_take_back(struct soft_engine *e, const void *base, uint64_t len)
{
	for (struct soft_wire *w = e->wires; w; w = w->next)
		if (w->link)
			soft_link_await_all_read(w->link);
	soft_lanes_take_back(e, base, len);
}

void soft_engine_withdraw(struct soft_engine *e, struct soft_qp *qp)
{
	soft_lanes_detach(e, qp);
}

void soft_engine_each_qp(struct soft_engine *e, void (*each)(void *, struct soft_qp *), void *arg)
{
	for (struct soft_qp *qp = e->table.all; qp; qp = qp->table_next)
		each(arg, qp);
}

int soft_engine_path(struct soft_engine *e, struct soft_wire *wire, const struct soft_gid *src,
		     const struct soft_gid *dst, uint32_t entropy, struct soft_path *ret)
{
	if (e->inherited || !wire->link)
		return -EIO;
	return soft_link_path(wire->link, src, dst, entropy, ret);
}

int soft_engine_connect(struct soft_engine *e, struct soft_qp *qp, const struct soft_gid *src,
			const struct soft_gid *dst, uint8_t traffic_class, uint8_t hop_limit,
			uint32_t flow_label)
{
	struct soft_wire *wire = soft_qp_table_wire(&e->table, qp);
	struct soft_window *window;
	struct soft_path path;
	int rc = soft_engine_path(e, wire, src, dst, qp->num, &path);

	if (rc < 0)
		return rc;
	/*
	 * The peer's buffer cannot be asked for: take it to be like ours. The kernel counts about
	 * twice the bytes of a packet, and other senders may be there.
	 */
	window = soft_engine_window_get(e, dst, soft_link_receive_buffer(wire->link) / 4);
	if (!window)
		return -ENOMEM;
	soft_lanes_detach(e, qp);
	/* What is under way (a new address in SQD) counts where its answers will be counted. */
	if (qp->window)
		soft_window_dropped(qp->window, qp->req.bytes_out);
	soft_window_sent(window, qp->req.bytes_out);
	soft_engine_window_put(e, qp->window);
	qp->window = qp->wire_window = window;
	/* A mark stands for those before it on one path. */
	if (qp->unread)
		soft_engine_await_read(qp, qp->unread);
	path.traffic_class = traffic_class;
	path.hop_limit = hop_limit;
	path.flow_label = flow_label;
	qp->path = path;
	return 0;
}

void soft_engine_send(struct soft_qp *qp, const struct soft_path *path, const struct soft_packet *p,
		      const struct iovec *pieces, unsigned int num_pieces)
{
	struct soft_wire *wire = soft_wire_of(qp);

	uint64_t mark;

	if (qp->jumbo) {
		soft_lanes_send(wire->engine, qp, p, pieces, num_pieces);
		return;
	}
	mark = soft_link_send(wire->link, path, p, pieces, num_pieces);
	if (mark)
		qp->unread = mark;
}

void soft_engine_await_read(struct soft_qp *qp, uint64_t mark)
{
	struct soft_wire *wire = soft_wire_of(qp);

	/* A child of fork() has none, and nobody who reads. */
	if (wire->link)
		soft_link_await_read(wire->link, mark);
}
