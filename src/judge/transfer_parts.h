/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the verdict on a transfer: what its files share. transfer.c makes rows and judges the
 * run, transfer_pair.c a pair, transfer_rung.c one rung, transfer_margin.c its speed,
 * transfer_loss.c its counters, transfer_registration.c what the kernel says of its memory;
 * transfer_figure.c has the statistics, transfer_hop.c names what limits, transfer_cause.c asks the
 * known problems.
 */
#ifndef PP_JUDGE_TRANSFER_PARTS_H
#define PP_JUDGE_TRANSFER_PARTS_H

#include "base/compiler.h"
#include "judge/transfer.h"

enum { PP_TRANSFER_REPEATS = 3, PP_TRANSFER_ALSO = 3 };

/* What is known of one rung: the worst remark, and some of the others. */
struct pp_remarks {
	enum pp_verdict verdict;
	bool whole;   /* nothing but speed was remarked */
	bool unsound; /* wrong bytes, or keys not enforced: counts for every rung */
	bool moved;   /* some cell ran */
	bool gap;     /* a cell that host memory has is not there */
	bool refused; /* never registered */
	bool fabric;  /* host memory: the network, or what every transfer needs, is not good */
	const char *sentence, *hop, *counter, *cause, *next;
	const char *also[PP_TRANSFER_ALSO];
	unsigned int n_also;
	/* of the row */
	const char *mechanism, *witness, *seen;
	bool registered;
	enum pp_claim claim;
};

struct pp_transfer_case {
	const struct pp_bench *b;
	const struct pp_margins *margins;
	const struct pp_known_set *known;
	const struct pp_facts *facts;
	struct pp_transfer *t;
	struct pp_arena *arena; /* of @t */
	/* of the pair that is judged */
	unsigned int pair;
	const struct pp_bench_pair *p;
	bool simulated;			     /* some part of it is no hardware */
	const char *software;		     /* and that is this driver's, not marked; NULL */
	const struct pp_bench_cell **sorted; /* its cells in pp_cell_order() */
	struct pp_figure *figures;	     /* its part of @t's */
	struct pp_remarks rung[PP_RUNGS];
	uint64_t wins_from; /* direct beats staged; 0 never */
	bool never_wins;    /* of some pair */
};

/* What is only about speed of what is no hardware is said, and does not end a simulation. */
enum pp_remark_kind { PP_REMARK_SOUND, PP_REMARK_SPEED };

void pp_remark(struct pp_transfer_case *c, enum pp_rung rung, enum pp_verdict verdict,
	       enum pp_remark_kind kind, const char *next, const char *fmt, ...) PP_PRINTF(6, 7);

/* Cells with the same operation, measure, size and queue pairs stand together, by rung. */
int pp_cell_order(const void *a, const void *b); /* of const struct pp_bench_cell ** */
/* The cell of another rung that is like this one; NULL. */
const struct pp_bench_cell *pp_cell_like(const struct pp_transfer_case *c,
					 const struct pp_bench_cell *cell, enum pp_rung rung);
bool pp_cell_is_bandwidth(const struct pp_bench_cell *cell);
/* Bandwidth of a size that margins hold for, of the pair alone. */
bool pp_cell_is_judged(const struct pp_transfer_case *c, const struct pp_bench_cell *cell);

int pp_transfer_figures(struct pp_transfer_case *c, unsigned int *n); /* appends the pair's */
/* Bandwidth of the largest size, of the pair alone; NULL. */
const struct pp_figure *pp_figure_largest(const struct pp_transfer_case *c, enum pp_rung rung);
int pp_transfer_index(struct pp_transfer *t);
const struct pp_figure *pp_figure_of(const struct pp_transfer_case *c,
				     const struct pp_bench_cell *cell);

void pp_transfer_rung(struct pp_transfer_case *c, enum pp_rung rung);
void pp_transfer_registration(struct pp_transfer_case *c, enum pp_rung rung);
void pp_transfer_margins(struct pp_transfer_case *c, enum pp_rung rung);
/* The pair's own row, after all of its rungs. */
void pp_transfer_pair(struct pp_transfer_case *c, struct pp_transfer_row *row);
void pp_transfer_losses(struct pp_transfer_case *c, enum pp_rung rung);

/* MB/s of one direction of the narrowest hop that is known; *ret_name says which. 0: none. */
double pp_hop_narrowest(const struct pp_transfer_case *c, enum pp_rung rung, const char **ret_name);
/* The hop that keeps GPU memory at @mbytes while host memory reaches @host; never NULL. */
const char *pp_hop_of_gpu(const struct pp_transfer_case *c, double mbytes, double host);
const char *pp_end_name(const struct pp_transfer_case *c, unsigned int end);

struct pp_failure {
	const char *call; /* NULL: a completion, or not known */
	int error, status;
	bool cuda; /* error is a CUresult */
	const char *why;
	unsigned int end;
};
/* "EFAULT (14): Bad address", "status 12, transport retry counter exceeded"; "" for neither. */
const char *pp_failure_text(struct pp_transfer_case *c, const struct pp_failure *f);
/* Best known problem for what failed; NULL. *ret_next: its deciding command. */
const char *pp_transfer_cause(struct pp_transfer_case *c, enum pp_rung rung,
			      const struct pp_failure *f, const char **ret_next);

const char *pp_size_text(struct pp_arena *a, uint64_t bytes); /* "4 MiB" */

#endif
