/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One turn of the engine: packets in, ready queue pairs out, timers.
 */
#include "soft/engine/parts.h"
#include "soft/link/arrival.h"

#include "base/banned.h"

static const pp_ns HOLD = 50000, FULL_WAIT = 50000;
static const pp_ns HELPS = 10 * PP_MILLISECOND; /* round trips of who is helped */

void soft_engine_ready(struct soft_engine *e, struct soft_qp *qp)
{
	if (qp->ready)
		return;
	qp->ready = true;
	qp->ready_next = NULL;
	if (e->ready_tail)
		e->ready_tail->ready_next = qp;
	else
		e->ready_head = qp;
	e->ready_tail = qp;
}

static struct soft_qp *ready_take(struct soft_engine *e)
{
	struct soft_qp *qp = e->ready_head;

	if (!qp)
		return NULL;
	e->ready_head = qp->ready_next;
	if (!e->ready_head)
		e->ready_tail = NULL;
	qp->ready = false;
	return qp;
}

void soft_engine_unready(struct soft_engine *e, struct soft_qp *qp)
{
	struct soft_qp *last = NULL;

	if (!qp->ready)
		return;
	for (struct soft_qp *at = e->ready_head; at; last = at, at = at->ready_next) {
		if (at != qp)
			continue;
		if (last)
			last->ready_next = qp->ready_next;
		else
			e->ready_head = qp->ready_next;
		if (e->ready_tail == qp)
			e->ready_tail = last;
		break;
	}
	qp->ready = false;
}

/* Time is looked at again only when the earliest wish of all has passed: a scan is not for every
 * turn. */
static void wish_at(struct soft_engine *e, pp_ns deadline)
{
	if (deadline && (!e->next_deadline || deadline < e->next_deadline))
		e->next_deadline = deadline;
}

static void wish(struct soft_engine *e, const struct soft_qp *qp)
{
	wish_at(e, soft_qp_deadline(qp));
}

static void flush_links(struct soft_engine *e, pp_ns now)
{
	for (struct soft_wire *w = e->wires; w; w = w->next) {
		if (w->link) {
			wish_at(e, soft_link_flush(w->link));
			soft_writer_note(w, now);
		}
		if (w->late.first)
			wish_at(e, soft_cq_late_release(&w->late, pp_clock_monotonic()));
	}
	soft_lanes_flush(e);
}

static uint64_t sent(const struct soft_engine *e)
{
	uint64_t sum = e->lanes.sent;

	for (const struct soft_wire *w = e->wires; w; w = w->next)
		if (w->link)
			sum += soft_link_given(w->link);
	return sum;
}

/* Does all that it may send fit into what its wire has of an outbox? */
static bool room(const struct soft_qp *qp)
{
	struct soft_link *link = soft_wire_of(qp)->link;

	return !link || soft_link_room(link, qp->transport == SOFT_UD ? NULL : &qp->path) >=
				SOFT_PUMP_TRAINS;
}

bool soft_engine_send_ready(struct soft_engine *e, pp_ns now)
{
	struct soft_qp *last = e->ready_tail, *qp = NULL;
	uint64_t before = sent(e);
	bool full = false;

	e->held_until = 0;
	/* Once round: who wants another turn goes behind @last. */
	while (qp != last && (qp = ready_take(e))) {
		soft_lanes_route(e, qp);
		if (!qp->jumbo && !room(qp)) {
			full = true;
			soft_engine_ready(e, qp);
			continue;
		}
		if (soft_qp_pump(qp, SOFT_PUMP_BUDGET, now))
			soft_engine_ready(e, qp);
		wish(e, qp);
	}
	flush_links(e, now);
	if (full)
		wish_at(e, now + FULL_WAIT);
	/* What fills a lane may be acknowledges, which nothing answers: look again, for nobody will
	 * tell. */
	if (e->ready_head && e->ready_head->full)
		wish_at(e, now + FULL_WAIT);
	return e->ready_head && sent(e) != before;
}

/* What is silent may be answered all along, and lie in the socket of another process. */
static void tick_qp(struct soft_engine *e, struct soft_qp *qp, pp_ns now)
{
	struct soft_wire *wire = soft_qp_table_wire(&e->table, qp);
	const struct soft_counters *c = &wire->counters;
	uint64_t before = c->early_retransmits + c->local_ack_timeout_err;

	soft_qp_tick(qp, now);
	if (!wire->link || c->early_retransmits + c->local_ack_timeout_err == before)
		return;
	soft_link_doubt(wire->link);
	e->doubted = now;
}

static void tick(struct soft_engine *e, pp_ns now)
{
	if (!e->next_deadline || now < e->next_deadline)
		return;
	e->next_deadline = 0;
	for (struct soft_qp *qp = e->table.all; qp; qp = qp->table_next) {
		pp_ns deadline = soft_qp_deadline(qp);

		if (deadline && deadline <= now) {
			tick_qp(e, qp, now);
			soft_engine_ready(e, qp);
		}
		wish(e, qp);
	}
	soft_engine_timers_run(e, now);
	/* What faults delay has its time too. */
	flush_links(e, now);
}

/*
 * A lone short request of a peer that is answered by a request of ours, again and again: the
 * acknowledge is held back for the reply, leaves with it as one train, and costs neither side a
 * wake-up of its own. Who does not reply soon is acknowledged at once from then on.
 */
static bool hold(struct soft_engine *e, const struct soft_engine_input *in)
{
	if (in->datagrams > 2 || in->bytes > SOFT_HELD_BYTES || (in->datagrams && e->held_until))
		return false;
	for (struct soft_qp *qp = e->ready_head; qp; qp = qp->ready_next)
		if (qp->replies < SOFT_REPLIES || !soft_qp_only_acknowledges(qp))
			return false;
	if (!e->held_until) {
		/* Whoever holds may not come back: the thread looks in from now on. */
		if (in->now - e->held >= SOFT_HOLDING)
			soft_engine_thread_wake(e);
		e->held = in->now;
		e->held_until = in->now + HOLD;
	}
	if (in->now < e->held_until)
		return true;
	for (struct soft_qp *qp = e->ready_head; qp; qp = qp->ready_next)
		qp->replies = 0;
	return false;
}

/* To find a socket empty costs as much as a packet of a lane does. */
static bool sockets_due(const struct soft_engine *e, pp_ns now)
{
	return soft_reader_has(e) || now - e->lanes.busy >= SOFT_LANES_BUSY ||
	       e->quiet < SOFT_SOCKETS_QUIET || e->turns % SOFT_SOCKET_TURNS == 0;
}

/* What the reader has read comes first. */
static unsigned int receive_links(struct soft_engine *e, struct soft_engine_input *in)
{
	unsigned int received = soft_reader_take(e, SOFT_RECEIVE_BUDGET, in);

	for (struct soft_wire *w = e->wires; w; w = w->next) {
		if (!w->link)
			continue;
		in->wire = w;
		if (soft_reader_has_sockets(e, w))
			soft_link_advance(w->link);
		else
			received += soft_link_receive(w->link, SOFT_RECEIVE_BUDGET,
						      soft_engine_input, in);
	}
	in->wire = NULL;
	return received;
}

static unsigned int receive_sockets(struct soft_engine *e, struct soft_engine_input *in)
{
	size_t before = in->bytes;
	unsigned int received = receive_links(e, in);

	e->bulk.read = in->bytes - before;
	/* Little comes this way, and to look costs a system call of every poller's turn. */
	if (e->slot_busy || e->turns % SOFT_SLOT_TURNS == 0) {
		unsigned int n =
			soft_slot_receive(e->slot, SOFT_RECEIVE_BUDGET, soft_engine_input, in);

		e->slot_busy = n > 0;
		received += n;
	}
	e->quiet = received ? 0 : e->quiet + 1;
	return received;
}

/* The silence may be our own: what was sent, or has been answered, lies with threads that get no
 * processor. */
static unsigned int help_out(struct soft_engine *e, struct soft_engine_input *in)
{
	unsigned int received = 0;

	for (struct soft_wire *w = e->wires; w; w = w->next) {
		if (!w->link)
			continue;
		soft_writer_help(w);
		received += soft_reader_help(e, w, SOFT_RECEIVE_BUDGET, in);
	}
	return received;
}

bool soft_engine_turn(struct soft_engine *e)
{
	struct soft_engine_input in = {.engine = e, .now = pp_clock_monotonic()};
	uint64_t before = sent(e);
	unsigned int received;

	e->turned = in.now;
	e->bulk.read = 0;
	received = soft_lanes_receive(e, &in);
	if (sockets_due(e, in.now))
		received += receive_sockets(e, &in);
	e->turns++;
	if (in.bytes >= SOFT_STREAM_BYTES)
		e->streamed = in.now;
	tick(e, in.now);
	if (in.now - e->doubted < HELPS)
		received += help_out(e, &in);
	if (e->ready_head && !hold(e, &in))
		soft_engine_send_ready(e, in.now);
	return received || sent(e) != before;
}
