/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/copy/mover.h"

#include <errno.h>
#include <stdlib.h>

#include "soft/copy/export.h"
#include "soft/copy/shelf.h"

#include "base/banned.h"

void soft_copy_start(struct soft_mover *mover, struct soft_copy *copy, struct soft_region *region,
		     uint64_t va)
{
	copy->region = region;
	copy->at = region->far + (va - region->iova);
	copy->rc = -EINPROGRESS;
	region->copies++;
	mover->copies++;
	mover->copied_bytes += copy->len;
	region->copier->start(region->copier, copy);
}

void soft_copy_bring(struct soft_mover *mover, struct soft_copy *copy, struct soft_copier *copier,
		     uint64_t at)
{
	copy->region = NULL;
	copy->at = at;
	copy->rc = -EINPROGRESS;
	mover->copies++;
	mover->copied_bytes += copy->len;
	copier->start(copier, copy);
}

void soft_copy_ask(struct soft_copier *copier, struct soft_copy *copy)
{
	copy->region = NULL;
	copy->rc = -EINPROGRESS;
	copier->start(copier, copy);
}

void soft_copy_done(struct soft_copy *copy, int rc)
{
	if (copy->region)
		copy->region->copies--;
	copy->rc = rc;
	copy->done(copy);
}

struct parcel_copy {
	struct soft_copy copy; /* first */
	struct soft_parcel *parcel;
};

static void parcel_free(struct soft_parcel *parcel)
{
	soft_parcel_revoke(parcel);
	if (parcel->at)
		soft_staging_put(&parcel->mover->out, parcel->at, parcel->len);
	free(parcel);
}

static void fetched(struct soft_copy *copy)
{
	struct parcel_copy *c = (struct parcel_copy *)copy;
	struct soft_parcel *parcel = c->parcel;

	if (copy->rc && !parcel->rc)
		parcel->rc = copy->rc;
	if (copy->rc)
		parcel->mover->failed++;
	free(c);
	if (--parcel->pending)
		return;
	if (parcel->given_up)
		parcel_free(parcel);
	else
		parcel->here(parcel);
}

struct soft_parcel *soft_parcel_new(struct soft_mover *mover, uint32_t len)
{
	struct soft_parcel *parcel = calloc(1, sizeof(*parcel));

	if (!parcel)
		return NULL;
	parcel->mover = mover;
	parcel->len = len;
	parcel->at = soft_staging_get(&mover->out, len);
	if (parcel->at)
		return parcel;
	free(parcel);
	return NULL;
}

struct soft_parcel *soft_parcel_lend(struct soft_mover *mover, struct soft_region *region,
				     uint64_t va, uint32_t len)
{
	struct soft_parcel *parcel;
	uint32_t unit = mover->shelf ? soft_shelf_loan_take(mover->shelf) : 0;

	if (!unit)
		return NULL;
	parcel = calloc(1, sizeof(*parcel));
	if (!parcel) {
		soft_shelf_loan_give(mover->shelf, unit);
		return NULL;
	}
	parcel->mover = mover;
	parcel->len = len;
	parcel->unit = unit;
	parcel->region = region;
	parcel->va = va;
	region->copies++;
	return parcel;
}

bool soft_parcel_stage(struct soft_parcel *parcel)
{
	parcel->at = soft_staging_get(&parcel->mover->out, parcel->len);
	return parcel->at;
}

struct soft_direct soft_parcel_direct(const struct soft_parcel *parcel, uint32_t offset)
{
	return soft_region_direct(parcel->mover->shelf, parcel->region, parcel->unit,
				  parcel->va + offset);
}

void soft_parcel_revoke(struct soft_parcel *parcel)
{
	if (!parcel->unit)
		return;
	if (parcel->mover->shelf)
		soft_shelf_loan_give(parcel->mover->shelf, parcel->unit);
	parcel->region->copies--;
	parcel->unit = 0;
	parcel->region = NULL;
}

struct soft_direct soft_region_direct(const struct soft_shelf *shelf,
				      const struct soft_region *region, uint32_t unit, uint64_t va)
{
	return (struct soft_direct){
		.export = region->export->number,
		.unit = unit,
		.generation = soft_shelf_loan_generation(shelf, unit),
		.offset = region->far - region->export->of.base + (va - region->iova),
	};
}

int soft_parcel_fetch(struct soft_parcel *parcel, struct soft_region *region, uint64_t va,
		      uint32_t offset, uint32_t len)
{
	struct parcel_copy *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->parcel = parcel;
	c->copy.host = parcel->at + offset;
	c->copy.len = len;
	c->copy.done = fetched;
	parcel->pending++;
	soft_copy_start(parcel->mover, &c->copy, region, va);
	return 0;
}

void soft_parcel_free(struct soft_parcel *parcel)
{
	if (!parcel)
		return;
	/* A copy that was begun writes there until it is done. */
	parcel->given_up = true;
	if (!parcel->pending)
		parcel_free(parcel);
}

static uint8_t *far_direct(const struct soft_region *region, uint64_t offset)
{
	(void)region;
	(void)offset;
	return NULL;
}

static int far_fetch(const struct soft_region *region, uint64_t offset, void *to, size_t len)
{
	(void)region;
	(void)offset;
	(void)to;
	(void)len;
	return -EOPNOTSUPP;
}

static int far_store(struct soft_region *region, uint64_t offset, const void *from, size_t len)
{
	(void)region;
	(void)offset;
	(void)from;
	(void)len;
	return -EOPNOTSUPP;
}

static void far_release(struct soft_region *region)
{
	(void)region;
}

const struct soft_region_ops soft_region_far = {far_direct, far_fetch, far_store, far_release};
