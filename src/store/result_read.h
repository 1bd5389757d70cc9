/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading of members, and a file for each kind of document: private to store/result*.c.
 *
 * The first fault is kept; what is read behind it is empty, so that callers look once.
 */
#ifndef PP_STORE_RESULT_READ_H
#define PP_STORE_RESULT_READ_H

#include "store/result.h"

struct pp_reading {
	struct pp_result *r;
	struct pp_error *err;
	int failed; /* negative errno; err is set */
};

void pp_reading_refuse(struct pp_reading *in, int code, const char *what, const char *why);
/* Cut, without control bytes; NULL when absent or null. Another type is refused. */
const char *pp_reading_text(struct pp_reading *in, const json_t *from, const char *key);
bool pp_reading_truth(struct pp_reading *in, const json_t *from, const char *key);
/* NaN when absent or null. */
double pp_reading_number(struct pp_reading *in, const json_t *from, const char *key);
/* -1 when absent or null. */
int64_t pp_reading_count(struct pp_reading *in, const json_t *from, const char *key);
/* An array, or NULL: absent, null, or too long (refused). */
const json_t *pp_reading_list(struct pp_reading *in, const json_t *from, const char *key,
			      size_t most);
bool pp_reading_verdict(struct pp_reading *in, const json_t *from, const char *key,
			enum pp_verdict *ret);
const char *pp_reading_printf(struct pp_reading *in, const char *fmt, ...) PP_PRINTF(2, 3);

/* One more of each; NULL behind a fault, or when there are too many (refused). */
struct pp_result_node *pp_reading_add_node(struct pp_reading *in);
struct pp_result_figure *pp_reading_add_figure(struct pp_reading *in);
struct pp_result_gain *pp_reading_add_gain(struct pp_reading *in);
void pp_reading_add_part(struct pp_reading *in, struct pp_result_node *n, const char *kind,
			 const char *id);
void pp_reading_add_fact(struct pp_reading *in, struct pp_result_node *n, const char *key,
			 const char *value);

/* Members of each kind. @doc is an object. */
void pp_result_prove(struct pp_reading *in, const json_t *doc);
void pp_result_bench(struct pp_reading *in, const json_t *doc);
void pp_result_nccl_run(struct pp_reading *in, const json_t *doc);
/* Object "gate" of nccl_run, "library" of prove; size of the messages, -1 not known. */
void pp_result_nccl_gain(struct pp_reading *in, const json_t *gate, const json_t *runs);
void pp_result_canary(struct pp_reading *in, const json_t *doc);
void pp_result_comparison(struct pp_reading *in, const json_t *doc);
/* Object "application" of prove: of the result's first node. */
void pp_result_application(struct pp_reading *in, const json_t *doc);
/* Array "facts" of a node's evidence records. */
void pp_result_facts(struct pp_reading *in, const json_t *facts, struct pp_result_node *n);

#endif
