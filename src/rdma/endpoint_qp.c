/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue pairs of an endpoint and their ways: INIT when made, RTR and RTS when connected, and back
 * to INIT when reset.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/compiler.h"
#include "rdma/endpoint_parts.h"
#include "base/banned.h"

enum {
	MIN_RNR_TIMER = 12, /* 0.64 ms */
	RNR_FOR_EVER = 7,
	HOP_LIMIT = 64,
	RD_ATOMIC_FIELD = 255,
};

uint32_t pp_endpoint_random_psn(void)
{
	uint32_t random = 0;

	/* Without entropy it is 0, which is legal too. */
	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	return random & 0xffffff;
}

static uint8_t at_most(unsigned int a, unsigned int b)
{
	unsigned int least = a < b ? a : b;

	return (uint8_t)(least < RD_ATOMIC_FIELD ? least : RD_ATOMIC_FIELD);
}

static unsigned int count(int of_device)
{
	return of_device > 0 ? (unsigned int)of_device : 0;
}

enum ibv_mtu pp_endpoint_mtu(unsigned int bytes)
{
	for (enum ibv_mtu mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++)
		if (pp_verbs_mtu(mtu) == (int)bytes)
			return mtu;
	return (enum ibv_mtu)0;
}

int pp_endpoint_modify(const struct pp_endpoint *e, unsigned int qp, struct ibv_qp_attr *attr,
		       int mask, const char *state, struct pp_error *err)
{
	char call[64];
	int r;

	errno = 0;
	r = e->verbs->modify_qp(e->qp[qp], attr, mask);
	if (!r)
		return 0;
	(void)snprintf(call, sizeof(call), "ibv_modify_qp to %s", state);
	/* -1 with errno set is an older provider's way. */
	return pp_endpoint_fails(e->options.device, call, r > 0 ? r : errno, err);
}

static int to_init(struct pp_endpoint *e, unsigned int qp, struct pp_error *err)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = (uint16_t)e->options.pkey_index,
		.port_num = e->options.port,
		.qp_access_flags =
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	return pp_endpoint_modify(
		e, qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		"INIT", err);
}

/* As much inline as the device gives: it does not say how much that is, so it is asked. */
static struct ibv_qp *make(struct pp_endpoint *e)
{
	static const uint32_t inlines[] = {220, 64, 0};
	struct ibv_qp *qp = NULL;

	for (size_t i = 0; i < PP_ARRAY_LEN(inlines) && !qp; i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = e->cq,
			.recv_cq = e->cq,
			.cap = {.max_send_wr = e->options.depth,
				.max_recv_wr = e->receives,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = inlines[i]},
			.qp_type = IBV_QPT_RC,
		};

		errno = 0;
		qp = e->verbs->create_qp(e->pd, &attr);
		if (qp && (!e->qp[0] || attr.cap.max_inline_data < e->max_inline))
			e->max_inline = attr.cap.max_inline_data;
		if (!qp && errno != EINVAL && errno != ENOMEM && errno != EOPNOTSUPP)
			break;
	}
	return qp;
}

int pp_endpoint_make_qps(struct pp_endpoint *e, struct pp_error *err)
{
	char call[96];
	int r;

	e->rd_atomic = at_most(count(e->device.max_qp_init_rd_atom), RD_ATOMIC_FIELD);
	for (unsigned int i = 0; i < e->options.qps; i++) {
		struct ibv_qp *qp = make(e);

		if (!qp) {
			(void)snprintf(call, sizeof(call),
				       "ibv_create_qp (RC, number %u, %u sends, %u receives)",
				       i + 1, e->options.depth, e->receives);
			return pp_endpoint_fails(e->options.device, call, errno, err);
		}
		e->qp[i] = qp;
		e->psn[i] = pp_endpoint_random_psn();
		r = to_init(e, i, err);
		if (r)
			return r;
	}
	return 0;
}

/* ── connecting ── */

static bool other_subnet(const struct pp_endpoint *e, const struct pp_address *peer)
{
	static const uint8_t none[8];

	return memcmp(e->gid.raw, peer->gid, sizeof(none)) && memcmp(peer->gid, none, sizeof(none));
}

static struct ibv_ah_attr path_to(const struct pp_endpoint *e, const struct pp_address *peer)
{
	struct ibv_ah_attr ah = {
		.dlid = peer->lid,
		.sl = (uint8_t)e->options.sl,
		.port_num = e->options.port,
		.is_global = peer->ethernet || e->grh || other_subnet(e, peer),
	};

	if (ah.is_global) {
		memcpy(ah.grh.dgid.raw, peer->gid, sizeof(ah.grh.dgid.raw));
		ah.grh.sgid_index = (uint8_t)e->options.gid_index;
		ah.grh.hop_limit = HOP_LIMIT;
		ah.grh.traffic_class = (uint8_t)e->options.traffic_class;
	}
	return ah;
}

void pp_endpoint_address(const struct pp_endpoint *e, unsigned int qp, struct pp_address *ret)
{
	*ret = (struct pp_address){
		.qpn = e->qp[qp]->qp_num,
		.psn = e->psn[qp],
		.lid = e->port.lid,
		.mtu = e->options.mtu,
		.rd_atomic = at_most(count(e->device.max_qp_rd_atom), RD_ATOMIC_FIELD),
		.ethernet = e->port.link_layer == IBV_LINK_LAYER_ETHERNET,
	};
	memcpy(ret->gid, e->gid.raw, sizeof(ret->gid));
}

static int to_rtr(struct pp_endpoint *e, unsigned int qp, const struct pp_address *peer,
		  struct pp_error *err)
{
	unsigned int mtu = peer->mtu < e->options.mtu ? peer->mtu : e->options.mtu;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = pp_endpoint_mtu(mtu),
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = at_most(count(e->device.max_qp_rd_atom), RD_ATOMIC_FIELD),
		.min_rnr_timer = MIN_RNR_TIMER,
		.ah_attr = path_to(e, peer),
	};

	return pp_endpoint_modify(e, qp, &attr,
				  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					  IBV_QP_MIN_RNR_TIMER,
				  "RTR", err);
}

static int to_rts(struct pp_endpoint *e, unsigned int qp, uint8_t rd_atomic, struct pp_error *err)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = (uint8_t)e->options.timeout,
		.retry_cnt = (uint8_t)e->options.retries,
		.rnr_retry = RNR_FOR_EVER,
		.sq_psn = e->psn[qp],
		.max_rd_atomic = rd_atomic,
	};

	return pp_endpoint_modify(e, qp, &attr,
				  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					  IBV_QP_MAX_QP_RD_ATOMIC,
				  "RTS", err);
}

int pp_endpoint_connect(struct pp_endpoint *e, unsigned int qp, const struct pp_address *peer,
			struct pp_error *err)
{
	bool ethernet = e->port.link_layer == IBV_LINK_LAYER_ETHERNET;
	uint8_t rd_atomic = at_most(count(e->device.max_qp_init_rd_atom), peer->rd_atomic);
	int r;

	if (qp >= e->options.qps)
		return pp_error_set(err, -EINVAL, "%s: no queue pair %u", e->options.device, qp);
	if (peer->ethernet != ethernet)
		return pp_error_set(err, -EPROTO,
				    "%s port %u is %s and the peer's port is %s: choose two ports "
				    "of one kind",
				    e->options.device, e->options.port,
				    ethernet ? "Ethernet (RoCE)" : "InfiniBand",
				    peer->ethernet ? "Ethernet (RoCE)" : "InfiniBand");
	if (!ethernet && !peer->lid && !e->grh && !other_subnet(e, peer))
		return pp_error_set(err, -EPROTO,
				    "the peer's port has no LID: does a subnet manager run?");
	r = to_rtr(e, qp, peer, err);
	if (!r)
		r = to_rts(e, qp, rd_atomic, err);
	if (!r && rd_atomic < e->rd_atomic)
		e->rd_atomic = rd_atomic;
	return r;
}

/* Completions of a queue pair that is in RESET mean nothing any more. */
static void drain(struct pp_endpoint *e)
{
	struct ibv_wc wc[32];
	int most = e->cq->cqe > 0 ? e->cq->cqe : 1;

	for (int taken = 0; taken <= most;) {
		int n = ibv_poll_cq(e->cq, (int)PP_ARRAY_LEN(wc), wc);

		if (n <= 0)
			break;
		taken += n;
	}
}

int pp_endpoint_reset(struct pp_endpoint *e, unsigned int qp, struct pp_error *err)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	int r;

	if (qp >= e->options.qps)
		return pp_error_set(err, -EINVAL, "%s: no queue pair %u", e->options.device, qp);
	r = pp_endpoint_modify(e, qp, &attr, IBV_QP_STATE, "RESET", err);
	if (r)
		return r;
	drain(e);
	e->psn[qp] = pp_endpoint_random_psn();
	return to_init(e, qp, err);
}
