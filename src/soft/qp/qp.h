/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_qp: a queue pair as a pure state machine: fed with work requests, packets and time,
 * it gives packets (ops->send), completions (its CQs) and events (ops->event). No socket, no clock,
 * no lock in here; the caller holds the engine's lock. Memory is reached through regions only.
 *
 *   work request ──► requester ──► ops->send          packet ──► responder ──► region, CQ
 *                        ▲                                           │
 *   ACK, NAK, response ──┘                             ops->send ◄───┘ ACK, NAK, response
 *
 * Rules: InfiniBand Architecture Specification volume 1, chapter 9 (transport) and 10 (software
 * interface).
 */
#ifndef SOFT_QP_QP_H
#define SOFT_QP_QP_H

#include <sys/uio.h>

#include "base/clock.h"
#include "soft/copy/mw.h"
#include "soft/copy/mover.h"
#include "soft/link/path.h"
#include "soft/qp/cq.h"
#include "soft/qp/landing.h"
#include "soft/qp/outgoing.h"
#include "soft/qp/window.h"
#include "soft/qp/wr.h"
#include "soft/wire/packet.h"

/* Numbers of enum ibv_qp_state. */
enum soft_qp_state {
	SOFT_QP_RESET,
	SOFT_QP_INIT,
	SOFT_QP_RTR,
	SOFT_QP_RTS,
	SOFT_QP_SQD,
	SOFT_QP_SQE,
	SOFT_QP_ERR,
};

enum soft_qp_event {
	SOFT_QP_EVENT_FATAL,	   /* local fault */
	SOFT_QP_EVENT_REQUEST,	   /* invalid request received (IBV_EVENT_QP_REQ_ERR) */
	SOFT_QP_EVENT_ACCESS,	   /* access violation by the peer (IBV_EVENT_QP_ACCESS_ERR) */
	SOFT_QP_EVENT_ESTABLISHED, /* first packet in RTR (IBV_EVENT_COMM_EST) */
	SOFT_QP_EVENT_SQ_DRAINED,  /* IBV_EVENT_SQ_DRAINED */
	SOFT_QP_EVENT_LAST_WQE,	   /* shared receive queue: IBV_EVENT_QP_LAST_WQE_REACHED */
};

struct soft_qp;

struct soft_qp_ops {
	/* Sends one packet along qp->path or, of UD, @path. Unless p->stays, the pieces may change
	 * or go away as soon as it returns; if p->later, not before await_read(qp->unread), which
	 * it sets. */
	void (*send)(struct soft_qp *qp, const struct soft_path *path, const struct soft_packet *p,
		     const struct iovec *pieces, unsigned int num_pieces);
	void (*event)(struct soft_qp *qp, enum soft_qp_event event);
	/* It has something to do though nothing came: a copy is done. */
	void (*ready)(struct soft_qp *qp);
	/* Pieces that were sent with p->stays may change from now on. */
	void (*withdraw)(struct soft_qp *qp);
	/* Returns when what was sent until qp->unread was @mark has been read. */
	void (*await_read)(struct soft_qp *qp, uint64_t mark);
	/* Can the peer's GPU copy from the allocation that @region lies in, by the link in use?
	 * Sees to it that it can soon, if it ever can. Asked only of a region with an export. */
	bool (*shows)(struct soft_qp *qp, const struct soft_region *region);
};

/* What ibv_modify_qp() sets, in verbs' units. */
struct soft_qp_attr {
	uint32_t remote_qpn, sq_psn, rq_psn, qkey;
	uint32_t mtu; /* bytes */
	uint16_t pkey;
	uint8_t timeout; /* 4.096 us * 2^timeout, 0: none */
	uint8_t retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint32_t access; /* SOFT_ACCESS_* that the peer has through this QP */
};

struct soft_counters { /* names after the kernel's hw_counters where one fits */
	uint64_t out_of_sequence, duplicate_request, packet_seq_err, local_ack_timeout_err;
	uint64_t rnr_nak_retry_err, out_of_buffer, req_remote_access_errors,
		resp_remote_access_errors;
	uint64_t req_cqe_error, implied_nak_seq_err, retransmitted_packets, early_retransmits;
	uint64_t rx_write_requests, rx_read_requests, rx_atomic_requests, rx_sends;
	uint64_t rp_cnp_handled, np_ecn_marked_roce_packets, np_cnp_sent;
	uint64_t sent_data_bytes, received_data_bytes;
	uint64_t qkey_violations;    /* qkey_viol_cntr of a port */
	uint64_t datagrams_too_long; /* dropped: longer than the buffers that waited */
	uint64_t ghost_responses;    /* to nothing that is open: late, duplicate, forged */
};

/*
 * Counts of packets stand in a circle: una <= send <= next <= wr.
 *
 *   una_psn          send_psn            next_psn          wr_psn
 *   | under way ─────► | to be sent again ─► | of started work ─► | of the next work request
 *
 * Going back always goes to una_psn: every answer that asks for it acknowledges what lies before.
 */
struct soft_requester {
	struct soft_send_queue sq; /* una_psn lies in work request sq.retired */
	struct soft_outgoing outgoing;
	struct soft_landing landing; /* answers to READs, and completions behind them */
	uint32_t una_psn;	     /* oldest not acknowledged; of a READ: next response */
	uint32_t send_psn;	     /* of the next packet to send */
	uint32_t next_psn;	     /* of the next packet that was never sent */
	uint32_t wr_psn;	     /* first one of the next work request */
	uint32_t send_wr;	     /* running count of the work request that send_psn lies in */
	uint32_t read_chunk;	     /* packets that one READ request asks for at most */
	uint32_t read_open;	     /* bytes that all READ requests under way may ask for */
	uint32_t reads_open;	     /* READ requests and atomics under way */
	uint32_t read_bytes;	     /* that READ requests under way ask for */
	uint32_t unasked;	     /* bytes sent since an acknowledge was asked for */
	uint64_t bytes_out;	     /* counted in the window by this QP */
	pp_ns early_deadline;	     /* own retransmission, 0: none */
	pp_ns retry_deadline;	     /* the standard's interval, 0: none */
	pp_ns rnr_until;	     /* waiting after an RNR NAK, or (UC) for its pace; 0: not */
	pp_ns rtt_sent;		     /* when rtt_psn was sent: one sample at a time, 0: none */
	uint32_t rtt_psn;
	uint8_t retries_left, rnr_left, backoff;
	bool probing;	   /* after silence or RNR: one packet until something is acknowledged */
	bool gap_asked;	   /* responses before una_psn's are missing and asked for again */
	bool tell_drained; /* an event when SQD has nothing under way */
};

enum {
	SOFT_RD_ATOMIC_MAX = 16, /* READs and atomics open at either end: what devices say */
	SOFT_ATOMICS_KEPT = 32,	 /* results for duplicates; >= SOFT_RD_ATOMIC_MAX */
	SOFT_ANSWERS_MAX = 2 * SOFT_RD_ATOMIC_MAX,
};

/* A READ or atomic that was accepted and not all of whose responses have been sent. */
struct soft_answer {
	uint32_t psn, left_psn; /* next response, responses left */
	uint32_t msn;
	uint32_t rkey, left_bytes;
	uint64_t va;		    /* next byte of a READ; of an atomic: the original value */
	uint64_t after;		    /* of the landing: what must have had its effect before */
	struct soft_parcel *parcel; /* bytes from va on, of a region that is far; NULL: not yet */
	bool atomic;		    /* else a READ */
	bool started;		    /* the first response is out */
	bool replay;		    /* asked for again by a duplicate */
};

struct soft_responder {
	struct soft_recv_queue *rq; /* own or shared */
	struct soft_recv_queue own_rq;
	struct soft_recv_wr *wr; /* taken from rq for this message; room for one */
	bool has_wr;
	bool established, told_last;
	uint32_t expected_psn, msn;

	struct soft_landing landing;	   /* requests without effect yet; not to be acknowledged */
	struct soft_staging_waiter waiter; /* an answer's */

	/* The message being received. */
	bool in_message;
	uint16_t message_kind;		 /* SOFT_IS_SEND or SOFT_IS_WRITE */
	uint64_t write_va;		 /* next byte of a WRITE */
	uint32_t write_rkey, write_left; /* bytes still to come */
	uint32_t received;		 /* bytes of this message */

	/*
	 * What goes out when all answers are: an acknowledge of all before expected_psn, or a NAK
	 * in its place. After a NAK of sequence or readiness what lies ahead is dropped silently
	 * until the expected packet comes.
	 */
	bool ack_pending, silent;
	bool alive; /* an answer that was asked for again waits for a copy: the peer hears of it */
	bool closing; /* to ERR once the NAK is out: nothing is taken in any more */
	bool close_event;
	uint8_t nak; /* syndrome, 0: none */
	uint32_t nak_psn;
	uint8_t close_with; /* enum soft_qp_event, if close_event */

	/* In the order of their packet numbers. Results of atomics are a ring. */
	struct soft_answer answers[SOFT_ANSWERS_MAX];
	uint32_t num_answers, num_replays;
	struct {
		uint32_t psn;
		bool used;
		uint64_t original;
	} atomics[SOFT_ATOMICS_KEPT];
	uint32_t next_atomic;
};

struct soft_qp {
	uint32_t num;
	enum soft_transport transport; /* SOFT_RC, SOFT_UC, SOFT_UD */
	enum soft_qp_state state;
	const void *pd;
	struct soft_regions *regions;	   /* borrowed */
	struct soft_mover *mover;	   /* borrowed; NULL: no region is far */
	struct soft_mw_owner windows;	   /* of memory, bound through it */
	struct soft_cq *send_cq, *recv_cq; /* borrowed */
	struct soft_window *window;	   /* borrowed; set when the path is */
	struct soft_counters *counters;	   /* borrowed: the port's */
	const struct soft_qp_ops *ops;
	void *owner;
	struct soft_qp_attr attr;
	struct soft_path path; /* RC, UC: of the address vector */
	pp_ns now;	       /* the time it was last told; completions carry it */
	struct soft_requester req;
	struct soft_responder resp;
	pp_ns cnp_sent;	 /* the last one; 0: none */
	uint64_t unread; /* mark of the last packet that the link reads later; 0: none */
	/* Of the link in use, before every pump: most payload bytes of one packet (0: the MTU) and
	 * those that READs may ask for (0: req.read_open); it takes no request now. */
	uint32_t jumbo, reads;
	bool full;

	/* Of memory of GPUs that was sent: copied by the peer's GPU from where it was, or from
	 * staging; which it was last; why not the first, NULL: there is no reason. */
	uint64_t direct_bytes, staged_bytes;
	bool is_direct;
	const char *not_direct;

	/* The engine's. */
	struct soft_lane *lane;		 /* to the peer's process, or NULL: the wire */
	struct soft_window *wire_window; /* of the address; window, unless a lane is in use */
	const char *wire_reason;	 /* why no lane is in use; NULL: not looked for yet */
	struct soft_qp *table_next, *ready_next;
	bool ready;	 /* in the ready list */
	pp_ns asked;	 /* the engine's: when a request came that no post followed yet, 0: none */
	uint8_t replies; /* the engine's: requests in a row that a post followed soon */
};

struct soft_qp_caps {
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
};

/*
 * Borrows everything that @qp points to. @shared_rq NULL: an own receive queue. Fills queues by
 * @caps; -ENOMEM. State RESET.
 */
int soft_qp_init(struct soft_qp *qp, const struct soft_qp_caps *caps,
		 struct soft_recv_queue *shared_rq, bool signal_all);
void soft_qp_done(struct soft_qp *qp);

/* RESET: all queues emptied without completions, sequence state cleared, windows of type 2 unbound.
 */
void soft_qp_reset(struct soft_qp *qp);
/* Attributes are set by the caller before; these start what the new state starts. */
void soft_qp_to_rtr(struct soft_qp *qp);
void soft_qp_to_rts(struct soft_qp *qp); /* from RTR, or back from SQD, SQE: nothing is lost */
/* Begins no new work request; @notify: SOFT_QP_EVENT_SQ_DRAINED when what was begun is done. */
void soft_qp_to_sqd(struct soft_qp *qp, bool notify);
/* Flushes: every open work request completes with WR_FLUSH_ERR, in order. Idempotent. */
void soft_qp_to_error(struct soft_qp *qp);

/* A packet for this QP, checked already: ICRC, addresses of a connected QP. @tc: traffic class it
 * came with. */
void soft_qp_receive(struct soft_qp *qp, const struct soft_packet *p, const struct soft_path *from,
		     uint8_t tc, pp_ns now);

/*
 * Sends what may be sent: queued responses and acknowledges first, then work requests, about
 * @budget bytes. Returns true when it wants another turn though no packet may come for it: it
 * stopped for the budget, or for a window that others fill. To be called after posting, after
 * soft_qp_receive() and after soft_qp_tick(). In ERR it flushes what was posted since.
 */
bool soft_qp_pump(struct soft_qp *qp, size_t budget, pp_ns now);

/* Has it an acknowledge to send, and nothing else? That can wait for a moment to go with what
 * follows. */
bool soft_qp_only_acknowledges(const struct soft_qp *qp);

/* When time alone would make it act; 0: never. */
pp_ns soft_qp_deadline(const struct soft_qp *qp);
/* To be called when the deadline has passed; earlier is harmless. */
void soft_qp_tick(struct soft_qp *qp, pp_ns now);

#endif
