/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of one run in "peerpath.nccl_run/1" as one table: run_write.c and run_read.c both
 * walk it, so that what is written can be read back.
 *
 * All members must be there: one that is taken out must not read as "none". What is not known is
 * null: a text, a number of type _OR, and what stands behind a guard (a bool of the same object
 * that says whether it is known, and is not written itself).
 */
#ifndef PP_NCCL_RUN_FIELDS_H
#define PP_NCCL_RUN_FIELDS_H

#include "nccl/run.h"

enum pp_run_type {
	PP_RUN_STR,   /* char[size]; "" is null */
	PP_RUN_KNOWN, /* the same char[size], a reason; as a bool: there is none. Stands behind it
		       */
	PP_RUN_BOOL,
	PP_RUN_U32,
	PP_RUN_U32_OR, /* 0 is null */
	PP_RUN_U64,
	PP_RUN_U64_OR,	  /* 0 is null */
	PP_RUN_I64,	  /* of pp_ns too; never negative */
	PP_RUN_INT,	  /* never negative */
	PP_RUN_DOUBLE,	  /* never negative */
	PP_RUN_DOUBLE_OR, /* 0 is null */
	PP_RUN_BYTES,	  /* double; a whole number in the document */
	PP_RUN_WORD,	  /* an enum: @words */
	PP_RUN_OBJECT,	  /* of @of, in place */
	PP_RUN_EACH,	  /* an element of @of for each of @words, in place */
	PP_RUN_LIST,	  /* elements of @of, in place; at most @size, uint32_t at @count */
	PP_RUN_OWNED,	  /* a pointer to them */
};

struct pp_run_words {
	const char *(*name)(unsigned int);
	unsigned int n;
};

struct pp_run_table;

struct pp_run_field {
	const char *key;
	enum pp_run_type type;
	size_t at, size, count;
	size_t guard; /* offset of the bool and 1; 0 none */
	const struct pp_run_words *words;
	const struct pp_run_table *of;
};

struct pp_run_table {
	const struct pp_run_field *field;
	unsigned int n;
	size_t size; /* of the object */
};

extern const struct pp_run_table pp_run_table; /* of struct pp_nccl_run */

#endif
