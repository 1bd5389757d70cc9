/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pieces of a work request in local memory. Every use checks key, protection domain, range and
 * access again: a region may have gone since the request was posted.
 */
#include "soft/qp/parts.h"

#include <string.h>

#include "base/banned.h"

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static struct soft_region *region_of(const struct soft_qp *qp, const void *pd,
				     const struct soft_sge *sge, uint32_t access)
{
	return soft_regions_check(qp->regions, pd, sge->lkey, sge->addr, sge->length, access);
}

unsigned int soft_local_check(struct soft_qp *qp, struct soft_send_wr *wr, uint32_t access)
{
	const struct soft_sge *sges = soft_send_wr_sges(wr);

	if (wr->flags & SOFT_WR_INLINE)
		return SOFT_WC_SUCCESS;
	for (uint32_t i = 0; i < wr->num_sge; i++)
		if (sges[i].length && !region_of(qp, qp->pd, &sges[i], access))
			return SOFT_WC_LOC_PROT_ERR;
	return SOFT_WC_SUCCESS;
}

static void gather_inline(struct soft_send_wr *wr, uint32_t offset, uint32_t len,
			  struct soft_pieces *ret)
{
	ret->at[0].iov_base = soft_send_wr_inline(wr) + offset;
	ret->at[0].iov_len = len;
	ret->num = 1;
}

/* @part bytes at @offset of the message, from where they were fetched to. */
static unsigned int gather_far(struct soft_qp *qp, const struct soft_send_wr *wr, uint32_t offset,
			       uint32_t part, struct soft_pieces *ret)
{
	while (part) {
		int64_t there;
		uint8_t *at = soft_outgoing_at(&qp->req.outgoing, wr, offset, &there);
		uint32_t n = there < part ? (uint32_t)there : part;

		if (!at)
			return there < 0 ? SOFT_WC_LOC_QP_OP_ERR : SOFT_LOCAL_LATER;
		if (ret->num == SOFT_PIECES_MAX)
			return SOFT_WC_LOC_LEN_ERR;
		ret->at[ret->num++] = (struct iovec){.iov_base = at, .iov_len = n};
		offset += n;
		part -= n;
	}
	return SOFT_WC_SUCCESS;
}

unsigned int soft_local_gather(struct soft_qp *qp, struct soft_send_wr *wr, uint32_t offset,
			       uint32_t len, struct soft_pieces *ret)
{
	const struct soft_sge *sges = soft_send_wr_sges(wr);
	uint32_t bounced = 0, at_message = offset;

	ret->num = 0;
	ret->bounced = false;
	if (!len)
		return SOFT_WC_SUCCESS;
	if (wr->flags & SOFT_WR_INLINE) {
		gather_inline(wr, offset, len, ret);
		return SOFT_WC_SUCCESS;
	}
	for (uint32_t i = 0; i < wr->num_sge && len; i++) {
		struct soft_region *region;
		uint32_t part;
		uint8_t *at;

		if (offset >= sges[i].length) {
			offset -= sges[i].length;
			continue;
		}
		region = region_of(qp, qp->pd, &sges[i], 0);
		if (!region)
			return SOFT_WC_LOC_PROT_ERR;
		part = least(sges[i].length - offset, len);
		if (soft_region_is_far(region)) {
			unsigned int status = gather_far(qp, wr, at_message, part, ret);

			if (status)
				return status;
			offset = 0;
			len -= part;
			at_message += part;
			continue;
		}
		at = soft_region_at(region, sges[i].addr + offset);
		if (!at) {
			at = ret->bounce + bounced;
			if (part > sizeof(ret->bounce) - bounced)
				return SOFT_WC_LOC_LEN_ERR;
			if (region->ops->fetch(region, sges[i].addr + offset - region->iova, at,
					       part) < 0)
				return SOFT_WC_LOC_QP_OP_ERR;
			bounced += part;
			ret->bounced = true;
		}
		if (ret->num == SOFT_PIECES_MAX)
			return SOFT_WC_LOC_LEN_ERR;
		ret->at[ret->num++] = (struct iovec){.iov_base = at, .iov_len = part};
		offset = 0;
		len -= part;
		at_message += part;
	}
	return len ? SOFT_WC_LOC_LEN_ERR : SOFT_WC_SUCCESS;
}

static unsigned int status_of(int rc)
{
	switch (rc) {
	case 0:
		return SOFT_WC_SUCCESS;
	case SOFT_BYTES_LOST:
		return SOFT_LOCAL_LOST;
	case SOFT_BYTES_LATER:
		return SOFT_LOCAL_LATER;
	default:
		return SOFT_WC_LOC_QP_OP_ERR;
	}
}

static unsigned int scatter(struct soft_qp *qp, struct soft_landing *landing, const void *pd,
			    const struct soft_sge *sges, uint32_t num_sge, uint32_t offset,
			    struct soft_bytes from, uint32_t len)
{
	for (uint32_t i = 0; i < num_sge && len; i++) {
		struct soft_region *region;
		uint32_t part;
		int rc;

		if (offset >= sges[i].length) {
			offset -= sges[i].length;
			continue;
		}
		region = region_of(qp, pd, &sges[i], SOFT_ACCESS_LOCAL_WRITE);
		if (!region)
			return SOFT_WC_LOC_PROT_ERR;
		part = least(sges[i].length - offset, len);
		rc = soft_landing_store(landing, from, region, sges[i].addr + offset, part,
					sges[i].length - offset);
		if (rc)
			return status_of(rc);
		offset = 0;
		from = soft_bytes_behind(from, part);
		len -= part;
	}
	return len ? SOFT_WC_LOC_LEN_ERR : SOFT_WC_SUCCESS;
}

unsigned int soft_local_scatter(struct soft_qp *qp, struct soft_recv_wr *wr, uint32_t offset,
				struct soft_bytes from, uint32_t len)
{
	const void *pd = qp->resp.rq->pd ? qp->resp.rq->pd : qp->pd;

	return scatter(qp, &qp->resp.landing, pd, soft_recv_wr_sges(wr), wr->num_sge, offset, from,
		       len);
}

unsigned int soft_local_land(struct soft_qp *qp, struct soft_send_wr *wr, uint32_t offset,
			     struct soft_bytes from, uint32_t len)
{
	return scatter(qp, &qp->req.landing, qp->pd, soft_send_wr_sges(wr), wr->num_sge, offset,
		       from, len);
}
