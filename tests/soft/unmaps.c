/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that takes its memory away as soon as it may: at a completion, after ibv_dereg_mr(),
 * ibv_destroy_qp(), or what makes a queue pair flush or forget, in the middle of bulk. Whoever in
 * the device still reads it ends the process.
 */
#include "client.h"

#include <string.h>
#include <sys/mman.h>

enum {
	BYTES = 256 * 1024,
	MESSAGES = 8,
	ROUNDS = 240,
	ALL = MESSAGES * BYTES,
	PATIENT = 20, /* on a busy machine its threads may have to wait to be run */
	RETRIES = 7,
	WARM = 40, /* polls before it happens: some is acknowledged by then, some is not */
};

enum way { COMPLETED, DEREGISTERED, DESTROYED, FLUSHED, FORGOTTEN, WAYS };

struct round {
	struct client *client;
	struct ibv_qp *from, *to;
	struct ibv_mr *mr;
	unsigned char *memory; /* of the messages, whose memory goes */
	unsigned int left;
};

static void begin(struct round *r, struct client *c)
{
	struct client_peer peer = client_self(c);

	*r = (struct round){.client = c, .left = MESSAGES};
	r->from = client_qp(c, c->cq);
	r->to = client_qp(c, c->cq);
	peer.qpn = r->to->qp_num;
	client_connect(r->from, &peer, PATIENT, RETRIES);
	peer.qpn = r->from->qp_num;
	client_connect(r->to, &peer, PATIENT, RETRIES);
	r->memory = mmap(NULL, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r->memory == MAP_FAILED)
		client_fault("mmap");
	r->mr = ibv_reg_mr(c->pd, r->memory, ALL, IBV_ACCESS_LOCAL_WRITE);
	if (!r->mr)
		client_fault("ibv_reg_mr");
}

static void post(struct round *r, unsigned int seed)
{
	for (unsigned int i = 0; i < MESSAGES; i++) {
		struct ibv_sge sge = {(uintptr_t)r->memory + (size_t)i * BYTES, BYTES, r->mr->lkey};
		struct ibv_send_wr wr = {.wr_id = i,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .sg_list = &sge,
					 .num_sge = 1};
		struct ibv_send_wr *bad;

		memset(r->memory + (size_t)i * BYTES, (int)(seed + i), BYTES);
		wr.wr.rdma.remote_addr = (uintptr_t)r->client->memory + (size_t)i * BYTES;
		wr.wr.rdma.rkey = r->client->mr->rkey;
		if (ibv_post_send(r->from, &wr, &bad))
			client_fault("ibv_post_send");
	}
}

/* Its addresses stay taken for now: nobody else's memory is to come there. */
static void take_away(void *at, size_t len)
{
	if (mprotect(at, len, PROT_NONE))
		client_fault("mprotect");
}

/* Takes what comes within @polls; each message's memory goes with its completion. */
static void take(struct round *r, unsigned int polls, bool flushed)
{
	struct ibv_wc wc;

	for (unsigned int i = 0; i < polls && r->left; i++) {
		if (ibv_poll_cq(r->client->cq, 1, &wc) != 1)
			continue;
		if (wc.status != IBV_WC_SUCCESS && !flushed)
			client_fault("status %d", (int)wc.status);
		take_away(r->memory + wc.wr_id * BYTES, BYTES);
		r->left--;
	}
}

static void take_all(struct round *r, bool flushed)
{
	struct client_patience patience = client_patience();

	while (r->left) {
		take(r, 1, flushed);
		if (client_patience_ends(&patience))
			client_fault("%u messages are not done", r->left);
	}
}

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		client_fault("ibv_modify_qp");
}

static void deregister(struct round *r)
{
	if (ibv_dereg_mr(r->mr))
		client_fault("ibv_dereg_mr");
	r->mr = NULL;
}

static void destroy(struct ibv_qp **qp)
{
	if (ibv_destroy_qp(*qp))
		client_fault("ibv_destroy_qp");
	*qp = NULL;
}

static void end(struct round *r, enum way way)
{
	switch (way) {
	case DEREGISTERED:
		deregister(r);
		take_away(r->memory, ALL);
		break;
	case DESTROYED:
		destroy(&r->from);
		take_away(r->memory, ALL);
		break;
	case FLUSHED:
		to_state(r->from, IBV_QPS_ERR);
		take_all(r, /* flushed= */ true);
		break;
	case FORGOTTEN:
		to_state(r->from, IBV_QPS_RESET);
		take_away(r->memory, ALL);
		break;
	default:
		take_all(r, /* flushed= */ false);
		break;
	}
	if (r->mr)
		deregister(r);
	if (r->from)
		destroy(&r->from);
	destroy(&r->to);
	(void)munmap(r->memory, ALL);
	/* What is left in the queue was the queue pairs', and went with them. */
	if (ibv_poll_cq(r->client->cq, 1, &(struct ibv_wc){0}))
		client_fault("a completion of a queue pair that has gone");
}

int main(void)
{
	struct client c;

	client_open(&c, ALL);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct round r;

		begin(&r, &c);
		post(&r, i);
		take(&r, i % WARM, /* flushed= */ false);
		end(&r, i % WAYS);
		for (unsigned int at = 0; i % WAYS == COMPLETED && at < ALL; at += BYTES / 4)
			if (c.memory[at] != (unsigned char)(i + at / BYTES))
				client_fault("round %u: byte %u is not what was sent", i, at);
	}
	client_close(&c);
	return 0;
}
