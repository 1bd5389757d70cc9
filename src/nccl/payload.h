/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_payload: the elements that a rank sends, or that a result must have, as a table that
 * repeats: element i of a buffer is entry i modulo PP_PAYLOAD_PERIOD. Pure.
 *
 * The period is a prime, so that what lands in another chunk, channel or rank's part (powers of two
 * apart) is seen. Values are small whole numbers, chosen so that every sum on the way is exact in
 * the element's format, in whatever order it is made: a result is right in every bit or wrong.
 * No value has all bits set: PP_PAYLOAD_POISON is never right.
 */
#ifndef PP_NCCL_PAYLOAD_H
#define PP_NCCL_PAYLOAD_H

#include "base/error.h"
#include "nccl/collective.h"

enum { PP_PAYLOAD_PERIOD = 65521, PP_PAYLOAD_POISON = 0xff };

struct pp_payload_kind {
	enum pp_element element;
	bool reduced; /* values are for @reduction of @ranks; else they are moved only */
	enum pp_reduction reduction;
	unsigned int ranks;
	uint64_t salt; /* another table for each check */
};

struct pp_payload {
	uint8_t *table;	   /* owned */
	unsigned int size; /* bytes of an element */
};

/* -EOPNOTSUPP: there is no exact one for so many ranks; @err says so. */
int pp_payload_possible(const struct pp_payload_kind *k, struct pp_error *err);
/* What @rank sends. -ENOMEM. */
int pp_payload_of_rank(const struct pp_payload_kind *k, unsigned int rank, struct pp_payload *ret);
/* What the reduction of all ranks' gives. -ENOMEM. */
int pp_payload_reduced(const struct pp_payload_kind *k, struct pp_payload *ret);
void pp_payload_done(struct pp_payload *p);

/* Elements @first to @first + @count, into or beside @at. */
void pp_payload_write(const struct pp_payload *p, uint64_t first, uint64_t count, void *at);
/* How many are wrong; the first such in *ret_first when there is one. */
uint64_t pp_payload_compare(const struct pp_payload *p, uint64_t first, uint64_t count,
			    const void *at, uint64_t *ret_first);

#endif
