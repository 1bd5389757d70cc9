/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GID table: addresses of the device, all RoCE v2.
 */
#include "soft/abi/export.h"

#include <errno.h>
#include <string.h>

#include "soft/abi/object.h"
#include "soft/abi/private.h"
#include "base/banned.h"

static bool fill(const struct soft_device *d, uint32_t index, struct ibv_gid_entry *e)
{
	*e = (struct ibv_gid_entry){
		.gid_index = index,
		.port_num = 1,
		.gid_type = IBV_GID_TYPE_ROCE_V2,
	};
	int at = soft_device_gid_at(d, index);

	/* A place from which the address was taken away: zero, as sysfs shows it. */
	if (at < 0)
		return false;
	e->ndev_ifindex = d->config.gids[at].ifindex;
	memcpy(e->gid.raw, d->config.gids[at].gid.raw, sizeof(e->gid.raw));
	return true;
}

/* A caller's entry may be older than ours or newer. */
static void give(const struct ibv_gid_entry *e, void *to, size_t size)
{
	if (size > sizeof(*e)) {
		memset((char *)to + sizeof(*e), 0, size - sizeof(*e));
		size = sizeof(*e);
	}
	memcpy(to, e, size);
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	const struct soft_device *d = soft_context_of(context)->device;
	struct ibv_gid_entry e;

	if (flags)
		return EOPNOTSUPP;
	if (port_num != 1 || gid_index >= d->config.num_gids)
		return EINVAL;
	if (soft_context_gone(soft_context_of(context)))
		return EIO;
	if (!fill(d, gid_index, &e))
		return ENODATA;
	give(&e, entry, entry_size);
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	const struct soft_device *d = soft_context_of(context)->device;
	ssize_t n = 0;

	if (flags)
		return -EOPNOTSUPP;
	if (max_entries < d->config.num_gids)
		return -EINVAL;
	if (soft_context_gone(soft_context_of(context)))
		return -EIO;
	for (uint32_t i = 0; i < d->config.num_gids; i++) {
		struct ibv_gid_entry e;

		if (fill(d, i, &e))
			give(&e, (char *)entries + n++ * entry_size, entry_size);
	}
	return n;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	struct ibv_gid_entry e;
	int r = index < 0 ? EINVAL
			  : _ibv_query_gid_ex(context, port_num, (uint32_t)index, &e,
					      /* flags= */ 0, sizeof(e));

	if (r == ENODATA) {
		memset(gid, 0, sizeof(*gid));
		return 0;
	}
	if (r) {
		errno = r;
		return -1;
	}
	*gid = e.gid;
	return 0;
}

int soft_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
			int *type)
{
	struct ibv_gid_entry e;
	int r = _ibv_query_gid_ex(context, port_num, index, &e, /* flags= */ 0, sizeof(e));

	if (r) {
		errno = r;
		return -1;
	}
	*type = IBV_GID_TYPE_SYSFS_ROCE_V2;
	return 0;
}
