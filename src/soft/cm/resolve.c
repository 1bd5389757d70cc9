/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local address, device and route of an id.
 *
 * An address is resolved at once: which local address reaches the peer is the kernel's routing
 * table's to say, and the device is the one that has it. Nobody is asked on the wire; a peer that
 * is not there is found out by rdma_connect().
 */
#include "soft/cm/cm.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soft/cm/address.h"

#include "base/banned.h"

enum { DEFAULT_PKEY = 0xffff, HOP_LIMIT = 64, EXACTLY = 2, LIFE_TIME = 16, RATE_100_GBPS = 16 };

static struct sockaddr_storage *local_of(struct soft_cm_id *id)
{
	return &id->pub.route.addr.src_storage;
}

int soft_cm_take_device(struct soft_cm_id *id)
{
	struct soft_gid gid = soft_cm_address_gid(&id->pub.route.addr.src_addr);
	struct soft_cm_device *d;
	int r;

	if (id->device)
		return 0;
	d = soft_cm_device_find(&gid, &id->sgid_index);
	if (!d)
		return ENODEV;
	r = soft_cm_device_hold(d);
	if (r)
		return r;
	id->device = d;
	if (!id->mtu || id->mtu > d->mtu) /* a child has its peer's */
		id->mtu = d->mtu;
	id->pub.verbs = d->verbs;
	id->pub.pd = d->pd;
	id->pub.port_num = SOFT_CM_PORT;
	id->local.from = gid;
	memcpy(id->pub.route.addr.ibaddr.sgid.raw, gid.raw, sizeof(gid.raw));
	id->pub.route.addr.ibaddr.pkey = htobe16(DEFAULT_PKEY);
	return 0;
}

int soft_cm_take_route(struct soft_cm_id *id)
{
	struct rdma_route *route = &id->pub.route;

	id->local.to = soft_cm_address_gid(&route->addr.dst_addr);
	memcpy(route->addr.ibaddr.dgid.raw, id->local.to.raw, sizeof(id->local.to.raw));
	if (!route->path_rec)
		route->path_rec = calloc(1, sizeof(*route->path_rec));
	if (!route->path_rec)
		return ENOMEM;
	*route->path_rec = (struct ibv_sa_path_rec){
		.dgid = route->addr.ibaddr.dgid,
		.sgid = route->addr.ibaddr.sgid,
		.hop_limit = HOP_LIMIT,
		.traffic_class = id->tos,
		.reversible = 1,
		.numb_path = 1,
		.pkey = htobe16(DEFAULT_PKEY),
		.mtu_selector = EXACTLY,
		.mtu = id->mtu,
		.rate_selector = EXACTLY,
		.rate = RATE_100_GBPS,
		.packet_life_time_selector = EXACTLY,
		.packet_life_time = LIFE_TIME,
	};
	route->num_paths = 1;
	return 0;
}

/* The socket at @address, and its device. 0 or errno; nothing changes on failure. */
static int bind_to(struct soft_cm_id *id, const struct sockaddr *address, bool with_device)
{
	struct sockaddr_storage a = {0};
	int fd, r = 0;

	memcpy(&a, address, soft_cm_address_length(address));
	fd = soft_cm_socket(id, &a);
	if (fd < 0)
		return -fd;
	*local_of(id) = a;
	if (with_device)
		r = soft_cm_take_device(id);
	if (r) {
		memset(local_of(id), 0, sizeof(*local_of(id)));
		(void)close(fd);
		return r;
	}
	id->fd = fd;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	struct soft_cm_id *mine = soft_cm_of(id);
	int r;

	if (!soft_cm_mine(mine->generation))
		return soft_cm_fail(EIO);
	if (!addr)
		return soft_cm_fail(EINVAL);
	if (!soft_cm_address_length(addr))
		return soft_cm_fail(EAFNOSUPPORT);
	if (mine->state != SOFT_CM_IDLE)
		return soft_cm_fail(EINVAL);
	/* To the kernel's connection manager a loopback address is as good as none: such an id has
	 * no device yet, and libfabric takes that for "any". */
	r = bind_to(mine, addr, !soft_cm_address_any(addr) && !soft_cm_address_is_loopback(addr));
	if (r)
		return soft_cm_fail(r);
	mine->state = SOFT_CM_BOUND;
	return 0;
}

/* Local address and device for the way to @to. 0 or errno. */
static int find_way(struct soft_cm_id *id, const struct sockaddr *from, const struct sockaddr *to)
{
	const struct sockaddr *bound = &id->pub.route.addr.src_addr;
	struct sockaddr_storage source;
	uint16_t port = 0;
	int r;

	if (id->state == SOFT_CM_BOUND) {
		port = soft_cm_address_port(bound);
		from = soft_cm_address_any(bound) ? NULL : bound;
		if (bound->sa_family != to->sa_family)
			return EINVAL;
	} else if (from) {
		port = soft_cm_address_port(from);
		if (soft_cm_address_any(from))
			from = NULL;
	}
	r = soft_cm_route(from, to, &source);
	if (r)
		return r;
	soft_cm_address_set_port(&source, port);
	if (id->state == SOFT_CM_BOUND) {
		*local_of(id) = source;
		return soft_cm_take_device(id);
	}
	return bind_to(id, (struct sockaddr *)&source, true);
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
		      int timeout_ms)
{
	struct soft_cm_id *mine = soft_cm_of(id);
	struct sockaddr_storage to = {0};
	int r;

	(void)timeout_ms;
	if (!soft_cm_mine(mine->generation))
		return soft_cm_fail(EIO);
	if (!soft_cm_address_length(dst) || (src && !soft_cm_address_length(src)) ||
	    (src && src->sa_family != dst->sa_family) ||
	    (mine->state != SOFT_CM_IDLE && mine->state != SOFT_CM_BOUND))
		return soft_cm_fail(EINVAL);
	memcpy(&to, dst, soft_cm_address_length(dst));
	if (soft_cm_address_any(dst))
		soft_cm_address_loopback(&to);
	r = find_way(mine, src, (struct sockaddr *)&to);
	/* Without a device there is an event; without a route, or with a wrong source, none. */
	if (r && r != ENODEV)
		return soft_cm_fail(r);
	id->route.addr.dst_storage = to;
	soft_cm_lock();
	if (!r)
		mine->state = SOFT_CM_ADDRESS;
	soft_cm_tell_locked(mine, r ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, -r);
	soft_cm_unlock();
	if (!r) {
		mine->local.to = soft_cm_address_gid((struct sockaddr *)&to);
		memcpy(id->route.addr.ibaddr.dgid.raw, mine->local.to.raw,
		       sizeof(mine->local.to.raw));
	}
	return soft_cm_complete(mine);
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	struct soft_cm_id *mine = soft_cm_of(id);
	int r;

	(void)timeout_ms;
	if (!soft_cm_mine(mine->generation))
		return soft_cm_fail(EIO);
	if (mine->state != SOFT_CM_ADDRESS)
		return soft_cm_fail(EINVAL);
	r = soft_cm_take_route(mine);
	if (r)
		return soft_cm_fail(r);
	soft_cm_lock();
	mine->state = SOFT_CM_ROUTE;
	soft_cm_tell_locked(mine, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	soft_cm_unlock();
	return soft_cm_complete(mine);
}
