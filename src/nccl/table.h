/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_nccl_table: records found by their key, the first bytes of each record.
 *
 * A bound on the number of records is mandatory: a log is hostile input. When the bound or memory
 * is reached `full` becomes true and new keys are refused; what is there stays. Records are
 * addressed by index, since putting one moves them all. Padding inside a key must be zero. A table
 * of texts (put_text() only) has a key of their greatest length and a NUL behind it.
 */
#ifndef PP_NCCL_TABLE_H
#define PP_NCCL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PP_NCCL_NONE UINT32_MAX

struct pp_nccl_slot {
	uint32_t at;   /* index */
	uint32_t hash; /* unlike ones are told apart without a look at the record */
};

struct pp_nccl_table {
	unsigned char *data;	    /* owned */
	struct pp_nccl_slot *slots; /* owned; at least half of them are free */
	unsigned char *tags;	    /* owned; of each slot: 0 free, or bits of the hash: in cache */
	uint32_t n, cap, n_slots, max;
	uint32_t record, key; /* bytes */
	bool full, starved;   /* starved: memory ran out, not the bound */
};

#define PP_NCCL_TABLE(type, key_bytes, most) \
	((struct pp_nccl_table){.record = sizeof(type), .key = (key_bytes), .max = (most)})

void pp_nccl_table_done(struct pp_nccl_table *t);

/* Index of the record with this key, or PP_NCCL_NONE. */
uint32_t pp_nccl_table_find(const struct pp_nccl_table *t, const void *key);
/* The same; adds a zeroed record behind the key when there is none. PP_NCCL_NONE: full. */
uint32_t pp_nccl_table_put(struct pp_nccl_table *t, const void *key, bool *ret_new);
/* A text without NUL; of one that is longer than the key, its beginning. */
uint32_t pp_nccl_table_put_text(struct pp_nccl_table *t, const char *text, size_t len);

static inline void *pp_nccl_table_at(const struct pp_nccl_table *t, uint32_t i)
{
	return t->data + (size_t)i * t->record;
}

#endif
