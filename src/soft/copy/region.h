/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_region: memory registered for remote or local access, and the table of all of a
 * process, found by key.
 *
 * Keys are random, never derived from an index or address, and a freed key is not given again
 * while it is among the last SOFT_KEYS_RESTING freed. lkey and rkey of a region are the same
 * number. Not thread-safe: the engine's lock covers table and regions.
 */
#ifndef SOFT_COPY_REGION_H
#define SOFT_COPY_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SOFT_KEYS_RESTING = 4096 };

/* Bits of a key that two regions may not differ in alone: a memory window's owner chooses them. */
#define SOFT_KEY_OWNERS 0xffu

/* Numbers of verbs' IBV_ACCESS_*. */
enum {
	SOFT_ACCESS_LOCAL_WRITE = 1 << 0,
	SOFT_ACCESS_REMOTE_WRITE = 1 << 1,
	SOFT_ACCESS_REMOTE_READ = 1 << 2,
	SOFT_ACCESS_REMOTE_ATOMIC = 1 << 3,
	SOFT_ACCESS_MW_BIND = 1 << 4,
	SOFT_ACCESS_ZERO_BASED = 1 << 5,
};

struct soft_copier;
struct soft_export;
struct soft_region;

/*
 * How the bytes of a region are moved: the seam for memory that the processor cannot address.
 * @offset and @len were checked against the region. 0 or -errno.
 */
struct soft_region_ops {
	/* Memory the processor reaches at this offset, or NULL: then only fetch and store work. */
	uint8_t *(*direct)(const struct soft_region *region, uint64_t offset);
	int (*fetch)(const struct soft_region *region, uint64_t offset, void *to, size_t len);
	int (*store)(struct soft_region *region, uint64_t offset, const void *from, size_t len);
	void (*release)(struct soft_region *region); /* when unregistered: unmap, close */
};

struct soft_region {
	uint32_t key;
	uint32_t access;	/* SOFT_ACCESS_* */
	const void *pd;		/* identity of the protection domain, compared only */
	uint64_t iova;		/* address that keys are used with */
	uint64_t length;	/* bytes */
	uint8_t *base;		/* where iova lies for the processor, or NULL */
	void *owner;		/* the engine's user: the verbs object */
	struct soft_mw *window; /* this is the key of a window (mw.h), no region; else NULL */
	uint32_t windows;	/* bound to it: it must not go before them */
	const struct soft_region_ops *ops;
	/* Far: moved by copies (mover.h), not by ops. */
	struct soft_copier *copier; /* NULL: it is not */
	uint64_t far;		    /* where iova lies for the copier */
	uint32_t copies;	    /* begun and not done; parcels that are lent */
	/* The allocation that it lies in, which peers of this host may be shown; NULL: they may
	 * not: */
	struct soft_export *export;
	const char *not_direct;
	uint32_t loan;		  /* of answers to READs: a unit of the shelf; 0: none yet */
	struct soft_region *next; /* the table's */
};

extern const struct soft_region_ops soft_region_host; /* base is the processor's address */

struct soft_regions;

int soft_regions_new(struct soft_regions **ret);
void soft_regions_free(struct soft_regions *table); /* NULL is fine; regions are not the table's */

/* Gives @region a key and enters it. Borrows @region until removed. -ENOMEM, -EIO (no random). */
int soft_regions_add(struct soft_regions *table, struct soft_region *region);
void soft_regions_remove(struct soft_regions *table, struct soft_region *region);

/* NULL: no such key. */
struct soft_region *soft_regions_find(const struct soft_regions *table, uint32_t key);
/* The same, whatever the owner's bits are. */
struct soft_region *soft_regions_of(const struct soft_regions *table, uint32_t key);
size_t soft_regions_count(const struct soft_regions *table);
/* Calls @each for all, in no order. */
void soft_regions_each(const struct soft_regions *table, void (*each)(void *, struct soft_region *),
		       void *arg);

/*
 * The region (no window) that @key names, if it belongs to @pd, allows all of @access, and holds
 * [va, va+len); else NULL. Overflow of va+len is refused. @len 0 needs key, pd and access still.
 */
struct soft_region *soft_regions_check(const struct soft_regions *table, const void *pd,
				       uint32_t key, uint64_t va, uint64_t len, uint32_t access);

/* Bytes at @va of a checked region. Never past its end. */
static inline uint8_t *soft_region_at(const struct soft_region *region, uint64_t va)
{
	return region->ops->direct(region, va - region->iova);
}

#endif
