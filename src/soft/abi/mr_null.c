/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The null region: a local key for any address. What is written there is discarded, what is read
 * is zero.
 */
#include "soft/abi/mr.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"

static uint8_t *nowhere(const struct soft_region *region, uint64_t offset)
{
	(void)region;
	(void)offset;
	return NULL;
}

static int fetch_zero(const struct soft_region *region, uint64_t offset, void *to, size_t len)
{
	(void)region;
	(void)offset;
	memset(to, 0, len);
	return 0;
}

static int discard(struct soft_region *region, uint64_t offset, const void *from, size_t len)
{
	(void)region;
	(void)offset;
	(void)from;
	(void)len;
	return 0;
}

static void release_nothing(struct soft_region *region)
{
	(void)region;
}

static const struct soft_region_ops null_ops = {nowhere, fetch_zero, discard, release_nothing};

int soft_mr_make_null(const struct soft_mr_request *request, struct soft_mr_object *mr)
{
	if (!request->null)
		return -ENODEV;
	mr->region.ops = &null_ops;
	return 0;
}

struct ibv_mr *soft_alloc_null_mr(struct ibv_pd *pd)
{
	struct soft_mr_request q = {.context = soft_context_of(pd->context),
				    .length = UINT64_MAX,
				    .fd = -1,
				    .null = true};

	return soft_mr_new(pd, &q, /* addr= */ NULL, IBV_ACCESS_LOCAL_WRITE);
}
