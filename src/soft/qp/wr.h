/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work requests as the engine holds them, and the two queues of them. Memory is taken once, at
 * init, by the capabilities asked for.
 */
#ifndef SOFT_QP_WR_H
#define SOFT_QP_WR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "soft/link/path.h"

/* What a queue may be asked for: what ibv_query_device says. */
enum {
	SOFT_WR_DEPTH_MAX = 1 << 14,
	SOFT_WR_SGES_MAX = 32,
	SOFT_WR_INLINE_MAX = 1024,
	/* Bytes of a message: what ibv_query_port says. The wire could carry twice as many
	 * (9.7.7.1.4), but not an int, in which programs keep it. */
	SOFT_WR_MESSAGE_MAX = 1 << 30,
};

struct soft_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

/* Numbers of enum ibv_wr_opcode. */
enum soft_wr_opcode {
	SOFT_WR_WRITE = 0,
	SOFT_WR_WRITE_IMM = 1,
	SOFT_WR_SEND = 2,
	SOFT_WR_SEND_IMM = 3,
	SOFT_WR_READ = 4,
	SOFT_WR_COMPARE_SWAP = 5,
	SOFT_WR_FETCH_ADD = 6,
	SOFT_WR_LOCAL_INVALIDATE = 7,
	SOFT_WR_BIND_WINDOW = 8,
	SOFT_WR_SEND_INVALIDATE = 9,
};

/* Numbers of enum ibv_send_flags. */
enum {
	SOFT_WR_FENCE = 1 << 0,
	SOFT_WR_SIGNALED = 1 << 1,
	SOFT_WR_SOLICITED = 1 << 2,
	SOFT_WR_INLINE = 1 << 3,
};

struct soft_send_wr {
	uint64_t id;
	uint8_t opcode, flags;
	uint16_t num_sge;
	uint32_t length; /* bytes of all pieces */
	uint32_t imm_be; /* or the rkey to invalidate */
	union {
		struct {
			uint64_t remote_addr;
			uint64_t compare_add, swap;
			uint32_t rkey;
			uint32_t first_psn, num_psn; /* set when first sent */
			uint64_t unread;	     /* then 0; soft_qp.unread of its last one */
		} rc;
		struct {
			struct soft_path path; /* copied: the address handle may go away */
			uint32_t remote_qpn, qkey;
		} ud;
		struct {
			uint64_t start, length;
			uint32_t window, lkey; /* keys when it was posted */
			uint32_t access;
			uint8_t key; /* low bits of the window's from then on */
		} bind;
	};
	uint32_t error; /* enum ibv_wc_status found at the sending side, 0: none */
			/* Followed by max_sge struct soft_sge, or the inline bytes. */
};

/* Is it carried out here, without a packet? */
static inline bool soft_send_wr_is_local(const struct soft_send_wr *wr)
{
	return wr->opcode == SOFT_WR_BIND_WINDOW || wr->opcode == SOFT_WR_LOCAL_INVALIDATE;
}

struct soft_send_queue {
	uint8_t *memory;
	uint32_t depth;			   /* work requests that fit: a power of two, >= asked */
	uint32_t stride;		   /* bytes of one */
	uint32_t max_sge, max_inline;	   /* granted, >= asked */
	uint32_t posted, started, retired; /* running counts: retired <= started <= posted */
	bool signal_all;
};

/* -EINVAL: more than the maxima; -ENOMEM. A depth of 0 is a queue that is always full. */
int soft_send_queue_init(struct soft_send_queue *q, uint32_t depth, uint32_t max_sge,
			 uint32_t max_inline, bool signal_all);
void soft_send_queue_done(struct soft_send_queue *q);

static inline struct soft_send_wr *soft_send_queue_at(const struct soft_send_queue *q, uint32_t n)
{
	return (struct soft_send_wr *)(q->memory + (size_t)(n & (q->depth - 1)) * q->stride);
}

static inline struct soft_sge *soft_send_wr_sges(struct soft_send_wr *wr)
{
	return (struct soft_sge *)(wr + 1);
}

static inline uint8_t *soft_send_wr_inline(struct soft_send_wr *wr)
{
	return (uint8_t *)(wr + 1);
}

/* The slot for the next work request, or NULL: full. It counts once the caller adds 1 to posted. */
struct soft_send_wr *soft_send_queue_next(struct soft_send_queue *q);

struct soft_recv_wr {
	uint64_t id;
	uint32_t num_sge;
	uint32_t length; /* bytes of all pieces */
			 /* Followed by max_sge struct soft_sge. */
};

/* The queue of a QP, or shared by several. */
struct soft_recv_queue {
	uint8_t *memory;
	uint32_t depth, stride, max_sge; /* depth: a power of two, >= asked */
	uint32_t posted, taken;
	uint32_t limit; /* shared queues: an event when fewer are left; 0: disarmed */
	/* Called by the take that fell below the limit; disarmed already. */
	void (*below_limit)(struct soft_recv_queue *q);
	const void *pd; /* of a shared queue: whose keys its pieces have; NULL: the queue pair's */
	void *owner;
};

/* As soft_send_queue_init(). */
int soft_recv_queue_init(struct soft_recv_queue *q, uint32_t depth, uint32_t max_sge);
void soft_recv_queue_done(struct soft_recv_queue *q);
/* Keeps what is posted. -EINVAL: more is than would fit; -ENOMEM. */
int soft_recv_queue_resize(struct soft_recv_queue *q, uint32_t depth);
/* Copies @sges. -ENOMEM: full; -EINVAL: more pieces than max_sge. */
int soft_recv_queue_post(struct soft_recv_queue *q, uint64_t id, const struct soft_sge *sges,
			 uint32_t num_sge);
/* The oldest, still in the queue, or NULL. */
struct soft_recv_wr *soft_recv_queue_head(struct soft_recv_queue *q);
/* Copies the oldest into @to (soft_recv_queue_wr_bytes() of room) and takes it. false: empty. */
bool soft_recv_queue_take(struct soft_recv_queue *q, struct soft_recv_wr *to);
size_t soft_recv_queue_wr_bytes(const struct soft_recv_queue *q);

static inline struct soft_sge *soft_recv_wr_sges(struct soft_recv_wr *wr)
{
	return (struct soft_sge *)(wr + 1);
}

#endif
