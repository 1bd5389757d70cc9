/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator of `nccl perf` from inside. Private to nccl/perf*.c. */
#ifndef PP_NCCL_PERF_STATE_H
#define PP_NCCL_PERF_STATE_H

#include <jansson.h>

#include "nccl/perf.h"

struct pp_perf_seat {
	struct pp_channel *channel; /* owned; NULL: left */
	json_t *answer;		    /* owned: to the last order */
	bool waits;
	bool lost, failed; /* its channel ended; it refused */
	char why[600];
	uint64_t logged; /* bytes of its log told so far */
};

struct pp_perf_course {
	struct pp_party *party;
	struct pp_perf *p;
	const struct pp_perf_watch *watch;
	struct pp_perf_seat *seat;
	unsigned int n;
	pp_ns end; /* of everything; INT64_MAX */
	uint64_t salt;
	pp_ns looked;
	double *first_offset; /* of each rank, by the first exchange */
};

/* Begins an order's object. */
void pp_perf_order_begin(struct pp_json *j, struct pp_buf *text, const char *what);
/*
 * Ends the object and sends it to seat @only, or to all (-1), and waits for the answers. Not 0: a
 * rank refused, was lost or said nothing in time, or the run was stopped; @err names the rank that
 * did first, and what it was about. The other ranks' answers are waited for a moment only.
 */
int pp_perf_order(struct pp_perf_course *c, struct pp_json *j, struct pp_buf *text, int only,
		  pp_ns limit, const char *doing, struct pp_error *err);
/* Of several texts: one to each rank, then one wait for all that were sent. */
void pp_perf_send(struct pp_perf_course *c, unsigned int i, const char *text, size_t len);
int pp_perf_await(struct pp_perf_course *c, pp_ns limit, const char *doing, struct pp_error *err);
/* What a seat answered: a number between 0 and 2^62 (0 else), a text in the arena (NULL else). */
int64_t pp_perf_answer(const struct pp_perf_seat *s, const char *key);
const char *pp_perf_answer_text(struct pp_perf_course *c, const struct pp_perf_seat *s,
				const char *key);

/* perf_begin.c: agents, libraries, GPUs, communicator. */
int pp_perf_begin(struct pp_perf_course *c, struct pp_error *err);
/* Compares clocks; @again: how far they went since the first time is added to the error. */
int pp_perf_clocks(struct pp_perf_course *c, bool again, struct pp_error *err);
/* perf_size.c: one size of a collective. */
int pp_perf_size(struct pp_perf_course *c, struct pp_perf_run *run, uint64_t bytes,
		 struct pp_perf_row *row, struct pp_error *err);
int pp_perf_warm(struct pp_perf_course *c, enum pp_collective collective, struct pp_error *err);

#endif
