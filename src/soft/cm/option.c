/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is set on an id, or asked of it, without a word to anybody else.
 */
#include "soft/cm/cm.h"

#include <errno.h>
#include <string.h>

#include "soft/cm/address.h"

#include "base/banned.h"

enum { TIMEOUT_MAX = 31 };

static int set_byte(const void *value, size_t len, uint8_t max, uint8_t *ret)
{
	uint8_t v;

	if (len != sizeof(v))
		return EINVAL;
	memcpy(&v, value, sizeof(v));
	if (v > max)
		return EINVAL;
	*ret = v;
	return 0;
}

static int set_option_locked(struct soft_cm_id *id, int name, const void *value, size_t len)
{
	int number = 0, r;

	if (name == RDMA_OPTION_ID_REUSEADDR || name == RDMA_OPTION_ID_AFONLY) {
		/* A socket that exists keeps its family. */
		if (len != sizeof(number) || id->state == SOFT_CM_LISTENING ||
		    (name == RDMA_OPTION_ID_AFONLY && id->state != SOFT_CM_IDLE))
			return EINVAL;
		memcpy(&number, value, sizeof(number));
	}
	switch (name) {
	case RDMA_OPTION_ID_TOS:
		return set_byte(value, len, UINT8_MAX, &id->tos);
	case RDMA_OPTION_ID_REUSEADDR:
		id->reuse = number;
		return 0;
	case RDMA_OPTION_ID_AFONLY:
		id->afonly = !!number;
		return 0;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (id->pub.qp_type == IBV_QPT_UD)
			return EINVAL;
		r = set_byte(value, len, TIMEOUT_MAX, &id->ack_timeout);
		if (!r)
			id->has_ack_timeout = true;
		return r;
	default:
		return ENOSYS;
	}
}

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
	int r;

	/* Paths are set by who asks a subnet manager for them; RoCE has none. */
	if (level != RDMA_OPTION_ID)
		return soft_cm_fail(ENOSYS);
	if (!optval)
		return soft_cm_fail(EFAULT);
	soft_cm_lock();
	r = set_option_locked(soft_cm_of(id), optname, optval, optlen);
	soft_cm_unlock();
	return r ? soft_cm_fail(r) : 0;
}

int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece || !ece->vendor_id || ece->comp_mask)
		return soft_cm_fail(EINVAL);
	soft_cm_of(id)->local_ece = *ece;
	return 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece)
		return soft_cm_fail(EINVAL);
	*ece = soft_cm_of(id)->remote_ece;
	return 0;
}

uint16_t rdma_get_src_port(struct rdma_cm_id *id)
{
	return soft_cm_address_port(&id->route.addr.src_addr);
}

uint16_t rdma_get_dst_port(struct rdma_cm_id *id)
{
	return soft_cm_address_port(&id->route.addr.dst_addr);
}
