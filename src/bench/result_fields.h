/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of "peerpath.bench/1" as one table: result_write.c and result_read.c both walk it,
 * so that what is written can be read back.
 *
 * Types with _OR have a value that means "unknown": null in the document, and what is read where
 * an older document has no such member. All others must be there: a missing `wrong_bytes` or
 * `simulated` must not read as none and no.
 */
#ifndef PP_BENCH_RESULT_FIELDS_H
#define PP_BENCH_RESULT_FIELDS_H

#include "bench/result.h"

enum pp_field_type {
	PP_FIELD_STR, /* const char *; NULL is null */
	PP_FIELD_BOOL,
	PP_FIELD_UINT, /* unsigned int */
	PP_FIELD_U64,
	PP_FIELD_INT,
	PP_FIELD_INT_OR,      /* -1 is null */
	PP_FIELD_I64,	      /* of pp_ns too */
	PP_FIELD_I64_OR,      /* -1 is null */
	PP_FIELD_TIME_OR,     /* pp_ns since the epoch, seconds of it; 0 is null */
	PP_FIELD_DOUBLE_OR,   /* NaN is null */
	PP_FIELD_DOUBLE_ZERO, /* 0 is null */
	PP_FIELD_WORD,	      /* an enum: @words */
	PP_FIELD_SAMPLES,     /* double * and its count; key by the cell's measure */
	PP_FIELD_LIST,	      /* pointer to elements of @of, and their count */
	PP_FIELD_LIST_OR,     /* the same; none where the document has no such member */
	PP_FIELD_TWO,	      /* two elements of @of, in place */
	PP_FIELD_RUNGS,	      /* PP_RUNGS elements of @of, in place, each by its word */
	PP_FIELD_DOUBLES_OR,  /* double[2] */
	PP_FIELD_I64S_OR,     /* int64_t[2] */
	PP_FIELD_STRS,	      /* const char *[2] */
	PP_FIELD_STRS_OR,     /* the same; older documents have none */
};

struct pp_field_words {
	const char *(*name)(unsigned int);
	unsigned int n;
};

struct pp_field_table;

struct pp_result_field {
	const char *key;
	enum pp_field_type type;
	size_t at, count; /* offsets; @count of an unsigned int */
	const struct pp_field_words *words;
	const struct pp_field_table *of;
	unsigned int max; /* of a list */
};

struct pp_field_table {
	const struct pp_result_field *field;
	unsigned int n;
	size_t size; /* of the object */
};

extern const struct pp_field_table pp_result_table;    /* of struct pp_bench */
extern const struct pp_field_table pp_result_evidence; /* of struct pp_bench_evidence */

/* "samples_us" or "samples_mb_per_s". */
const char *pp_result_samples_key(const struct pp_bench_cell *cell);

#endif
