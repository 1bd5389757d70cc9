/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_fault_spec: one fault as a person writes it, NOUN=VALUE[@WHEN]. Pure: the one parser
 * of descriptions (key `fault`), of `peerpath soft fault` and of what a process is told at run
 * time.
 *
 *   calls     reg_mr=ENOMEM@3              the third from now on fails
 *   packets   loss=ack@1  loss=1%          the next acknowledge; one in a hundred, by seed
 *   delay     delay=5ms~2ms@10%
 *   states    port=down  gid=off:0  qp=fatal  device=removed  cq_depth=4 ...
 *
 * WHEN counts what matches, from the moment that the fault was set: N, N..M, N.., /N (each N-th),
 * P% (by seed); several may be joined by further "@". NOUN=off takes all faults of the noun away.
 */
#ifndef SOFT_FAULT_SPEC_H
#define SOFT_FAULT_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "soft/wire/gid.h"

enum {
	SOFT_FAULT_TEXT_MAX = 96, /* of one fault, with its end */
	SOFT_FAULTS_MAX = 32,	  /* of one device at a time */
	SOFT_FAULT_MILLION = 1000000,
};

/* The order is that of the table in spec.c: calls, fates of packets, the rest. */
enum soft_fault_noun {
	SOFT_FAULT_OPEN_DEVICE,
	SOFT_FAULT_ALLOC_PD,
	SOFT_FAULT_REG_MR,
	SOFT_FAULT_REG_DMABUF_MR,
	SOFT_FAULT_ALLOC_MW,
	SOFT_FAULT_CREATE_CQ,
	SOFT_FAULT_CREATE_SRQ,
	SOFT_FAULT_CREATE_QP,
	SOFT_FAULT_CREATE_AH,
	SOFT_FAULT_MODIFY_QP, /* to whatever state, or to none */
	SOFT_FAULT_MODIFY_QP_RESET,
	SOFT_FAULT_MODIFY_QP_INIT,
	SOFT_FAULT_MODIFY_QP_RTR,
	SOFT_FAULT_MODIFY_QP_RTS,
	SOFT_FAULT_MODIFY_QP_SQD,
	SOFT_FAULT_MODIFY_QP_SQE,
	SOFT_FAULT_MODIFY_QP_ERR,
	SOFT_FAULT_POST_SEND,
	SOFT_FAULT_POST_RECV,
	SOFT_FAULT_CALLS,

	SOFT_FAULT_LOSS = SOFT_FAULT_CALLS,
	SOFT_FAULT_DUPLICATE,
	SOFT_FAULT_REORDER,
	SOFT_FAULT_CORRUPT,
	SOFT_FAULT_ECN,
	SOFT_FAULT_DELAY,
	SOFT_FAULT_SPOIL,
	SOFT_FAULT_FATES_END,

	SOFT_FAULT_PARTITION = SOFT_FAULT_FATES_END,
	SOFT_FAULT_PARTITION_IN,
	SOFT_FAULT_PARTITION_OUT,
	SOFT_FAULT_BANDWIDTH,
	SOFT_FAULT_SEED,
	SOFT_FAULT_WIRE_END,

	SOFT_FAULT_PORT = SOFT_FAULT_WIRE_END,
	SOFT_FAULT_GID,
	SOFT_FAULT_QP,
	SOFT_FAULT_DEVICE,
	SOFT_FAULT_CQ_DELAY,
	SOFT_FAULT_CQ_DEPTH,
	SOFT_FAULT_NOUNS,
};

/* Which of those that match are meant. Zeroed it means none: soft_fault_when_all. */
struct soft_fault_when {
	uint64_t first, last; /* counted from 1; last UINT64_MAX: no end */
	uint64_t every;	      /* 1: each */
	uint32_t ppm;	      /* SOFT_FAULT_MILLION: always */
};
extern const struct soft_fault_when soft_fault_when_all;

/* Is the @nth that matches meant? @random: 32 bits of the seed's. */
bool soft_fault_when_fires(const struct soft_fault_when *when, uint64_t nth, uint32_t random);

/* Which packets: by opcode and, of acknowledges, by kind. */
enum { SOFT_FAULT_ACK = 1, SOFT_FAULT_RNR = 2, SOFT_FAULT_NAK = 4 };
struct soft_fault_which {
	uint64_t opcodes[4];
	uint8_t acks;
};
bool soft_fault_which_is(const struct soft_fault_which *which, uint8_t opcode, uint8_t syndrome);

struct soft_fault_spec {
	char text[SOFT_FAULT_TEXT_MAX]; /* as written */
	enum soft_fault_noun noun;
	bool off; /* take away */
	struct soft_fault_when when;
	struct soft_fault_which which; /* packets */
	int error;		       /* calls: a positive errno */
	bool all;		       /* PARTITION: every address; QP: every queue pair */
	struct soft_gid address;       /* PARTITION */
	/*
	 * DELAY, CQ_DELAY: ns, and how much may be added. BANDWIDTH: bits a second. SEED. QP: its
	 * number. CQ_DEPTH: completions. PORT, DEVICE: 1 down, removed; 0 up. GID: the index, and
	 * the one that it changes places with; the same: on; UINT64_MAX: off.
	 */
	uint64_t number, more;
};

/* @text is one fault, without blanks. -EINVAL and what is wrong in @err. */
int soft_fault_spec_parse(const char *text, struct soft_fault_spec *ret, struct pp_error *err);

/* Several, between blanks. Calls @each with every one; stops at what is no fault, or what it
 * returns. */
int soft_fault_specs_parse(const char *text,
			   int (*each)(void *arg, const struct soft_fault_spec *spec,
				       struct pp_error *err),
			   void *arg, struct pp_error *err);

const char *soft_fault_noun_name(enum soft_fault_noun noun);

#endif
