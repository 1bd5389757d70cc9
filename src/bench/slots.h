/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_slots: where in the memory of a pair the messages of one size lie. Pure, and the same
 * at both ends, which compute it of the same numbers: a message goes to the offset that it comes
 * from.
 *
 *   end 0   |  key a             |   key b      |      spans are cut where either end has another
 *   end 1   |        key c              | key d |      key; no slot crosses a span's edge
 *   spans   |   1    |     2     |  3    |  4   |
 *   slots   |0 1 0 1 | 0 1   0 1 | ...                 ways 0 (end 0 to 1) and 1 (end 1 to 0) in
 * turn
 *
 * The slots of a span are spread from its first byte to its last, so that what a region lacks at
 * either edge is met; every key has a slot of every way, or there is no layout.
 */
#ifndef PP_BENCH_SLOTS_H
#define PP_BENCH_SLOTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
	PP_SLOTS_PARTS = 16,	   /* keys of one end */
	PP_SLOTS_MOST = 128,	   /* of one way */
	PP_SLOTS_KEEP = 512 << 10, /* bytes of one way that many small messages share */
	PP_SLOTS_LARGE = 16 << 20,
	PP_SLOTS_ALIGN = 64,
};

/* A part of an end's memory under one key. */
struct pp_part {
	uint64_t start, length; /* from the memory's beginning */
	uint64_t address;	/* of start, in work requests */
	uint32_t key;		/* rkey of a peer's, lkey of one's own */
};

struct pp_slots {
	uint64_t size;			   /* of a message */
	uint64_t offset[2][PP_SLOTS_MOST]; /* of each way, in order of use */
	unsigned int n;			   /* of each way */
};

/* Bytes of memory with @parts keys that messages up to @size need; 0: too large. */
uint64_t pp_slots_memory(uint64_t size, unsigned int parts);

/* -EINVAL: a part is too small for @size, parts overlap or are out of order. */
int pp_slots_lay(const struct pp_part *a, unsigned int n_a, const struct pp_part *b,
		 unsigned int n_b, uint64_t size, struct pp_slots *ret, struct pp_error *err);

/* The part that holds [offset, offset + size); NULL none. */
const struct pp_part *pp_part_of(const struct pp_part *part, unsigned int n, uint64_t offset,
				 uint64_t size);

/*
 * What memory of @total bytes holds after a run: pieces in ascending order, in a slot of way @way
 * or not. @visit's negative errno ends it.
 */
typedef int pp_slots_visit(void *arg, uint64_t offset, uint64_t len, int in_slot);
int pp_slots_walk(const struct pp_slots *s, unsigned int way, uint64_t total, pp_slots_visit *visit,
		  void *arg);

#endif
