/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes on their way into a region: those of a packet, or a source that fetches them from where
 * they lie straight to where they go.
 */
#ifndef SOFT_COPY_SOURCE_H
#define SOFT_COPY_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct soft_copier;
struct soft_region;
struct soft_shelf_view;

/* Bytes of a GPU's memory that the receiver's GPU may take from where they lie (export.h): as long
 * as that unit of the sender's shelf has that generation. */
struct soft_direct {
	uint32_t export;
	uint32_t unit, generation;
	uint64_t offset; /* in the allocation */
};

struct soft_import;

/* Bytes that a sender leaves where they are until they have been copied (shelf.h). */
struct soft_loan {
	struct soft_shelf_view *view; /* borrowed: who keeps the loan counts as its user */
	struct soft_import *import;   /* the same; bytes of a GPU, @at is an address for it. NULL:
				       * they lie on the shelf */
	const uint8_t *at;
	unsigned int segment, unit;
	uint32_t generation;
};

struct soft_source {
	bool far; /* the processor cannot fetch them: they are lent, or lost */
	/* Bytes [offset, offset + len) to @to, where the last become visible last, as by
	 * soft_copy_place(). Not 0: they cannot be had, and some may have been written. */
	int (*fetch)(struct soft_source *source, uint32_t offset, void *to, size_t len);
	/* How many bytes from @offset on, @len at most, need not be fetched: @copier can copy them
	 * from where they lie (NULL, if they are far: to host memory). 0: none. NULL: none ever. */
	uint32_t (*lend)(struct soft_source *source, uint32_t offset, uint32_t len,
			 struct soft_copier *copier, struct soft_loan *ret);
};

struct soft_bytes {
	const uint8_t *at;	    /* unless there is a source */
	struct soft_source *source; /* NULL: none */
	uint32_t offset;	    /* in the source */
};

static inline struct soft_bytes soft_bytes_behind(struct soft_bytes b, uint32_t n)
{
	if (b.source)
		b.offset += n;
	else
		b.at += n;
	return b;
}

/* The source had them not: as if they had never come. */
enum {
	SOFT_BYTES_LOST = 1,
	SOFT_BYTES_LATER, /* there is no room for them now (qp/landing.h) */
};

/* @len bytes to @va of a checked region. 0, SOFT_BYTES_LOST, or -errno of the region. */
int soft_bytes_store(struct soft_bytes from, struct soft_region *region, uint64_t va, uint32_t len);

#endif
