/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One case. Both ends prepare, meet, the requester posts and polls (the responder polls what it
 * receives), both verify what came to them and tell each other.
 *
 * Bytes move on every QP at once. Where they lie in memory changes from case to case, and so does
 * whether they are sent inline or gathered from two pieces.
 */
#include "case.h"

#include <arpa/inet.h>
#include <string.h>
#include <time.h>

#include "base/parse.h"
#include "base/banned.h"

enum {
	PP_WAIT_S = 20,
	/* rdma_rxe gives programs the kernel's own number of the flag (IB_WC_WITH_INVALIDATE). */
	PP_KERNEL_WITH_INV = 1 << 2,
};

static bool pp_op_receives(const struct pp_op *op)
{
	return op->opcode == IBV_WR_SEND || op->opcode == IBV_WR_SEND_WITH_IMM ||
	       op->opcode == IBV_WR_SEND_WITH_INV || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* Where a case's bytes lie in the halves of a slot; atomics need alignment. */
static size_t pp_case_from(const struct pp_case *now)
{
	return PP_GUARD + (pp_op_atomic(now->op) ? 0 : now->number * 5 % 64);
}

static size_t pp_case_into(const struct pp_case *now)
{
	return PP_GUARD + (pp_op_atomic(now->op) ? 0 : now->number * 7 % 64);
}

static unsigned char *pp_half_out(const struct pp_end *end, unsigned int qp)
{
	return end->memory + 2 * end->half * qp;
}

static unsigned char *pp_half_in(const struct pp_end *end, unsigned int qp)
{
	return pp_half_out(end, qp) + end->half;
}

static uint64_t pp_case_word(const struct pp_case *now, unsigned int qp)
{
	return pp_pattern_word(now->seed, now->number, qp);
}

static uint32_t pp_case_imm(const struct pp_case *now, unsigned int qp)
{
	return htonl((uint32_t)(pp_case_word(now, qp) >> 16));
}

/* What an atomic finds, and what it adds or swaps in. */
static uint64_t pp_case_found(const struct pp_case *now, unsigned int qp)
{
	return pp_case_word(now, qp) ^ UINT64_C(0x0123456789abcdef);
}

static uint64_t pp_case_left(const struct pp_case *now, unsigned int qp)
{
	uint64_t word = pp_case_word(now, qp);

	if ((now->op->traits & PP_MISS) || pp_op_refused(now->op))
		return pp_case_found(now, qp);
	return now->op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? pp_case_found(now, qp) + word
							      : word;
}

/* One piece, two where the case number says so, none for no bytes: a length of 0 can mean 2 GiB. */
static int pp_case_gather(const struct pp_case *now, struct ibv_sge sge[2], unsigned char *at,
			  size_t len, uint32_t key)
{
	size_t first =
		now->number % 3 == 0 && len > 1 && !pp_op_atomic(now->op) ? len / 3 + 1 : len;

	sge[0] = (struct ibv_sge){(uintptr_t)at, (uint32_t)first, key};
	sge[1] = (struct ibv_sge){(uintptr_t)at + first, (uint32_t)(len - first), key};
	return len == 0 ? 0 : first < len ? 2 : 1;
}

static int pp_case_receive(struct pp_end *end, const struct pp_case *now, unsigned int qp)
{
	size_t len = now->size + (now->op->traits & PP_UD ? PP_GRH : 0);
	struct ibv_recv_wr wr = {.wr_id = now->number << 8 | qp}, *bad;
	struct ibv_sge sge[2];

	if (now->op->opcode != IBV_WR_RDMA_WRITE_WITH_IMM) {
		wr.sg_list = sge;
		wr.num_sge = pp_case_gather(now, sge, pp_half_in(end, qp) + pp_case_into(now), len,
					    end->mr->lkey);
	}
	return ibv_post_recv(end->qp[qp], &wr, &bad);
}

static void pp_case_prepare(struct pp_end *end, const struct pp_case *now, bool requester,
			    struct pp_verdict *verdict)
{
	uint64_t found;

	for (unsigned int qp = 0; qp < end->qps; qp++) {
		pp_pattern_background(PP_IN, pp_half_in(end, qp), 0, end->half);
		pp_pattern_background(PP_OUT, pp_half_out(end, qp), 0, end->half);
		pp_pattern_fill(pp_half_out(end, qp) + pp_case_from(now), now->size,
				pp_case_word(now, qp));
		if (requester)
			continue;
		if (pp_op_atomic(now->op)) {
			found = pp_case_found(now, qp);
			memcpy(pp_half_in(end, qp) + pp_case_into(now), &found, sizeof(found));
		}
		if (pp_op_receives(now->op) && pp_case_receive(end, now, qp))
			pp_verdict_say(verdict, "qp %u: ibv_post_recv refuses", qp);
	}
}

/* The place in the responder's memory: its layout is ours. */
static uint64_t pp_case_target(const struct pp_end *end, const struct pp_case *now, unsigned int qp)
{
	const unsigned char *at = now->op->opcode == IBV_WR_RDMA_READ
					  ? pp_half_out(end, qp) + pp_case_from(now)
					  : pp_half_in(end, qp) + pp_case_into(now);

	if (now->op->traits & PP_BAD_RANGE) /* all but its last byte is inside */
		return end->far.memory + end->len - now->size + 1;
	return end->far.memory + (uint64_t)(at - end->memory);
}

static uint32_t pp_case_key(const struct pp_end *end, const struct pp_case *now, unsigned int qp)
{
	if (now->op->traits & PP_WINDOW)
		return (uint32_t)end->far_window[qp];
	if (now->op->traits & PP_BAD_KEY)
		return (uint32_t)end->far.key ^ 0x80000000u;
	return (uint32_t)(now->op->traits & PP_READ_ONLY ? end->far.key_read_only : end->far.key);
}

static int pp_case_post(struct pp_end *end, const struct pp_case *now, unsigned int qp)
{
	const struct pp_op *op = now->op;
	bool inwards = op->opcode == IBV_WR_RDMA_READ || pp_op_atomic(op);
	unsigned char *local = inwards ? pp_half_in(end, qp) + pp_case_into(now)
				       : pp_half_out(end, qp) + pp_case_from(now);
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = {
		.wr_id = now->number << 8 | qp,
		.sg_list = sge,
		.num_sge = pp_case_gather(now, sge, local, now->size, end->mr->lkey),
		.opcode = op->opcode,
		.imm_data = op->traits & PP_IMM ? pp_case_imm(now, qp) : 0,
	};

	if (op->traits & PP_INVALIDATE)
		wr.invalidate_rkey = pp_case_key(end, now, qp);
	if (!inwards && now->size <= PP_INLINE && now->number % 2)
		wr.send_flags |= IBV_SEND_INLINE;
	if (op->traits & PP_UD) {
		wr.wr.ud.ah = end->ah;
		wr.wr.ud.remote_qpn = (uint32_t)end->far.qpn[qp];
		wr.wr.ud.remote_qkey = PP_QKEY;
	} else if (pp_op_atomic(op)) {
		wr.wr.atomic.remote_addr = pp_case_target(end, now, qp);
		wr.wr.atomic.rkey = pp_case_key(end, now, qp);
		wr.wr.atomic.swap = pp_case_word(now, qp);
		wr.wr.atomic.compare_add = pp_case_word(now, qp);
		if (op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
			wr.wr.atomic.compare_add =
				pp_case_found(now, qp) ^ (op->traits & PP_MISS ? 1 : 0);
	} else {
		wr.wr.rdma.remote_addr = pp_case_target(end, now, qp);
		wr.wr.rdma.rkey = pp_case_key(end, now, qp);
	}
	return pp_post(end, qp, &wr);
}

static void pp_case_sent(const struct pp_end *end, const struct pp_case *now,
			 const struct ibv_wc *wc, struct pp_verdict *verdict)
{
	enum ibv_wc_status want = pp_op_refused(now->op) ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS;
	unsigned int qp = wc->wr_id & 0xff;

	if (wc->wr_id >> 8 != now->number || qp >= end->qps)
		pp_verdict_say(verdict, "a completion of another request, %#lx", wc->wr_id);
	else if (wc->status != want)
		pp_verdict_say(verdict, "qp %u: %s, not %s", qp, ibv_wc_status_str(wc->status),
			       ibv_wc_status_str(want));
	else if (want == IBV_WC_SUCCESS && wc->opcode != now->op->done)
		pp_verdict_say(verdict, "qp %u: completion of opcode %d", qp, wc->opcode);
	else if (wc->qp_num != end->qp[qp]->qp_num)
		pp_verdict_say(verdict, "qp %u: completion of QP %#x", qp, wc->qp_num);
}

static void pp_case_received(const struct pp_end *end, const struct pp_case *now,
			     const struct ibv_wc *wc, struct pp_verdict *verdict)
{
	bool ud = now->op->traits & PP_UD, write = now->op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	unsigned int qp = wc->wr_id & 0xff;

	if (wc->wr_id >> 8 != now->number || qp >= end->qps)
		pp_verdict_say(verdict, "received for another request, %#lx", wc->wr_id);
	else if (wc->status != IBV_WC_SUCCESS)
		pp_verdict_say(verdict, "qp %u: receive: %s", qp, ibv_wc_status_str(wc->status));
	else if (wc->opcode != (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		pp_verdict_say(verdict, "qp %u: receive of opcode %d", qp, wc->opcode);
	else if (wc->byte_len != now->size + (ud ? PP_GRH : 0))
		pp_verdict_say(verdict, "qp %u: %u bytes received", qp, wc->byte_len);
	else if (!(wc->wc_flags & IBV_WC_WITH_IMM) != !(now->op->traits & PP_IMM))
		pp_verdict_say(verdict, "qp %u: immediate flag wrong", qp);
	else if ((now->op->traits & PP_IMM) && wc->imm_data != pp_case_imm(now, qp))
		pp_verdict_say(verdict, "qp %u: immediate %08x, not %08x", qp, ntohl(wc->imm_data),
			       ntohl(pp_case_imm(now, qp)));
	else if (!(wc->wc_flags & (IBV_WC_WITH_INV | PP_KERNEL_WITH_INV)) !=
		 !(now->op->traits & PP_INVALIDATE))
		pp_verdict_say(verdict, "qp %u: invalidate flag wrong", qp);
	else if ((now->op->traits & PP_INVALIDATE) && wc->invalidated_rkey != end->my_window[qp])
		pp_verdict_say(verdict, "qp %u: invalidated %08x, not %08x", qp,
			       wc->invalidated_rkey, (uint32_t)end->my_window[qp]);
	else if (ud && (wc->src_qp != end->far.qpn[qp] || !(wc->wc_flags & IBV_WC_GRH)))
		pp_verdict_say(verdict, "qp %u: from QP %#x, flags %#x", qp, wc->src_qp,
			       wc->wc_flags);
}

static void pp_case_poll(struct pp_end *end, const struct pp_case *now, bool requester,
			 struct pp_verdict *verdict)
{
	struct ibv_cq *cq = requester ? end->sent : end->received;
	struct timespec start, at;
	struct ibv_wc wc;
	int n;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (unsigned int got = 0; got < end->qps && !verdict->text[0];) {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n < 0)
			pp_verdict_say(verdict, "ibv_poll_cq refuses");
		else if (n > 0 && ++got)
			(requester ? pp_case_sent : pp_case_received)(end, now, &wc, verdict);
		clock_gettime(CLOCK_MONOTONIC, &at);
		if (n == 0 && at.tv_sec - start.tv_sec > PP_WAIT_S)
			pp_verdict_say(verdict, "%u of %u completions in %d s", got, end->qps,
				       PP_WAIT_S);
	}
}

/* What a UD receive says about the sender: the packet's own IP header. */
static void pp_case_header(const struct pp_end *end, const unsigned char *header, unsigned int qp,
			   struct pp_verdict *verdict)
{
	static const unsigned char v4[12] = {[10] = 0xff, [11] = 0xff};
	const unsigned char *gid = (const unsigned char *)end->far.gid;
	bool four = !memcmp(gid, v4, sizeof(v4));

	if (header[four ? 20 : 0] >> 4 != (four ? 4 : 6) ||
	    memcmp(header + (four ? 32 : 8), four ? gid + 12 : gid, four ? 4 : 16))
		pp_verdict_say(verdict, "qp %u: the header before the payload names another sender",
			       qp);
}

/* How many bytes come into this end's half; an atomic's target has them from the start. */
static size_t pp_case_comes(const struct pp_case *now, bool requester)
{
	if (pp_op_atomic(now->op))
		return requester && pp_op_refused(now->op) ? 0 : sizeof(uint64_t);
	if (pp_op_refused(now->op))
		return 0;
	return requester == (now->op->opcode == IBV_WR_RDMA_READ) ? now->size : 0;
}

static void pp_case_verify_qp(const struct pp_end *end, const struct pp_case *now, unsigned int qp,
			      bool requester, struct pp_verdict *verdict)
{
	unsigned char *half = pp_half_in(end, qp);
	size_t at = pp_case_into(now), len = pp_case_comes(now, requester);
	struct pp_verdict bytes = {0};
	uint64_t value, want;

	if (len && pp_op_atomic(now->op)) {
		memcpy(&value, half + at, sizeof(value));
		want = requester ? pp_case_found(now, qp) : pp_case_left(now, qp);
		if (value != want)
			pp_verdict_say(verdict, "qp %u: value %#lx, not %#lx", qp, value, want);
		pp_pattern_fill(half + at, len,
				pp_case_word(now, qp)); /* judged: the rest remains */
	}
	if (!requester && (now->op->traits & PP_UD)) {
		pp_case_header(end, half + at, qp, verdict);
		pp_pattern_background(PP_IN, half, at, PP_GRH);
		at += PP_GRH;
	}
	if (!pp_pattern_verify(half, end->half, at, len, pp_case_word(now, qp), &bytes))
		pp_verdict_say(verdict, "qp %u: %s", qp, bytes.text);
}

/* Both ends get both texts; the requester's comes first. */
static int pp_case_tell(int fd, struct pp_verdict *verdict)
{
	struct pp_verdict far;
	int err = pp_talk_exchange(fd, verdict, &far, sizeof(far));

	if (err)
		return err;
	far.text[sizeof(far.text) - 1] = 0;
	pp_sanitize(far.text, /* keep_lines= */ false);
	if (far.text[0])
		pp_verdict_say(verdict, "other end: %.140s", far.text);
	return 0;
}

int pp_case_run(struct pp_end *end, int fd, const struct pp_case *now, bool requester,
		struct pp_verdict *ret_verdict, bool *ret_usable)
{
	struct pp_verdict verdict = {0};
	int err;

	pp_case_prepare(end, now, requester, &verdict);
	err = pp_talk_meet(fd);
	for (unsigned int qp = 0; requester && qp < end->qps && !err && !verdict.text[0]; qp++)
		if (pp_case_post(end, now, qp))
			pp_verdict_say(&verdict, "qp %u: the request is not accepted", qp);
	if (!err && !verdict.text[0] && (requester || pp_op_receives(now->op)))
		pp_case_poll(end, now, requester, &verdict);
	err = err ? err : pp_case_tell(fd, &verdict);
	if (err)
		return err;
	*ret_usable = !verdict.text[0] && !pp_op_refused(now->op);
	for (unsigned int qp = 0; qp < end->qps && !verdict.text[0]; qp++)
		pp_case_verify_qp(end, now, qp, requester, &verdict);
	err = pp_case_tell(fd, &verdict);
	*ret_verdict = verdict;
	return err;
}
