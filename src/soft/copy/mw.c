/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/copy/mw.h"

#include <string.h>

#include "base/banned.h"

/* What a peer writes through a window, the region must let its own device write (10.6.7.2.1). */
#define WRITES (SOFT_ACCESS_REMOTE_WRITE | SOFT_ACCESS_REMOTE_ATOMIC)

int soft_mw_add(struct soft_regions *table, struct soft_mw *mw, const void *pd, bool type2)
{
	memset(mw, 0, sizeof(*mw));
	mw->entry.pd = pd;
	mw->entry.window = mw;
	mw->type2 = type2;
	return soft_regions_add(table, &mw->entry);
}

static void unbind(struct soft_mw *mw)
{
	if (mw->region)
		mw->region->windows--;
	mw->region = NULL;
	if (mw->owner) {
		*mw->at = mw->next;
		if (mw->next)
			mw->next->at = mw->at;
	}
	mw->owner = NULL;
}

void soft_mw_remove(struct soft_regions *table, struct soft_mw *mw)
{
	unbind(mw);
	soft_regions_remove(table, &mw->entry);
}

struct soft_mw *soft_mw_find(const struct soft_regions *table, uint32_t key)
{
	struct soft_region *entry = soft_regions_of(table, key);

	return entry ? entry->window : NULL;
}

static bool holds(const struct soft_region *region, const struct soft_mw_bind *bind)
{
	uint64_t offset, end;

	return !__builtin_sub_overflow(bind->start, region->iova, &offset) &&
	       !__builtin_add_overflow(offset, bind->length, &end) && end <= region->length;
}

/* 10.6.7.2.1 and 10.6.7.2.2. */
static bool may_bind(const struct soft_mw *mw, const struct soft_region *region, const void *pd,
		     const struct soft_mw_bind *bind)
{
	if (mw->entry.pd != pd || (mw->type2 && mw->region))
		return false;
	if (!bind->length)
		return !mw->type2;
	/* Windows that count from zero are of type 2, over regions that do not. */
	if (bind->access & SOFT_ACCESS_ZERO_BASED && !mw->type2)
		return false;
	return region && !region->window && region->pd == pd &&
	       region->access & SOFT_ACCESS_MW_BIND && !(region->access & SOFT_ACCESS_ZERO_BASED) &&
	       (!(bind->access & WRITES) || region->access & SOFT_ACCESS_LOCAL_WRITE) &&
	       holds(region, bind);
}

bool soft_mw_bind(struct soft_regions *table, struct soft_mw *mw, struct soft_mw_owner *owner,
		  const void *pd, const struct soft_mw_bind *bind)
{
	struct soft_region *region = soft_regions_find(table, bind->lkey);

	if (!may_bind(mw, region, pd, bind))
		return false;
	unbind(mw);
	mw->entry.key = (mw->entry.key & ~(uint32_t)SOFT_KEY_OWNERS) | bind->key;
	if (!bind->length)
		return true;
	mw->region = region;
	region->windows++;
	mw->start = bind->start;
	mw->length = bind->length;
	mw->access = bind->access;
	if (!mw->type2)
		return true;
	mw->owner = owner;
	mw->at = &owner->first;
	mw->next = owner->first;
	if (mw->next)
		mw->next->at = &mw->next;
	owner->first = mw;
	return true;
}

bool soft_mw_invalidate(const struct soft_regions *table, const struct soft_mw_owner *owner,
			uint32_t key)
{
	struct soft_region *entry = soft_regions_find(table, key);

	if (!entry || !entry->window || !entry->window->region || entry->window->owner != owner)
		return false;
	unbind(entry->window);
	return true;
}

void soft_mw_release(struct soft_mw_owner *owner)
{
	while (owner->first)
		unbind(owner->first);
}

struct soft_region *soft_regions_remote(const struct soft_regions *table, const void *pd,
					const struct soft_mw_owner *owner, uint32_t key,
					uint64_t *va, uint64_t len, uint32_t access)
{
	struct soft_region *entry = soft_regions_find(table, key);
	const struct soft_mw *mw = entry ? entry->window : NULL;
	uint64_t offset, end;

	if (!mw)
		return soft_regions_check(table, pd, key, *va, len, access);
	if (!mw->region || entry->pd != pd || (mw->owner && mw->owner != owner) ||
	    (mw->access & access) != access)
		return NULL;
	offset = *va;
	if (!(mw->access & SOFT_ACCESS_ZERO_BASED) &&
	    __builtin_sub_overflow(*va, mw->start, &offset))
		return NULL;
	if (__builtin_add_overflow(offset, len, &end) || end > mw->length)
		return NULL;
	*va = mw->start + offset;
	return mw->region;
}
