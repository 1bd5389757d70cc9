/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Posting: one chain of requests, made once. A provider copies requests when they are posted, so
 * the chain is used again for every post with the next slots' addresses and keys.
 */
#include <errno.h>
#include <string.h>

#include "bench/traffic_run.h"
#include "base/banned.h"

void pp_post_prepare(struct pp_run *r, enum ibv_wr_opcode opcode)
{
	struct pp_chain *c = &r->chain;

	memset(c, 0, sizeof(*c));
	for (unsigned int i = 0; i < PP_CHAIN; i++) {
		c->sge[i].length = r->t->size;
		c->wr[i].sg_list = &c->sge[i];
		/* An entry of length 0 means 2 GiB to some devices. */
		c->wr[i].num_sge = r->t->size ? 1 : 0;
		c->wr[i].opcode = opcode;
		c->wr[i].next = i + 1 < PP_CHAIN ? &c->wr[i + 1] : NULL;
		c->receive_sge[i].length = r->t->size;
		c->receive[i].sg_list = &c->receive_sge[i];
		/* A WRITE with immediate brings its address along. */
		c->receive[i].num_sge = r->t->size && r->t->op == PP_SEND ? 1 : 0;
		c->receive[i].next = i + 1 < PP_CHAIN ? &c->receive[i + 1] : NULL;
	}
}

static int __attribute__((cold))
refused(struct pp_run *r, const char *call, int code, unsigned int q, struct pp_error *err)
{
	char text[128];
	int e = code > 0 ? code : errno ? errno : EIO;

	r->failure.qp = q;
	return pp_error_set(err, -e, "%s: %s on queue pair %u: %s", r->e->options.device, call, q,
			    pp_errno_text(e, text, sizeof(text)));
}

int pp_post(struct pp_run *r, unsigned int q, unsigned int n, struct pp_error *err)
{
	struct pp_flow *f = &r->flow[q];
	struct ibv_send_wr *wr = r->chain.wr, *bad, *next;
	struct ibv_sge *sge = r->chain.sge;
	const struct pp_slot *slots = r->t->slots, *s;
	unsigned int n_slots = r->t->n_slots, mask = r->period - 1, slot = f->slot;
	uint64_t j = f->posted;
	int e;

	for (unsigned int i = 0; i < n; i++, j++) {
		s = &slots[slot];
		slot += r->step;
		if (slot >= n_slots)
			slot -= n_slots;
		sge[i].addr = s->local;
		sge[i].lkey = s->lkey;
		wr[i].wr.rdma.remote_addr = s->remote;
		wr[i].wr.rdma.rkey = s->rkey;
		wr[i].wr_id = pp_request_id(PP_REQUEST_MESSAGE, q, j);
		wr[i].send_flags = r->flags | (((j + 1) & mask) == 0 || j + 1 == f->all
						       ? (unsigned int)IBV_SEND_SIGNALED
						       : 0);
	}
	next = wr[n - 1].next;
	wr[n - 1].next = NULL;
	e = ibv_post_send(r->e->qp[q], wr, &bad);
	wr[n - 1].next = next;
	if (__builtin_expect(e != 0, 0)) {
		r->failure.message = f->posted * r->qps + q;
		return refused(r, "ibv_post_send", e, q, err);
	}
	f->posted = j;
	f->slot = slot;
	return 0;
}

int pp_post_credit(struct pp_run *r, unsigned int q, struct pp_error *err)
{
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = pp_request_id(PP_REQUEST_CREDIT, q, r->flow[q].granted),
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
		};
	int e = ibv_post_send(r->e->qp[q], &wr, &bad);

	if (e)
		return refused(r, "ibv_post_send (credit)", e, q, err);
	r->flow[q].granted++;
	return 0;
}

static int post_receive_chain(struct pp_run *r, unsigned int q, unsigned int n,
			      struct pp_error *err)
{
	struct pp_flow *f = &r->flow[q];
	const struct pp_slot *slots = r->t->into ? r->t->into : r->t->slots;
	struct ibv_recv_wr *wr = r->chain.receive, *bad, *next;
	unsigned int slot = f->receive_slot;
	int e;

	for (unsigned int i = 0; i < n; i++) {
		r->chain.receive_sge[i].addr = slots[slot].local;
		r->chain.receive_sge[i].lkey = slots[slot].lkey;
		slot += r->step;
		if (slot >= r->t->n_slots)
			slot -= r->t->n_slots;
		wr[i].wr_id = pp_request_id(PP_REQUEST_RECEIVE, q, f->receives_posted + i);
	}
	next = wr[n - 1].next;
	wr[n - 1].next = NULL;
	e = ibv_post_recv(r->e->qp[q], wr, &bad);
	wr[n - 1].next = next;
	if (e)
		return refused(r, "ibv_post_recv", e, q, err);
	f->receives_posted += n;
	f->receive_slot = slot;
	return 0;
}

int pp_post_receives(struct pp_run *r, unsigned int q, uint64_t n, struct pp_error *err)
{
	int e = 0;

	while (n && !e) {
		unsigned int some = n < PP_CHAIN ? (unsigned int)n : PP_CHAIN;

		e = post_receive_chain(r, q, some, err);
		n -= some;
	}
	return e;
}

int pp_post_grants(struct pp_run *r, unsigned int q, uint64_t n, struct pp_error *err)
{
	struct ibv_recv_wr *bad, wr = {0};

	for (uint64_t i = 0; i < n; i++) {
		int e;

		wr.wr_id = pp_request_id(PP_REQUEST_GRANTED, q, r->flow[q].grants_posted);
		e = ibv_post_recv(r->e->qp[q], &wr, &bad);
		if (e)
			return refused(r, "ibv_post_recv (credits)", e, q, err);
		r->flow[q].grants_posted++;
	}
	return 0;
}
