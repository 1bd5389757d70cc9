/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_mw: a memory window: a second key for part of a region, with accesses of its own,
 * that comes and goes by work requests instead of registration (InfiniBand Architecture
 * Specification, volume 1, 10.6.7).
 *
 *   type 1   bound and bound anew by its owner; its key is for every queue pair of its domain
 *   type 2   bound only while it is not; through one queue pair, whose peer alone may use the key,
 *            and may invalidate it (2B of the specification)
 *
 * The low eight bits of a window's key are its owner's, chosen at each bind; the others never
 * change, and no region or other window has the same. Not thread-safe: the engine's lock.
 */
#ifndef SOFT_COPY_MW_H
#define SOFT_COPY_MW_H

#include "soft/copy/region.h"

/* One who binds, a queue pair: type 2 windows that are bound through it. */
struct soft_mw_owner {
	struct soft_mw *first;
};

struct soft_mw {
	struct soft_region entry; /* its key and domain in the table of regions; of no bytes */
	bool type2;
	struct soft_region *region;  /* bound to; NULL: not bound */
	uint64_t start, length;	     /* in the region's addresses */
	uint32_t access;	     /* SOFT_ACCESS_*, SOFT_ACCESS_ZERO_BASED */
	struct soft_mw_owner *owner; /* bound through, of type 2 */
	struct soft_mw *next, **at;  /* in its list */
};

struct soft_mw_bind {
	uint32_t lkey; /* of the region */
	uint32_t access;
	uint64_t start, length; /* 0 bytes: unbinds (type 1) */
	uint8_t key;		/* low bits of the window's key from now on */
};

/* Gives it a key; it is not bound. -ENOMEM, -EIO. */
int soft_mw_add(struct soft_regions *table, struct soft_mw *mw, const void *pd, bool type2);
/* Unbinds and takes it out. */
void soft_mw_remove(struct soft_regions *table, struct soft_mw *mw);

/* The window of which @key is or was a key, or NULL. */
struct soft_mw *soft_mw_find(const struct soft_regions *table, uint32_t key);

/* false, and nothing changed: the rules forbid it. @pd: the queue pair's. */
bool soft_mw_bind(struct soft_regions *table, struct soft_mw *mw, struct soft_mw_owner *owner,
		  const void *pd, const struct soft_mw_bind *bind);
/* By its owner's or the peer's request. false: no bound type 2 window of @owner has this key. */
bool soft_mw_invalidate(const struct soft_regions *table, const struct soft_mw_owner *owner,
			uint32_t key);
/* Before @owner goes: none stays bound through it. */
void soft_mw_release(struct soft_mw_owner *owner);

/*
 * What a peer may reach by @key through @owner of domain @pd: the region, and in @va where the
 * bytes lie in it, of a window too. NULL: nothing; @va is as it was.
 */
struct soft_region *soft_regions_remote(const struct soft_regions *table, const void *pd,
					const struct soft_mw_owner *owner, uint32_t key,
					uint64_t *va, uint64_t len, uint32_t access);

#endif
