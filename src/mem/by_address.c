/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host and peermem: ibv_reg_mr on the memory's address. Of a GPU's address the kernel asks
 * nvidia_peermem; without it the address is nobody's (EFAULT).
 */
#include <errno.h>

#include "mem/way.h"
#include "base/banned.h"

/* Optional flags (relaxed ordering) may be given to the newer call only, which drops them. */
static struct ibv_mr *reg(const struct pp_registering *g, uint64_t at, size_t len)
{
	void *addr = (void *)(uintptr_t)at;

	if (g->access & IBV_ACCESS_OPTIONAL_RANGE && g->verbs->reg_iova2)
		return g->verbs->reg_iova2(g->pd, addr, len, at, (unsigned int)g->access);
	return g->verbs->reg_memory(g->pd, addr, len, g->access & ~IBV_ACCESS_OPTIONAL_RANGE);
}

static int segment(struct pp_registering *g, unsigned int i, struct pp_key *ret_key,
		   struct ibv_mr **ret_mr)
{
	const struct pp_memory_segment *s = &g->memory->segment[i];
	const char *call = g->access & IBV_ACCESS_OPTIONAL_RANGE && g->verbs->reg_iova2
				   ? "ibv_reg_mr_iova2"
				   : "ibv_reg_mr";
	uint64_t at = g->memory->at + s->start;
	struct pp_attempt *a =
		pp_attempt_begin(g, call, "address 0x%llx, length %llu, access 0x%x",
				 (unsigned long long)at, (unsigned long long)s->length, g->access);
	struct ibv_mr *mr = reg(g, at, s->length);
	int error = pp_verb_errno(mr);

	pp_attempt_end(g, a, error);
	if (error)
		return pp_way_refused(g, call, error, s->length);
	*ret_key = (struct pp_key){.start = s->start,
				   .length = s->length,
				   .address = at,
				   .lkey = mr->lkey,
				   .rkey = mr->rkey};
	*ret_mr = mr;
	return 0;
}

static int host_ready(struct pp_registering *g)
{
	if (!g->memory->cuda)
		return 0;
	return pp_error_set(g->err, -EINVAL,
			    "a GPU's memory is not registered as the host's: dmabuf or peermem");
}

static int peermem_ready(struct pp_registering *g)
{
	if (g->memory->cuda)
		return 0;
	return pp_error_set(g->err, -EINVAL, "peermem is for a GPU's memory");
}

static uint64_t nothing(const struct pp_memory_segment *s)
{
	(void)s;
	return 0;
}

static uint64_t part(const struct pp_memory_segment *s)
{
	return s->length;
}

const struct pp_way pp_way_host = {.ready = host_ready, .segment = segment, .window = nothing};
const struct pp_way pp_way_peermem = {.ready = peermem_ready, .segment = segment, .window = part};
