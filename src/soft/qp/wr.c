/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues of work requests: rings of equal slots under running counts. Depths are powers of two, so
 * that the counts may wrap. Memory of a large queue stays untouched (zero pages) until used.
 */
#include "soft/qp/wr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

/* Zeroed memory for @depth slots of a @head with @tail bytes behind it. */
static int slots_new(uint32_t asked, size_t head, size_t tail, uint8_t **ret, uint32_t *ret_depth,
		     uint32_t *ret_stride)
{
	size_t stride = (head + tail + 7) & ~(size_t)7;
	uint32_t depth = asked > 0 ? 1 : 0;
	uint8_t *memory;

	while (depth < asked)
		depth <<= 1;
	memory = calloc(depth > 0 ? depth : 1, stride);
	if (!memory)
		return -ENOMEM;
	*ret = memory;
	*ret_depth = depth;
	*ret_stride = (uint32_t)stride;
	return 0;
}

int soft_send_queue_init(struct soft_send_queue *q, uint32_t depth, uint32_t max_sge,
			 uint32_t max_inline, bool signal_all)
{
	size_t tail = max_sge * sizeof(struct soft_sge);
	int rc;

	memset(q, 0, sizeof(*q));
	if (depth > SOFT_WR_DEPTH_MAX || max_sge > SOFT_WR_SGES_MAX ||
	    max_inline > SOFT_WR_INLINE_MAX)
		return -EINVAL;
	if (tail < max_inline)
		tail = max_inline;
	rc = slots_new(depth, sizeof(struct soft_send_wr), tail, &q->memory, &q->depth, &q->stride);
	if (rc)
		return rc;
	/* Pieces and inline bytes share their room, which may give more than was asked for. */
	tail = q->stride - sizeof(struct soft_send_wr);
	q->max_sge = max_sge;
	q->max_inline = tail < SOFT_WR_INLINE_MAX ? (uint32_t)tail : SOFT_WR_INLINE_MAX;
	q->signal_all = signal_all;
	return 0;
}

void soft_send_queue_done(struct soft_send_queue *q)
{
	free(q->memory);
	memset(q, 0, sizeof(*q));
}

struct soft_send_wr *soft_send_queue_next(struct soft_send_queue *q)
{
	if (q->posted - q->retired >= q->depth)
		return NULL;
	return soft_send_queue_at(q, q->posted);
}

int soft_recv_queue_init(struct soft_recv_queue *q, uint32_t depth, uint32_t max_sge)
{
	memset(q, 0, sizeof(*q));
	if (depth > SOFT_WR_DEPTH_MAX || max_sge > SOFT_WR_SGES_MAX)
		return -EINVAL;
	q->max_sge = max_sge;
	return slots_new(depth, sizeof(struct soft_recv_wr), max_sge * sizeof(struct soft_sge),
			 &q->memory, &q->depth, &q->stride);
}

void soft_recv_queue_done(struct soft_recv_queue *q)
{
	free(q->memory);
	memset(q, 0, sizeof(*q));
}

static struct soft_recv_wr *recv_at(const struct soft_recv_queue *q, uint32_t n)
{
	return (struct soft_recv_wr *)(q->memory + (size_t)(n & (q->depth - 1)) * q->stride);
}

int soft_recv_queue_resize(struct soft_recv_queue *q, uint32_t depth)
{
	struct soft_recv_queue to;
	int rc;

	rc = soft_recv_queue_init(&to, depth, q->max_sge);
	if (rc)
		return rc;
	if (q->posted - q->taken > to.depth) {
		soft_recv_queue_done(&to);
		return -EINVAL;
	}
	for (uint32_t n = q->taken; n != q->posted; n++)
		memcpy(recv_at(&to, n), recv_at(q, n), q->stride);
	free(q->memory);
	q->memory = to.memory;
	q->depth = to.depth;
	return 0;
}

int soft_recv_queue_post(struct soft_recv_queue *q, uint64_t id, const struct soft_sge *sges,
			 uint32_t num_sge)
{
	struct soft_recv_wr *wr;
	uint32_t length = 0;

	if (num_sge > q->max_sge)
		return -EINVAL;
	if (q->posted - q->taken >= q->depth)
		return -ENOMEM;
	/* Longer than any message is as good as the longest. */
	for (uint32_t i = 0; i < num_sge; i++)
		if (__builtin_add_overflow(length, sges[i].length, &length))
			length = UINT32_MAX;
	wr = recv_at(q, q->posted);
	wr->id = id;
	wr->num_sge = num_sge;
	wr->length = length;
	if (num_sge > 0)
		memcpy(soft_recv_wr_sges(wr), sges, num_sge * sizeof(*sges));
	q->posted++;
	return 0;
}

struct soft_recv_wr *soft_recv_queue_head(struct soft_recv_queue *q)
{
	return q->posted != q->taken ? recv_at(q, q->taken) : NULL;
}

size_t soft_recv_queue_wr_bytes(const struct soft_recv_queue *q)
{
	return sizeof(struct soft_recv_wr) + q->max_sge * sizeof(struct soft_sge);
}

bool soft_recv_queue_take(struct soft_recv_queue *q, struct soft_recv_wr *to)
{
	const struct soft_recv_wr *wr = soft_recv_queue_head(q);

	if (!wr)
		return false;
	memcpy(to, wr, sizeof(*wr) + wr->num_sge * sizeof(struct soft_sge));
	q->taken++;
	if (q->limit > 0 && q->posted - q->taken < q->limit) {
		q->limit = 0;
		if (q->below_limit)
			q->below_limit(q);
	}
	return true;
}
