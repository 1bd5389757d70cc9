/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_climb: a run while it goes on. Private to bench/coordinator*.c.
 *
 *   look ── ends ── pairs ── for each group of pairs: open rungs, cells, negatives, close
 *
 * A group is one pair (alone), or all that go at once (together). A step that fails marks the rung
 * or cell of its pair and goes on; only @over ends the run.
 */
#ifndef PP_BENCH_COORDINATOR_STATE_H
#define PP_BENCH_COORDINATOR_STATE_H

#include "bench/coordinator.h"
#include "bench/orders.h"

enum { PP_CLIMB_REPEATS = 1000, PP_CLIMB_LATENCIES = 1 << 18, PP_CLIMB_NAMES = 512 };

/* What a cell gathers while its repeats go on, besides its samples. */
struct pp_gathering {
	struct pp_bench_cell *cell; /* NULL: this pair has none */
	uint64_t messages;	    /* of one repeat */
	pp_ns expected;		    /* that it takes */
	double *latency;	    /* us, owned */
	size_t n_latency;
	double median; /* of the last repeat */
	double skew[PP_CLIMB_REPEATS];
	unsigned int n_skew;
	double cpu[2]; /* seconds */
};

struct pp_climber { /* a pair at work */
	struct pp_bench_pair *pair;
	unsigned int round;
	bool alone, together;	/* is measured so */
	const char *address[2]; /* for TCP; NULL none */
	int numa[2];
	bool peermem_absent[2];
	bool sim;	    /* no GPU at an end, and simulated: sim memory stands for it */
	const char *no_gpu; /* why there are no GPU rungs; NULL */
	struct pp_seat seat[PP_RUNGS][2];
	bool looked[PP_RUNGS][2]; /* at its registration, from outside */
	struct pp_gathering now[PP_RUNGS];
};

/* How much later than the first a node was ready, each time. */
struct pp_lateness {
	double *us; /* owned */
	unsigned int n, room;
};

struct pp_climb {
	struct pp_party *party;
	const struct pp_bench_options *o;
	struct pp_bench *b;
	struct pp_climber *climber; /* n of them, as b->pairs */
	unsigned int n;
	json_t **look;	     /* of each node */
	uint64_t seed, turn; /* of payload */
	unsigned int done, all;
	pp_ns end;			  /* when the time is up */
	bool over;			  /* nothing more is begun */
	pp_ns looked;			  /* for nodes that are gone */
	struct pp_lateness *late;	  /* of each node */
	const char *name[PP_CLIMB_NAMES]; /* of counters */
	unsigned int n_names;
};

struct pp_group {
	struct pp_climber *const *member;
	unsigned int n;
	bool together;
};

/* Ends the run: what is not begun will say @why. The first reason stays. */
void pp_climb_end(struct pp_climb *c, const char *why);
/* pp_orders_do() of this run: being told to stop ends it, and so does a node that is gone. */
int pp_climb_do(struct pp_climb *c, struct pp_order *o, unsigned int n, pp_ns limit);
/* Is this run over by now (told to stop, time used up)? */
bool pp_climb_over(struct pp_climb *c);

/* A text of an agent's answer, made safe, in the run's arena; NULL when it is none. */
const char *pp_climb_text(struct pp_climb *c, const json_t *object, const char *key);
int64_t pp_climb_number(const json_t *object, const char *key, int64_t otherwise);
/* What counts something: 0 for what is no number of that kind. */
uint64_t pp_climb_amount(const json_t *object, const char *key);
/* A code or index: 0 to 65535, 0 for anything else. */
int pp_climb_code(const json_t *object, const char *key);

/* Nodes and pairs. -ENODEV, -EBUSY, -EFBIG... : nothing can begin. */
int pp_climb_look(struct pp_climb *c, struct pp_error *err);

/* All rungs that were asked for, of one pair; what cannot be says why. */
void pp_climb_open(struct pp_climb *c, struct pp_climber *m);
void pp_climb_close(struct pp_climb *c, struct pp_climber *m);
/* What the nodes' kernels show of the memory of rungs that nobody has looked at yet. */
void pp_climb_trace(struct pp_climb *c, struct pp_climber *m);
bool pp_rung_is_open(const struct pp_climber *m, enum pp_rung r);
void pp_rung_fail(struct pp_climb *c, struct pp_climber *m, enum pp_rung r,
		  const struct pp_order *o, unsigned int end);
/* Both ends, with what the other's @answers say (of open or reset). */
bool pp_climb_connect(struct pp_climb *c, struct pp_climber *m, enum pp_rung r,
		      json_t *const answer[2], struct pp_order ret[2]);

/* One operation, measure and size on all open rungs, repeats interleaved. */
void pp_climb_cells(struct pp_climb *c, const struct pp_group *g, enum pp_operation op,
		    enum pp_measure measure, uint64_t size);
/* One repeat of a rung. @measured false: only to learn how fast it is. */
void pp_climb_repeat(struct pp_climb *c, const struct pp_group *g, enum pp_rung r, bool measured);
/* What a repeat found goes into its cell. */
int64_t pp_climb_seed(struct pp_climb *c);
void pp_climb_sample(struct pp_gathering *g, double mbytes);
void pp_climb_take_latencies(struct pp_gathering *g, const json_t *list);
void pp_climb_count(struct pp_climb *c, struct pp_bench_cell *cell, unsigned int end,
		    const char *name, int64_t delta);
/* A node was so many us behind the first to be ready; the median is the node's in the end. */
void pp_climb_note_late(struct pp_climb *c, unsigned int node, double late);
void pp_climb_end_late(struct pp_climb *c);
/* Room for a pair's cells. */
unsigned int pp_climb_cells_of(const struct pp_bench_options *o);

void pp_climb_negative(struct pp_climb *c, struct pp_climber *m);
void pp_climb_witness(struct pp_climb *c, struct pp_climber *m);

#endif
