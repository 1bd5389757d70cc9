/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue pair connected to itself, as NCCL's flush has them: a READ of one byte of a GPU's memory
 * into host memory, and messages within that memory. Nothing has to be shared for it.
 */
#include "traffic.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HALF = 4 << 20 };

static void flush(struct end *e, size_t at, uint8_t want)
{
	struct ibv_sge sge = {(uintptr_t)e->flag, 1, e->flag_mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_READ,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.rdma = {e->peer.at + at, e->peer.rkey}};

	*e->flag = 0;
	if (ibv_post_send(e->qp, &wr, &bad))
		end_fault("ibv_post_send");
	(void)end_wait(e);
	if (*(volatile uint8_t *)e->flag != want)
		end_fault("byte %zu is %02x, not %02x", at, *(volatile uint8_t *)e->flag, want);
}

void traffic_self(struct end *e, bool first, const struct traffic *t)
{
	uint8_t *bytes = malloc(HALF), *have = malloc(HALF);

	e->self = true;
	end_connect(e, first ? t->source : t->target, 2 * HALF, t->inside);
	for (unsigned int round = 0; round < t->rounds; round++) {
		for (size_t i = 0; i < HALF; i++)
			bytes[i] = (uint8_t)(i * 2654435761u >> 13) ^ (uint8_t)round;
		gpu_put(&e->memory, 0, bytes, HALF);
		for (unsigned int i = 0; i < 8; i++)
			end_post(e, round % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, i,
				 round % 2 ? HALF + (size_t)i * (HALF / 8) : (size_t)i * (HALF / 8),
				 HALF / 8,
				 round % 2 ? (size_t)i * (HALF / 8)
					   : HALF + (size_t)i * (HALF / 8));
		for (unsigned int i = 0; i < 8; i++)
			(void)end_wait(e);
		gpu_get(&e->memory, HALF, have, HALF);
		if (memcmp(have, bytes, HALF) != 0)
			end_fault("round %u: wrong bytes", round);
		for (size_t at = 0; at < HALF; at += HALF / 5 + 1)
			flush(e, HALF + at, bytes[at]);
		usleep(5000);
	}
	free(bytes);
	free(have);
	end_close(e);
	if (first)
		printf("self: right\n");
}
