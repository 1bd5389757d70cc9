/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of struct pp_explain, for the files that fill and rank it.
 */
#ifndef PP_JUDGE_EXPLAIN_STATE_H
#define PP_JUDGE_EXPLAIN_STATE_H

#include "judge/derived.h"
#include "judge/explain.h"
#include "judge/wrapped.h"

/* A complaint, and the problems whose lines fit it: they may still drop out. */
struct pp_complaint {
	struct pp_seen_line seen;
	unsigned int owners[PP_KNOWN_NAMES];
	unsigned int n_owners;
};

struct pp_explain {
	const struct pp_known_set *known;
	struct pp_lines *lines;
	struct pp_hits *hits;
	struct pp_fields *fields;
	struct pp_seen_line *seen;    /* by signature; times 0: never */
	uint64_t *stamp;	      /* by signature: number of the line that it was tested on */
	struct pp_shape_fits *shapes; /* of lines that were read */
	char (*driver)[32];	      /* by problem: driver that its first line names */
	struct pp_complaint complaints[4 * PP_UNEXPLAINED];
	unsigned int n_complaints;
	struct pp_seen_line word; /* a line that reads like an error, and fits nothing */
	uint64_t more_complaints; /* beyond those, with nothing that fits */
	struct pp_wrapped wrapped;
	struct pp_derived derived;
	struct pp_components components;
	uint64_t announced; /* line after which a quoted warning follows; 0 none */
	uint64_t frame;	    /* line that was a frame of a Python traceback; 0 none */
	uint64_t n_lines, n_bytes, tested;
	bool ended, here;
};

/* Reads a line; @arg is a struct pp_explain. */
void pp_explain_line(void *arg, const char *text, size_t len, uint64_t number);
/* Ends the lines that may be one, and reads them as that. */
void pp_explain_joined(struct pp_explain *e);
/* The candidates with their certainty, unranked; also called once per problem. */
bool pp_explain_candidate(const struct pp_explain *e, const struct pp_known *k,
			  const struct pp_facts *facts, struct pp_diagnosis *ret);
/* Beaten ones out, certainty where causes compete, consequences, order. -ENOMEM. */
int pp_explain_rank(const struct pp_explain *e, struct pp_diagnosis *list, size_t *n);

/* The earliest line that fits the clue; NULL none. */
const struct pp_seen_line *pp_explain_seen(const struct pp_explain *e, const struct pp_clue *clue);

#endif
