/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One datagram from the network to its queue pair. Everything is hostile until its ICRC is right
 * and it comes from where a connected queue pair expects it; what is not is counted and dropped
 * without an answer.
 */
#include "soft/engine/parts.h"

#include <string.h>

#include "base/banned.h"

static bool owns(const struct soft_wire *wire, const struct soft_gid *gid)
{
	for (unsigned int i = 0; i < wire->config.num_gids; i++)
		if (soft_gid_equal(&wire->config.gids[i], gid))
			return true;
	return false;
}

/* The wire that owns the address, for datagrams that another process handed on. */
static struct soft_wire *wire_of(struct soft_engine *e, const struct soft_gid *dst)
{
	for (struct soft_wire *w = e->wires; w; w = w->next)
		if (owns(w, dst))
			return w;
	return NULL;
}

static const struct soft_icrc_flow *flow_of(struct soft_wire *wire, const struct soft_datagram *d)
{
	struct soft_icrc_flow *flow = &wire->last_flow;

	if (flow->sport != d->sport || !soft_gid_equal(&flow->src, &d->src) ||
	    !soft_gid_equal(&flow->dst, &d->dst))
		soft_icrc_flow_init(flow, &d->src, &d->dst, d->sport);
	return flow;
}

/* Why the packet is not for @qp: the counter to raise, or NULL: it is. */
static uint64_t *refuse(const struct soft_qp_table *table, struct soft_wire *wire,
			const struct soft_qp *qp, const struct soft_packet *p,
			const struct soft_gid *src, const struct soft_gid *dst)
{
	/* A congestion notification has an opcode of its own, whatever the transport. */
	if ((p->opcode != SOFT_CNP && (p->opcode & 0xe0) != qp->transport) ||
	    qp->state < SOFT_QP_RTR || qp->state == SOFT_QP_ERR)
		return &wire->drops.wrong_state;
	if ((p->pkey & 0x7fff) != (qp->attr.pkey & 0x7fff))
		return &wire->drops.wrong_pkey;
	if (qp->transport == SOFT_UD)
		return owns(soft_qp_table_wire(table, qp), dst) ? NULL : &wire->drops.wrong_address;
	if (!soft_gid_equal(src, &qp->path.flow.dst) || !soft_gid_equal(dst, &qp->path.flow.src))
		return &wire->drops.wrong_address;
	return NULL;
}

static void deliver(struct soft_engine_input *in, struct soft_qp *qp, const struct soft_packet *p,
		    const struct soft_path *from, uint8_t traffic_class)
{
	soft_qp_receive(qp, p, from, traffic_class, in->now);
	if (!(soft_opcode_find(p->opcode)->flags & SOFT_IS_RESPONSE)) {
		if (qp->asked)
			qp->replies = 0;
		qp->asked = in->now;
	}
	soft_engine_ready(in->engine, qp);
}

static bool right(const struct soft_icrc_flow *flow, const struct soft_datagram *d,
		  struct soft_icrc_id *id)
{
	if (!d->checked)
		return soft_icrc_solve(flow, d->place, d->bytes, d->len, id);
	*id = d->checked->id;
	return d->checked->right;
}

void soft_engine_input(void *arg, const struct soft_datagram *d)
{
	struct soft_engine_input *in = arg;
	struct soft_engine *e = in->engine;
	struct soft_wire *wire = in->wire ? in->wire : wire_of(e, &d->dst);
	struct soft_packet p;
	struct soft_path from;
	struct soft_qp *qp;
	const struct soft_icrc_flow *flow;
	struct soft_icrc_id id;
	uint64_t *reason;

	in->datagrams++;
	in->bytes += d->len;
	if (!wire) {
		/* Handed on for an address that nothing here has: some wire's reader must learn of
		 * it. */
		if (e->wires)
			e->wires->drops.wrong_address++;
		return;
	}
	if (__builtin_expect(wire->fault.active, 0) &&
	    soft_fault_refuses(&wire->fault, &d->src, &d->dst))
		return;
	if (soft_packet_decode(d->bytes, d->len, &p) < 0) {
		wire->drops.malformed++;
		return;
	}
	qp = soft_qp_table_find(&e->table, p.dest_qp);
	if (!qp) {
		wire->drops.no_qp++;
		return;
	}
	reason = refuse(&e->table, wire, qp, &p, &d->src, &d->dst);
	if (reason) {
		(*reason)++;
		return;
	}
	flow = flow_of(wire, d);
	if (!right(flow, d, &id) || !soft_origin_fits(wire->origins, flow, &id, in->now)) {
		wire->drops.icrc++;
		return;
	}
	memset(&from, 0, sizeof(from));
	from.flow = wire->last_flow;
	from.traffic_class = d->traffic_class;
	from.hop_limit = d->hop_limit;
	deliver(in, qp, &p, &from, d->traffic_class);
}

/* Of a lane the kernel has told whose it is; what it says of addresses is checked as on the wire.
 */
void soft_engine_record(struct soft_engine_input *in, const struct soft_record *record,
			struct soft_packet *p)
{
	struct soft_engine *e = in->engine;
	struct soft_wire *wire = wire_of(e, &record->dst);
	struct soft_qp *qp;
	uint64_t *reason;

	in->datagrams++;
	in->bytes += p->payload_bytes;
	if (!wire) {
		if (e->wires)
			e->wires->drops.wrong_address++;
		return;
	}
	if (__builtin_expect(wire->fault.active, 0) &&
	    soft_fault_refuses(&wire->fault, &record->src, &record->dst))
		return;
	qp = soft_qp_table_find(&e->table, p->dest_qp);
	if (!qp) {
		wire->drops.no_qp++;
		return;
	}
	reason = refuse(&e->table, wire, qp, p, &record->src, &record->dst);
	/* Datagrams have no business here. */
	if (!reason && qp->transport == SOFT_UD)
		reason = &wire->drops.wrong_state;
	if (reason)
		(*reason)++;
	else
		deliver(in, qp, p, &qp->path, record->traffic_class);
}
