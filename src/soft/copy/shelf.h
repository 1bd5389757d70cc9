/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shelf: staging for bytes on their way out (staging.h) that other processes of this host may
 * take from where they lie. Its memory is a memfd that can neither shrink nor grow; where the
 * kernel can, nobody but its maker may map it for writing either.
 *
 *   | SOFT_SHELF_BYTES: segments of staging | a generation for each unit, and each loan |
 *
 * A *generation* counts how often a unit was given back: as long as it is the one that a reference
 * came with, the bytes are what was sent. Who takes bytes looks before and after.
 *
 * struct soft_shelf is its maker's end, struct soft_shelf_view a reader's. A reader believes
 * nothing: offsets are checked against the mapping, which is for reading only. What the maker does
 * to the bytes meanwhile is his own message's loss. A device copies from a segment that was
 * page-locked for it; the processor copies, too, where the target is its memory. All of it is under
 * the engine's lock.
 */
#ifndef SOFT_COPY_SHELF_H
#define SOFT_COPY_SHELF_H

#include <stdatomic.h>

#include "soft/copy/import.h"
#include "soft/copy/mover.h"
#include "soft/copy/source.h"

enum {
	SOFT_SHELF_BYTES = SOFT_STAGING_SEGMENTS * SOFT_STAGING_SEGMENT,
	SOFT_SHELF_UNITS = SOFT_SHELF_BYTES / SOFT_STAGING_UNIT,
	SOFT_SHELF_LOANS = 8192,    /* units of no bytes: for what is lent and lies elsewhere */
	SOFT_SHELF_TAIL = 64 << 10, /* generations; a multiple of any page */
	/* Segments page-locked for one copier at most, however many come: 1 GiB. */
	SOFT_SHELF_PINNED = 128,
};

struct soft_shelf {
	int fd; /* to be given to readers */
	uint8_t *bytes;
	_Atomic uint32_t *generations;
	uint16_t *free_loans;
	unsigned int num_free;
};

/* Makes memory of which nothing takes room until it is touched. -errno. */
int soft_shelf_make(struct soft_shelf *shelf);
void soft_shelf_done(struct soft_shelf *shelf); /* one that was never made is fine */
/* The generation of @len bytes at @at, which are given back together; 0: they lie elsewhere. */
uint32_t soft_shelf_generation(const struct soft_shelf *shelf, const void *at, size_t len);

/* A loan of bytes that are not on the shelf (import.h): a number from 1 on; 0: there is none. */
uint32_t soft_shelf_loan_take(struct soft_shelf *shelf);
/* It is over: who looks from now on finds another generation. */
void soft_shelf_loan_give(struct soft_shelf *shelf, uint32_t loan);
uint32_t soft_shelf_loan_generation(const struct soft_shelf *shelf, uint32_t loan);
/* Its unit; false: no such loan can be. */
bool soft_shelf_loan_of(uint32_t loan, unsigned int *ret_unit);

enum soft_shelf_state {
	SOFT_SHELF_UNASKED,
	SOFT_SHELF_ASKED,
	SOFT_SHELF_LOCKED,
	SOFT_SHELF_REFUSED,
};

struct soft_shelf_view;

struct soft_shelf_segment {
	struct soft_copy pin; /* first */
	struct soft_shelf_view *view;
	struct soft_copier *copier;
	enum soft_shelf_state state;
};

struct soft_shelf_view {
	unsigned int users; /* a lane, copies under way, page-lockings asked for */
	const uint8_t *bytes;
	const _Atomic uint32_t *generations;
	uint64_t at; /* the maker's address of it, as he says */
	int error;   /* -errno of the page-locking that was refused last */
	struct soft_import *imports[SOFT_EXPORTS_MAX]; /* by the place of their number */
	soft_import_answer *answer;		       /* NULL: nobody waits for it any more */
	void *answer_arg;
	struct soft_shelf_segment segments[SOFT_STAGING_SEGMENTS];
};

/* Maps what somebody else made, at @at in his process. -EPROTO: it is of another size, could
 * shrink, or is no ordinary memory. Does not take @fd. */
int soft_shelf_look(int fd, uint64_t at, struct soft_shelf_view **ret);
void soft_shelf_view_get(struct soft_shelf_view *view);
/* The last user unmaps it, after its page-locks are gone. */
void soft_shelf_view_put(struct soft_shelf_view *view);

/* @len bytes from @skip on of what the maker has at @addr, of that generation there, for a copy by
 * @copier. false: not there, not page-locked (it is asked for), or given back. */
bool soft_shelf_lend(struct soft_shelf_view *view, uint64_t addr, uint32_t generation,
		     uint32_t skip, uint32_t len, struct soft_copier *copier,
		     struct soft_loan *ret);
/* The same for the processor: nothing has to be page-locked. */
bool soft_shelf_see(struct soft_shelf_view *view, uint64_t addr, uint32_t generation, uint32_t skip,
		    uint32_t len, struct soft_loan *ret);
/* Are they still what was lent? After a copy: behind the event that says it is over. */
bool soft_loan_good(const struct soft_loan *loan);

#endif
