/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The responder's files among themselves: responder.c decides what a packet is,
 * responder_message.c executes SEND and WRITE, responder_answer.c READ and atomics, and sends,
 * responder_word.c acknowledges and refuses.
 */
#ifndef SOFT_QP_RESPONDER_H
#define SOFT_QP_RESPONDER_H

#include "soft/qp/parts.h"
#include "soft/wire/psn.h"

/* Why a request is not executed; syndrome 0: it was. */
struct soft_refusal {
	uint8_t syndrome; /* what the requester hears: SOFT_AETH_* */
	uint8_t status;	  /* how a receive request in progress completes: enum soft_wc_status */
};

#define SOFT_EXECUTED	     ((struct soft_refusal){0, SOFT_WC_SUCCESS})
#define SOFT_REFUSED_INVALID ((struct soft_refusal){SOFT_AETH_NAK_INVALID, SOFT_WC_REM_INV_REQ_ERR})
#define SOFT_REFUSED_ACCESS  ((struct soft_refusal){SOFT_AETH_NAK_ACCESS, SOFT_WC_REM_ACCESS_ERR})
#define SOFT_REFUSED_OPERATION \
	((struct soft_refusal){SOFT_AETH_NAK_OPERATION, SOFT_WC_LOC_QP_OP_ERR})
#define SOFT_REFUSED_NOT_READY ((struct soft_refusal){SOFT_AETH_RNR, SOFT_WC_SUCCESS})
/* Its payload could not be fetched: as if it had never come. */
#define SOFT_REFUSED_LOST ((struct soft_refusal){SOFT_AETH_NAK_SEQUENCE, SOFT_WC_SUCCESS})

/* There is no room for it now: as if it had never come, and asked for when there is. */
#define SOFT_AETH_LATER	   0xfe
#define SOFT_REFUSED_LATER ((struct soft_refusal){SOFT_AETH_LATER, SOFT_WC_SUCCESS})

/* 9.9.3 class J: nothing at all is said. */
#define SOFT_AETH_NOTHING   0xff
#define SOFT_REFUSED_UNSAID ((struct soft_refusal){SOFT_AETH_NOTHING, SOFT_WC_REM_INV_REQ_ERR})

/* Longest message (9.7.4.1.4: a RETH may ask for up to 2^31 bytes). */
#define SOFT_MESSAGE_MAX (UINT32_C(1) << 31)

/* responder.c: the QP goes to ERR, with a NAK of @psn when the answers before are out. */
void soft_responder_refuse(struct soft_qp *qp, struct soft_refusal why, uint32_t psn);

/* responder_word.c: to ERR, with the NAK that waits as the last word to the requester. */
void soft_responder_close(struct soft_qp *qp);

/* responder_message.c: the expected packet; its place in the message and its size were checked. */
struct soft_refusal soft_message_send(struct soft_qp *qp, const struct soft_packet *p);
struct soft_refusal soft_message_write(struct soft_qp *qp, const struct soft_packet *p);

/* responder_answer.c: the expected packet asks for an answer. */
struct soft_refusal soft_answer_read(struct soft_qp *qp, const struct soft_packet *p);
struct soft_refusal soft_answer_atomic(struct soft_qp *qp, const struct soft_packet *p);
/* A duplicate does. What cannot be answered again is dropped without a word (class D). */
void soft_answer_read_again(struct soft_qp *qp, const struct soft_packet *p);
void soft_answer_atomic_again(struct soft_qp *qp, const struct soft_packet *p);
/* Sends answers; true: stopped for the budget. */
bool soft_answer_pump(struct soft_qp *qp, size_t *budget);

/* responder_bring.c: may the first answer be sent, as far as its bytes and what came before are
 * concerned? Sees to it that it may soon. */
bool soft_answer_is_here(struct soft_qp *qp);

/* As soft_regions_remote(), for the peer of @qp. */
static inline struct soft_region *soft_responder_reach(const struct soft_qp *qp, uint32_t key,
						       uint64_t *va, uint64_t len, uint32_t access)
{
	return soft_regions_remote(qp->regions, qp->pd, &qp->windows, key, va, len, access);
}

/* May the requester's GPU copy the answer from where it is? Then there is a loan for it. */
bool soft_responder_shows(struct soft_qp *qp, struct soft_region *region);

/* Packets that @bytes of a READ come in: at least one. */
static inline uint32_t soft_answer_packets(const struct soft_qp *qp, uint32_t bytes)
{
	return bytes ? (bytes - 1) / qp->attr.mtu + 1 : 1;
}

#endif
