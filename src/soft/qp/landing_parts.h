/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a landing among themselves: landing.c has the queue and its order, landing_store.c
 * takes in bytes.
 */
#ifndef SOFT_QP_LANDING_PARTS_H
#define SOFT_QP_LANDING_PARTS_H

#include "soft/qp/landing.h"

enum { SOFT_LOANS_MAX = 4 }; /* records of one copy */

enum soft_effect_kind {
	SOFT_EFFECT_GATHERS, /* staging that is being filled, or loans */
	SOFT_EFFECT_COPY,    /* its copy is under way */
	SOFT_EFFECT_COPIED,
	SOFT_EFFECT_KEPT, /* bytes for host memory */
	SOFT_EFFECT_END,
};

struct soft_effect {
	struct soft_copy copy; /* first */
	struct soft_effect *next;
	struct soft_landing *landing; /* NULL: nobody waits for the copy any more */
	struct soft_mover *mover;
	enum soft_effect_kind kind;
	uint32_t key;	    /* the region's own */
	uint64_t va;	    /* there */
	uint32_t len, room; /* bytes; of staging */
	const uint8_t *at;
	bool staged;		/* @at is staging, of @room */
	bool brought;		/* to staging by a copy, and from there to host memory */
	unsigned int num_loans; /* 0: the bytes are in staging */
	struct soft_loan loans[SOFT_LOANS_MAX];
	uint32_t psn, msn; /* of the packet that began it; messages before it */
	bool stale;
	struct soft_landed end;
};

/* In no list. NULL: no memory. */
struct soft_effect *soft_effect_new(struct soft_landing *landing, enum soft_effect_kind kind,
				    size_t extra);
/* To the end of the queue; one that gathers is in the mover's list from now on. */
void soft_effect_push(struct soft_landing *landing, struct soft_effect *effect);
/* What its copy calls when it is done. */
void soft_effect_copied(struct soft_copy *copy);
/* The last one gathers no more: its bytes are copied to staging. */
void soft_landing_fetch(struct soft_landing *landing);
/* Whatever can have its effect now has it. */
void soft_landing_advance(struct soft_landing *landing);

#endif
