/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This side's device, memory and QPs. QPs live for one op: each op starts on fresh ones with other
 * sequence numbers, half of them close to the wrap at 2^24.
 */
#include "check.h"

#include <errno.h>

#include <string.h>
#include <sys/mman.h>

#include "base/banned.h"

enum { PP_DEPTH = 16 };

static struct ibv_context *pp_device_open(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (size_t i = 0; list && list[i]; i++)
		if (!name || !strcmp(name, ibv_get_device_name(list[i]))) {
			context = ibv_open_device(list[i]);
			break;
		}
	if (list)
		ibv_free_device_list(list);
	return context;
}

int pp_end_open(struct pp_end *end, const char *device, uint8_t port, uint8_t gid_index)
{
	struct ibv_port_attr attr;
	union ibv_gid gid;

	*end = (struct pp_end){.port = port, .gid_index = gid_index};
	end->context = pp_device_open(device);
	if (!end->context)
		return -ENODEV;
	if (ibv_query_port(end->context, port, &attr) || attr.state != IBV_PORT_ACTIVE)
		return -ENETDOWN;
	if (ibv_query_gid(end->context, port, gid_index, &gid))
		return -EADDRNOTAVAIL;
	memcpy(end->mine.gid, gid.raw, sizeof(end->mine.gid));
	end->mtu = attr.active_mtu;
	end->pd = ibv_alloc_pd(end->context);
	if (!end->pd)
		return -errno;
	end->sent = ibv_create_cq(end->context, PP_DEPTH * PP_QPS_MAX, NULL, NULL, 0);
	end->received = ibv_create_cq(end->context, PP_DEPTH * PP_QPS_MAX, NULL, NULL, 0);
	return end->sent && end->received ? 0 : -errno;
}

int pp_end_reserve(struct pp_end *end, unsigned int qps, size_t largest)
{
	const int open = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

	end->qps = qps;
	end->half = (largest + PP_GRH + 4 * PP_GUARD + 4095) / 4096 * 4096;
	end->len = 2 * end->half * qps;
	end->memory =
		mmap(NULL, end->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (end->memory == MAP_FAILED) {
		end->memory = NULL;
		return -errno;
	}
	end->mr = ibv_reg_mr(end->pd, end->memory, end->len, open);
	if (!end->mr)
		return -errno;
	end->mr_read_only = ibv_reg_mr(end->pd, end->memory, end->len,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!end->mr_read_only)
		return -errno;
	end->mine.memory = (uintptr_t)end->memory;
	end->mine.key = end->mr->rkey;
	end->mine.key_read_only = end->mr_read_only->rkey;
	return 0;
}

static int pp_qp_init(struct pp_end *end, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = end->port};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	if (qp->qp_type == IBV_QPT_UD) {
		attr.qkey = PP_QKEY;
		mask |= IBV_QP_QKEY;
	} else {
		attr.qp_access_flags =
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
		mask |= IBV_QP_ACCESS_FLAGS;
	}
	return ibv_modify_qp(qp, &attr, mask);
}

static struct ibv_ah_attr pp_end_route(const struct pp_end *end)
{
	struct ibv_ah_attr ah = {
		.is_global = 1,
		.port_num = end->port,
		.grh = {.sgid_index = end->gid_index, .hop_limit = 64},
	};

	memcpy(ah.grh.dgid.raw, end->far.gid, sizeof(ah.grh.dgid.raw));
	return ah;
}

static int pp_qp_connect(struct pp_end *end, unsigned int i)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = end->mtu};
	int mask = IBV_QP_STATE, err;

	if (end->qp[i]->qp_type != IBV_QPT_UD) {
		attr.dest_qp_num = (uint32_t)end->far.qpn[i];
		attr.rq_psn = (uint32_t)end->far.psn;
		attr.ah_attr = pp_end_route(end);
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	}
	if (end->qp[i]->qp_type == IBV_QPT_RC) {
		attr.max_dest_rd_atomic = 4;
		attr.min_rnr_timer = 12;
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
	err = ibv_modify_qp(end->qp[i], &attr, mask);
	if (err)
		return err;
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = (uint32_t)end->mine.psn};
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (end->qp[i]->qp_type == IBV_QPT_RC) {
		attr.timeout = 16; /* a guest may not run for a while */
		attr.retry_cnt = 7;
		attr.rnr_retry = 7;
		attr.max_rd_atomic = 4;
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	}
	return ibv_modify_qp(end->qp[i], &attr, mask);
}

int pp_end_join(struct pp_end *end, int fd, enum ibv_qp_type type, uint32_t psn)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->sent,
		.recv_cq = end->received,
		.cap = {PP_DEPTH, PP_DEPTH, 2, 2, PP_INLINE},
		.qp_type = type,
		.sq_sig_all = 1,
	};
	struct ibv_ah_attr route;
	int err = 0;

	for (unsigned int i = 0; i < end->qps && !err; i++) {
		end->qp[i] = pp_post_qp(end, &init);
		if (!end->qp[i])
			return -errno;
		end->mine.qpn[i] = end->qp[i]->qp_num;
		err = pp_qp_init(end, end->qp[i]);
	}
	end->mine.psn = psn;
	end->mine.mtu = end->mtu;
	if (err || (err = -pp_talk_words(fd, (const uint64_t *)&end->mine, (uint64_t *)&end->far,
					 sizeof(end->mine) / sizeof(uint64_t))))
		return -err;
	if (end->far.mtu < IBV_MTU_256 || end->far.mtu > IBV_MTU_4096)
		return -EPROTO;
	if (end->far.mtu < end->mtu)
		end->mtu = (enum ibv_mtu)end->far.mtu;
	for (unsigned int i = 0; i < end->qps && !err; i++)
		err = pp_qp_connect(end, i);
	if (!err && type == IBV_QPT_UD) {
		route = pp_end_route(end);
		end->ah = ibv_create_ah(end->pd, &route);
		err = end->ah ? 0 : errno;
	}
	return -err;
}

void pp_end_part(struct pp_end *end)
{
	struct ibv_wc wc;

	pp_windows_free(end);
	for (unsigned int i = 0; i < end->qps; i++)
		if (end->qp[i]) {
			ibv_destroy_qp(end->qp[i]);
			end->qp[i] = NULL;
		}
	if (end->ah)
		ibv_destroy_ah(end->ah);
	end->ah = NULL;
	/* Flushed requests must not be taken for those of the next op. */
	for (int i = 0; i < 2 * PP_DEPTH * PP_QPS_MAX; i++)
		if (ibv_poll_cq(end->sent, 1, &wc) < 1 && ibv_poll_cq(end->received, 1, &wc) < 1)
			break;
}

void pp_end_done(struct pp_end *end)
{
	if (!end->context)
		return;
	if (end->sent && end->received)
		pp_end_part(end);
	if (end->mr_read_only)
		ibv_dereg_mr(end->mr_read_only);
	if (end->mr)
		ibv_dereg_mr(end->mr);
	if (end->sent)
		ibv_destroy_cq(end->sent);
	if (end->received)
		ibv_destroy_cq(end->received);
	if (end->pd)
		ibv_dealloc_pd(end->pd);
	ibv_close_device(end->context);
	if (end->memory)
		munmap(end->memory, end->len);
}
