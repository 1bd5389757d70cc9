/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/copy/source.h"

#include "soft/copy/place.h"
#include "soft/copy/region.h"

#include "base/banned.h"

enum { BOUNCE = 4096 };

/* From a source into memory that the processor cannot address. */
static int store_indirect(struct soft_bytes from, struct soft_region *region, uint64_t offset,
			  uint32_t len)
{
	uint8_t bounce[BOUNCE];

	for (uint32_t at = 0; at < len;) {
		uint32_t part = len - at < BOUNCE ? len - at : BOUNCE;
		int rc;

		if (from.source->fetch(from.source, from.offset + at, bounce, part))
			return SOFT_BYTES_LOST;
		rc = region->ops->store(region, offset + at, bounce, part);
		if (rc < 0)
			return rc;
		at += part;
	}
	return 0;
}

int soft_bytes_store(struct soft_bytes from, struct soft_region *region, uint64_t va, uint32_t len)
{
	uint8_t *to = soft_region_at(region, va);

	if (from.source) {
		if (!to)
			return store_indirect(from, region, va - region->iova, len);
		return from.source->fetch(from.source, from.offset, to, len) ? SOFT_BYTES_LOST : 0;
	}
	if (!to)
		return region->ops->store(region, va - region->iova, from.at, len);
	soft_copy_place(to, from.at, len);
	return 0;
}
