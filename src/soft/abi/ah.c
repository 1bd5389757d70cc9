/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address handles.
 */
#include "soft/abi/export.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft/abi/ah.h"
#include "soft/abi/object.h"
#include "base/banned.h"

int soft_ah_check(const struct soft_device *d, const struct ibv_ah_attr *attr)
{
	static const struct soft_gid none;
	const struct soft_gid *dst = (const struct soft_gid *)attr->grh.dgid.raw;
	const struct soft_gid *src = soft_device_gid(d, attr->grh.sgid_index);

	/* RoCE has no other address than the GID. */
	if (!attr->is_global || attr->port_num != 1 || !src || soft_gid_equal(dst, &none))
		return -EINVAL;
	/* Both ends speak one IP. Multicast is not served. */
	if (soft_gid_is_ipv4(dst) != soft_gid_is_ipv4(src))
		return -EINVAL;
	if (dst->raw[0] == 0xff || (soft_gid_is_ipv4(dst) && dst->raw[12] >> 4 == 0xe))
		return -EINVAL;
	return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct soft_context *c = soft_context_of(pd->context);
	struct soft_ah_object *ah;
	const struct soft_gid *src = soft_device_gid(c->device, attr->grh.sgid_index);
	int r = -soft_device_fault(c->device, SOFT_FAULT_CREATE_AH);

	if (!r)
		r = src ? soft_ah_check(c->device, attr) : -EINVAL;
	if (r)
		return soft_fail(-r);
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return soft_fail(ENOMEM);
	ah->ibv = (struct ibv_ah){.context = pd->context, .pd = pd};
	ah->attr = *attr;
	ah->src = *src;
	memcpy(ah->dst.raw, attr->grh.dgid.raw, sizeof(ah->dst.raw));
	r = soft_object_enter(c, &ah->object, SOFT_KIND_AH, c->device->config.limits.max_ah);
	if (r) {
		free(ah);
		return soft_fail(-r);
	}
	ah->ibv.handle = ah->object.handle;
	ah->pd = soft_pd_of(pd);
	soft_object_use(&ah->pd->object);
	return &ah->ibv;
}

static void ah_free(struct soft_ah_object *ah)
{
	soft_object_unuse(&ah->pd->object);
	free(ah);
}

void soft_ah_drop(struct soft_context *c, struct soft_object *object)
{
	if (!soft_object_leave(c, object))
		ah_free(SOFT_OBJECT(struct soft_ah_object, object, object));
}

int ibv_destroy_ah(struct ibv_ah *ibv)
{
	struct soft_ah_object *ah = soft_ah_of(ibv);

	if (soft_context_inherited(soft_context_of(ibv->context)))
		return 0;
	if (!soft_object_is(&ah->object, ibv->context, ibv->handle))
		return soft_gone();
	if (soft_context_gone(soft_context_of(ibv->context)))
		return EIO;
	if (soft_object_leave(soft_context_of(ibv->context), &ah->object))
		return soft_busy();
	ah_free(ah);
	return 0;
}

int soft_ah_path_locked(struct soft_ah_object *ah, struct soft_path *ret)
{
	struct soft_context *c = soft_context_of(ah->ibv.context);

	/* A handle may be made before the first queue pair, and with it the sockets, is there. */
	if (!ah->resolved) {
		int r = soft_engine_path(c->engine, c->attach->wire, &ah->src, &ah->dst,
					 ah->ibv.handle, &ah->path);

		if (r)
			return r;
		ah->path.traffic_class = ah->attr.grh.traffic_class;
		ah->path.hop_limit = ah->attr.grh.hop_limit ? ah->attr.grh.hop_limit : 1;
		ah->path.flow_label = ah->attr.grh.flow_label & 0xfffff;
		ah->resolved = true;
	}
	*ret = ah->path;
	return 0;
}

/* The header that lies before a datagram: IPv6's shape, or IPv4's in its last 20 bytes. */
static void ends_of(const struct ibv_grh *grh, union ibv_gid *src, union ibv_gid *dst, uint8_t *tc,
		    uint32_t *flow)
{
	const uint8_t *bytes = (const uint8_t *)grh;
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	word = be32toh(word);
	if (word >> 28 == 6) {
		*src = grh->sgid;
		*dst = grh->dgid;
		*tc = (uint8_t)(word >> 20);
		*flow = word & 0xfffff;
		return;
	}
	memset(src, 0, sizeof(*src));
	memset(dst, 0, sizeof(*dst));
	src->raw[10] = src->raw[11] = dst->raw[10] = dst->raw[11] = 0xff;
	memcpy(src->raw + 12, bytes + 20 + 12, 4);
	memcpy(dst->raw + 12, bytes + 20 + 16, 4);
	*tc = bytes[20 + 1];
	*flow = 0;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	const struct soft_device *d = soft_context_of(context)->device;
	union ibv_gid src, dst;

	*attr = (struct ibv_ah_attr){.port_num = port_num, .sl = wc->sl};
	if (!(wc->wc_flags & IBV_WC_GRH) || port_num != 1) {
		errno = EINVAL;
		return -1;
	}
	ends_of(grh, &src, &dst, &attr->grh.traffic_class, &attr->grh.flow_label);
	for (unsigned int i = 0; i < d->config.num_gids; i++) {
		const struct soft_gid *gid = soft_device_gid(d, i);

		if (!gid || memcmp(gid->raw, dst.raw, sizeof(dst.raw)))
			continue;
		attr->is_global = 1;
		attr->grh.dgid = src;
		attr->grh.sgid_index = (uint8_t)i;
		attr->grh.hop_limit = 0xff;
		return 0;
	}
	errno = ENOENT;
	return -1;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				uint8_t eth_mac[6], uint16_t *vid)
{
	/* Ethernet addresses are the kernel's business below UDP. */
	(void)context;
	(void)attr;
	(void)eth_mac;
	(void)vid;
	return -EOPNOTSUPP;
}
