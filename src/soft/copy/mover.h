/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a device that the processor cannot address: its bytes move by asynchronous copies,
 * between the device and staging.
 *
 *   struct soft_copy     one copy: begun, and done some time later
 *   struct soft_copier   a device that copies (CUDA: cuda_device.h; tests have one of their own)
 *   struct soft_mover    what those of a process share: staging for either direction
 *
 * Copies of one chain to one device are carried out in the order in which they were begun, and all
 * of one direction are done in it. All of this is under the engine's lock.
 */
#ifndef SOFT_COPY_MOVER_H
#define SOFT_COPY_MOVER_H

#include "base/clock.h"
#include "soft/copy/region.h"
#include "soft/copy/source.h"
#include "soft/copy/staging.h"

/* A message is one copy. Longer ones may be cut into pieces of at least so many bytes: shorter
 * copies would cost their speed (64 KiB: a quarter of it). */
enum { SOFT_COPY_PIECE = 1 << 20 };

/* Bytes of the next copy where @left are to come. */
static inline uint32_t soft_copy_piece(uint32_t left)
{
	return left < 2 * SOFT_COPY_PIECE ? left : SOFT_COPY_PIECE;
}

struct soft_landing;

/* Besides copies a copier is asked, in their order, to page-lock memory that it will only read, and
 * to let it go; to map memory of another process's (import.h), and to let that go. */
enum soft_copy_what {
	SOFT_COPY,
	SOFT_COPY_PIN,
	SOFT_COPY_UNPIN,
	SOFT_COPY_MAP,
	SOFT_COPY_UNMAP,
};

struct soft_mapping;
struct soft_shelf;

struct soft_copy {
	enum soft_copy_what what;
	struct soft_region *region; /* of a copy: counts it in its copies, begun to done */
	uint64_t at;		    /* the device's address */
	void *host;
	uint64_t from; /* not 0: in place of host, a device's address too */
	size_t len;
	bool to_device;
	struct soft_mapping *mapping; /* to be mapped, or let go */
	int rc;			      /* when done: 0, or -errno: the bytes are anybody's guess */
	/* Never called by who begins it. The copy may be freed. */
	void (*done)(struct soft_copy *copy);
	bool by_kernel; /* one of its places is memory that another context owns */
	uint32_t chain; /* 0, or its queue pair's */
	/* The copier's. */
	struct soft_copy *next;
	pp_ns begun;
};

struct soft_copier {
	void (*start)(struct soft_copier *copier, struct soft_copy *copy);
	/* Copies of @region that no device has seen yet are done, in vain. */
	void (*cancel)(struct soft_copier *copier, struct soft_region *region);
	const void *device;  /* the same for all that copy for one */
	unsigned int pinned; /* segments of others' shelves, asked for or page-locked */
};

struct soft_mover {
	unsigned int regions; /* of devices, since ever; 0: nothing below is in use */
	struct soft_staging out, in;
	struct soft_landing *open; /* qp/landing.h: those that gather bytes for a copy */
	uint64_t copies, copied_bytes, failed;
	uint64_t lent, lent_bytes;     /* copies from where the sender has the bytes */
	uint64_t direct, direct_bytes; /* of these, from memory of his GPU */
	struct soft_shelf *shelf;      /* what lends; NULL: nothing does */
};

static inline bool soft_region_is_far(const struct soft_region *region)
{
	return __builtin_expect(region->copier != NULL, 0);
}

/* Bytes at @va of a checked region that is far. */
void soft_copy_start(struct soft_mover *mover, struct soft_copy *copy, struct soft_region *region,
		     uint64_t va);
/* Bytes at @at of a device that are no region's, to host memory. */
void soft_copy_bring(struct soft_mover *mover, struct soft_copy *copy, struct soft_copier *copier,
		     uint64_t at);
/* What is no copy. @copy has what, and what it needs, and done set. */
void soft_copy_ask(struct soft_copier *copier, struct soft_copy *copy);
/* What a copier calls in the end. */
void soft_copy_done(struct soft_copy *copy, int rc);

/*
 * A parcel: bytes of a device in staging, on their way out. It may be given up before its copies
 * are done.
 */
struct soft_parcel {
	struct soft_mover *mover;
	uint8_t *at; /* NULL: the bytes are lent from where they are */
	uint32_t len;
	unsigned int pending; /* copies */
	int rc;		      /* of the first that failed */
	/* Called when the last copy is done, unless it was given up. */
	void (*here)(struct soft_parcel *parcel);
	void *owner;
	bool given_up;
	/* Its owner's. */
	const void *of;
	uint64_t offset;
	uint64_t unread;
	struct soft_parcel *next;
	/* Lent: the unit of the shelf that says so (0: it is not), and what of; the region is kept
	 * as by a copy. */
	uint32_t unit;
	struct soft_region *region;
	uint64_t va;
};

/* NULL: no staging, no memory. */
struct soft_parcel *soft_parcel_new(struct soft_mover *mover, uint32_t len);
/* The same without staging: of a region that lies in an export. NULL: nothing more can be lent. */
struct soft_parcel *soft_parcel_lend(struct soft_mover *mover, struct soft_region *region,
				     uint64_t va, uint32_t len);
/* It must be staged after all; what was sent of it stays lent. false: there is no staging. */
bool soft_parcel_stage(struct soft_parcel *parcel);
/* What is lent from @offset of the parcel on. */
struct soft_direct soft_parcel_direct(const struct soft_parcel *parcel, uint32_t offset);
/* It is lent no more: its region goes. */
void soft_parcel_revoke(struct soft_parcel *parcel);
/* @len bytes at @va of @region, to @offset of the parcel. -ENOMEM. */
int soft_parcel_fetch(struct soft_parcel *parcel, struct soft_region *region, uint64_t va,
		      uint32_t offset, uint32_t len);
void soft_parcel_free(struct soft_parcel *parcel); /* NULL is fine */

/* What cannot be fetched or stored at once: soft_region_ops of a region that is far. */
extern const struct soft_region_ops soft_region_far;

/* Bytes at @va of a region in an export, lent by @unit of the shelf. */
struct soft_direct soft_region_direct(const struct soft_shelf *shelf,
				      const struct soft_region *region, uint32_t unit, uint64_t va);

#endif
