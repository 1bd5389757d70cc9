/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many regions in one allocation, each with bounds of its own; and an allocation that comes to lie
 * where another was: what is sent from it is its own bytes, and nobody goes on using the old one.
 */
#include "traffic.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PART = 4096, ROOM = 8 << 20 };

struct part {
	uint64_t at;
	uint32_t rkey;
};

static struct ibv_mr *register_part(struct end *e, unsigned int i, int fd)
{
	uint64_t offset = (uint64_t)i * PART;
	struct ibv_mr *mr =
		ibv_reg_dmabuf_mr(e->pd, offset, PART, e->memory.base + offset, fd, END_ACCESS);

	if (!mr)
		end_fault("region %u: %m", i);
	return mr;
}

static void fill(struct end *e, uint8_t seed)
{
	uint8_t *bytes = malloc(ROOM);

	for (size_t i = 0; i < ROOM; i++)
		bytes[i] = (uint8_t)(i / PART * 7 + i % PART + seed);
	gpu_put(&e->memory, 0, bytes, ROOM);
	free(bytes);
}

static void check(struct end *e, unsigned int parts, uint8_t seed)
{
	uint8_t *bytes = malloc((size_t)parts * PART);

	gpu_get(&e->memory, 0, bytes, (size_t)parts * PART);
	for (size_t i = 0; i < (size_t)parts * PART; i++)
		if (bytes[i] != (uint8_t)(i / PART * 7 + i % PART + seed))
			end_fault("byte %zu of region %zu", i % PART, i / PART);
	free(bytes);
}

static void send_all(struct end *e, struct ibv_mr **mrs, const struct part *theirs, unsigned int n)
{
	unsigned int posted = 0, done = 0;

	while (done < n) {
		while (posted < n && posted - done < END_DEPTH / 2) {
			struct ibv_sge sge = {e->memory.base + (uint64_t)posted * PART, PART,
					      mrs[posted]->lkey};
			struct ibv_send_wr *bad,
				wr = {.wr_id = posted,
				      .sg_list = &sge,
				      .num_sge = 1,
				      .opcode = IBV_WR_RDMA_WRITE,
				      .send_flags = IBV_SEND_SIGNALED,
				      .wr.rdma = {theirs[posted].at, theirs[posted].rkey}};

			if (ibv_post_send(e->qp, &wr, &bad))
				end_fault("ibv_post_send");
			posted++;
		}
		if (end_wait(e).wr_id != done++)
			end_fault("out of order");
	}
}

/* Every region, several times: the peer maps the allocation meanwhile. */
static void exchange(struct end *e, bool first, unsigned int n, uint8_t seed)
{
	struct ibv_mr **mrs = calloc(n, sizeof(struct ibv_mr *));
	struct part *mine = calloc(n, sizeof(*mine)), *theirs = calloc(n, sizeof(*theirs));
	int fd = gpu_export(e->memory.base, e->memory.whole);

	for (unsigned int i = 0; i < n; i++) {
		mrs[i] = register_part(e, i, fd);
		mine[i] = (struct part){e->memory.base + (uint64_t)i * PART, mrs[i]->rkey};
	}
	close(fd);
	end_say(e, mine, n * sizeof(*mine));
	end_hear(e, theirs, n * sizeof(*theirs));
	for (unsigned int round = 0; round < 4; round++) {
		fill(e, (uint8_t)(first ? seed + round : 0x99));
		end_meet(e);
		if (first)
			send_all(e, mrs, theirs, n);
		end_meet(e);
		if (!first)
			check(e, n, (uint8_t)(seed + round));
		usleep(20000);
	}
	/* All but one at once, while the peer has the allocation mapped. */
	for (unsigned int i = 0; i < n; i++)
		if (ibv_dereg_mr(mrs[i]))
			end_fault("ibv_dereg_mr");
	end_meet(e);
	free(mrs);
	free(mine);
	free(theirs);
}

/* A byte more than the peer's region has, though its allocation has it. */
static void beyond(struct end *e, bool first)
{
	int fd = gpu_export(e->memory.base, e->memory.whole);
	struct ibv_mr *mr = register_part(e, 0, fd);
	struct part mine = {e->memory.base, mr->rkey}, theirs;
	struct ibv_wc wc;

	close(fd);
	end_say(e, &mine, sizeof(mine));
	end_hear(e, &theirs, sizeof(theirs));
	if (first) {
		struct ibv_sge sge = {e->memory.at, PART + 1, e->mr->lkey};
		struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					       .num_sge = 1,
					       .opcode = IBV_WR_RDMA_WRITE,
					       .send_flags = IBV_SEND_SIGNALED,
					       .wr.rdma = {theirs.at, theirs.rkey}};

		if (ibv_post_send(e->qp, &wr, &bad))
			end_fault("ibv_post_send");
		wc = end_wait_any(e);
		if (wc.status != IBV_WC_REM_ACCESS_ERR)
			end_fault("beyond the region: %s", ibv_wc_status_str(wc.status));
	}
	end_meet(e);
	if (ibv_dereg_mr(mr))
		end_fault("ibv_dereg_mr");
}

void traffic_regions(struct end *e, bool first, const struct traffic *t)
{
	unsigned int n = t->rounds;

	end_connect(e, first ? t->source : t->target, ROOM, 0);
	exchange(e, first, n, 1);
	/* The last one goes, and with it whatever a peer has. */
	if (ibv_dereg_mr(e->mr))
		end_fault("ibv_dereg_mr");
	gpu_renew(&e->memory);
	e->mr = end_register(e, &e->memory);
	if (!e->mr)
		end_fault("no registration: %m");
	exchange(e, first, n, 100);
	beyond(e, first);
	end_close(e);
	if (first)
		printf("regions: right\n");
}
