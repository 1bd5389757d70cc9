/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_transfer: the verdict of gate 2 on a run of `bench`. Pure on the run, the margins, and
 * known problems.
 *
 *   host unstable or bad        fail: the fabric; GPU memory is not judged
 *   host good, GPU fails        fail: registration; the cause from errno, call and facts
 *   both bad alike              fail or degraded, and not the registration
 *   GPU well below host         degraded, the hop named (the narrowest that fits the figure)
 *   throttled GPU               void: unknown
 *   another registration than   fail where the kernel proves host memory, degraded where it proves
 *   was asked for               another way of GPU memory. It never makes a verdict better: that a
 *                               way is what its name says is proven by the kernel's records alone,
 *                               and our own word for it is a measurement
 *   nothing that is no hardware passes; a simulated run is `simulation: passed | failed`, one on
 *   software in the kernel (rxe) `unknown`
 */
#ifndef PP_JUDGE_TRANSFER_H
#define PP_JUDGE_TRANSFER_H

#include "base/statistics.h"
#include "bench/result.h"
#include "judge/known.h"

/* DESIGN 3.4; policy.conf [transfer]; printed with the verdict. */
struct pp_margins {
	double spread;	 /* of repeats, of the median: 0.05 */
	double gpu_host; /* GPU/host bandwidth, least: 0.90 */
	double hop;	 /* of the narrowest hop, least: 0.70 */
	uint64_t from;	 /* sizes that these hold for, bytes: 1 MiB */
};

extern const struct pp_margins pp_margins_default;

/* Statistics of one cell that has samples, beside the same cell of other rungs. */
struct pp_figure {
	unsigned int pair;
	const struct pp_bench_cell *cell; /* borrowed from the run */
	double median, spread;		  /* MB/s, or us; NaN */
	struct pp_interval interval;	  /* of the median, 95 % */
	double host; /* to host memory's, repeat by repeat: bandwidth, or latency; NaN */
	struct pp_interval host_interval;
	double staged; /* of a direct way to staged; NaN */
	struct pp_interval staged_interval;
	double hop; /* bandwidth to the narrowest hop that is known; NaN */
};

struct pp_transfer_row { /* of one pair and rung, or of one pair (rung PP_RUNGS) */
	unsigned int pair;
	enum pp_rung rung;
	enum pp_verdict verdict;
	bool exercised;	      /* a simulation: all of it ran, with right bytes, however fast */
	const char *sentence; /* what may be said */
	const char *hop;      /* that limits; NULL */
	const char *counter;  /* of loss, that grew; NULL */
	const char *cause;    /* id of a known problem; NULL */
	const char *next;     /* one command; NULL for pass */
	/* DESIGN's words, of a pair that of its best way; "n/a" for what is no way of GPU memory.
	 */
	const char *mechanism;
	bool registered;     /* so that the next say something */
	enum pp_claim claim; /* that the memory is registered as the way is called */
	const char *witness; /* of that claim: "kernel", else "measurement": our own; "library" */
	const char *seen;    /* "kernel, at both ends: dmabuf (bufinfo; nv_dmabuf)"; NULL */
};

struct pp_transfer {
	enum pp_verdict verdict; /* worst pair; never pass for what is no hardware */
	bool simulated, passed;	 /* simulated: whether the simulation passed */
	const char *software;	 /* not simulated, yet no hardware: "rdma_rxe"; NULL */
	const char *sentence;
	const char *next; /* of the worst row; NULL for pass */
	struct pp_transfer_row *rows;
	unsigned int n_rows; /* of each pair: itself, then its rungs in the ladder's order */
	struct pp_figure *figures;
	unsigned int n_figures;		  /* in the order of the cells */
	const struct pp_figure **by_cell; /* for pp_transfer_figure() */
	double gpu_host, direct_staged;	  /* at the largest size, worst pair; NaN */
	uint64_t direct_wins_from;	  /* least size from which direct beats staged; 0 none */
	struct pp_arena arena;
};

/*
 * @known NULL: causes are not looked for. @facts of the node that failed first, or NULL. @ret
 * borrows from @b and @known. -ENOMEM.
 */
int pp_transfer_judge(const struct pp_bench *b, const struct pp_margins *margins,
		      const struct pp_known_set *known, const struct pp_facts *facts,
		      struct pp_transfer *ret);
void pp_transfer_done(struct pp_transfer *t);
/* As objects: "transfer": {"verdict", "sentence", "margins", "rows", "figures", ...}. */
void pp_transfer_write(struct pp_json *j, const char *key, const struct pp_transfer *t,
		       const struct pp_margins *margins);

/* "pass", "simulation: passed", ...: the word that a person reads. */
const char *pp_transfer_word(const struct pp_transfer *t);
const char *pp_transfer_row_word(const struct pp_transfer *t, const struct pp_transfer_row *row);
/* The figure of a cell; NULL when it has none. */
const struct pp_figure *pp_transfer_figure(const struct pp_transfer *t,
					   const struct pp_bench_cell *cell);
bool pp_rung_is_direct(enum pp_rung r); /* the NIC reaches GPU memory itself */

#endif
