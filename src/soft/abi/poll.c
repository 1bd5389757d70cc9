/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking completions, the old way and the extended one.
 */
#include "soft/abi/object.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/banned.h"

enum { AT_ONCE = 16 };

static void show(const struct soft_cqe *from, struct ibv_wc *to)
{
	*to = (struct ibv_wc){
		.wr_id = from->wr_id,
		.status = from->status,
		.opcode = from->opcode,
		.vendor_err = from->vendor_err,
		.byte_len = from->byte_len,
		.imm_data = from->imm_be,
		.qp_num = from->qp_num,
		.src_qp = from->src_qp,
		.wc_flags = from->flags,
		.sl = from->sl,
	};
}

static int pop(struct soft_cq_object *cq, int n, struct ibv_wc *wc)
{
	struct soft_cqe taken[AT_ONCE];
	int got = 0;

	while (got < n) {
		unsigned int want = n - got < AT_ONCE ? (unsigned int)(n - got) : AT_ONCE;
		unsigned int some = soft_cq_pop(&cq->queue, taken, want);

		for (unsigned int i = 0; i < some; i++)
			show(&taken[i], &wc[got++]);
		if (some < want)
			break;
	}
	return got;
}

int soft_poll_cq(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	struct soft_cq_object *cq = soft_cq_of(ibv);
	struct soft_engine *engine = soft_context_of(ibv->context)->engine;
	int got;

	/* In a child of fork() a thread that it has not may hold the queue. */
	if (soft_engine_inherited(engine))
		return -EIO;
	got = pop(cq, n, wc);
	if (got || n <= 0)
		return got;
	soft_engine_poll(engine);
	return pop(cq, n, wc);
}

/* ── extended: the consumer's lock is held from start_poll to end_poll ── */

static void show_current(struct soft_cq_object *cq)
{
	cq->ex.wr_id = cq->current->wr_id;
	cq->ex.status = cq->current->status;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct soft_cq_object *cq = soft_cq_of_ex(ex);

	if (attr && attr->comp_mask)
		return EINVAL;
	if (soft_context_inherited(soft_context_of(ex->context)))
		return EIO;
	if (soft_cq_empty(&cq->queue))
		soft_engine_poll(soft_context_of(ex->context)->engine);
	pthread_mutex_lock(&cq->queue.consumer);
	cq->current = soft_cq_peek_locked(&cq->queue);
	if (!cq->current) {
		pthread_mutex_unlock(&cq->queue.consumer);
		return ENOENT;
	}
	show_current(cq);
	return 0;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct soft_cq_object *cq = soft_cq_of_ex(ex);

	if (cq->current)
		soft_cq_advance_locked(&cq->queue);
	cq->current = soft_cq_peek_locked(&cq->queue);
	if (!cq->current)
		return ENOENT;
	show_current(cq);
	return 0;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct soft_cq_object *cq = soft_cq_of_ex(ex);

	if (cq->current)
		soft_cq_advance_locked(&cq->queue);
	cq->current = NULL;
	pthread_mutex_unlock(&cq->queue.consumer);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return soft_cq_of_ex(ex)->current->opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return soft_cq_of_ex(ex)->current->vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return soft_cq_of_ex(ex)->current->byte_len;
}

static uint32_t read_imm_data(struct ibv_cq_ex *ex)
{
	return soft_cq_of_ex(ex)->current->imm_be;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return soft_cq_of_ex(ex)->current->qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return soft_cq_of_ex(ex)->current->src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return soft_cq_of_ex(ex)->current->flags;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return soft_cq_of_ex(ex)->current->sl;
}

/* LIDs are InfiniBand's; Ethernet has none. */
static uint32_t read_zero_32(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

static uint8_t read_zero_8(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

static uint64_t read_timestamp(struct ibv_cq_ex *ex)
{
	return soft_cq_of_ex(ex)->current->timestamp_ns;
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t read_wallclock(struct ibv_cq_ex *ex)
{
	/* The distance of the two clocks is taken now: it moves only when the time is set. */
	return soft_cq_of_ex(ex)->current->timestamp_ns +
	       (now_ns(CLOCK_REALTIME) - now_ns(CLOCK_MONOTONIC));
}

void soft_cq_ex_fill(struct soft_cq_object *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	/* Only what was asked for: the rest of the table stays NULL, as the interface has it. */
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = read_zero_32;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = read_zero_8;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_timestamp;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = read_wallclock;
}
