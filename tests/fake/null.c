/* SPDX-License-Identifier: Apache-2.0 */
#include "null.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct null null;

struct queue_pair {
	struct ibv_qp qp;
	bool made, failed;
	uint64_t posted, done; /* send requests; done: polled */
	uint32_t receive_at, receive_end;
	uint64_t receive[NULL_RECEIVES];
};

struct completion {
	struct ibv_wc wc;
	uint64_t posted; /* send requests that are done when it is polled; 0: a receive's */
	struct queue_pair *of;
};

static struct ibv_device device = {.name = "null0", .dev_name = "uverbs0"};
static struct ibv_context context = {.device = &device, .async_fd = -1};
static struct ibv_pd pd = {.context = &context};
static struct ibv_cq cq;
static struct queue_pair pairs[NULL_QPS];
static struct completion completions[NULL_COMPLETIONS];
static uint32_t head, tail;

static bool fails(void)
{
	null.calls++;
	if (null.calls != null.fail_nth)
		return false;
	errno = ENOMEM;
	return true;
}

/* ── traffic ── */

static void complete(struct queue_pair *p, uint64_t id, enum ibv_wc_status status, uint64_t posted,
		     uint32_t length)
{
	if (head - tail >= (uint32_t)cq.cqe || head - tail >= NULL_COMPLETIONS) {
		null.overflows++;
		return;
	}
	completions[head++ % NULL_COMPLETIONS] = (struct completion){
		.wc = {.wr_id = id,
		       .status = status,
		       .qp_num = p->qp.qp_num,
		       .vendor_err = status ? 0x51 : 0,
		       .byte_len = length},
		.posted = posted,
		.of = p,
	};
}

static void note(unsigned int index, const struct ibv_send_wr *wr)
{
	if (null.sends < null.n_log)
		null.log[null.sends] = (struct null_message){
			.qp = index,
			.id = wr->wr_id,
			.local = wr->num_sge ? wr->sg_list->addr : 0,
			.lkey = wr->num_sge ? wr->sg_list->lkey : 0,
			.length = wr->num_sge ? wr->sg_list->length : 0,
			.remote = wr->wr.rdma.remote_addr,
			.rkey = wr->wr.rdma.rkey,
			.opcode = wr->opcode,
			.flags = wr->send_flags,
		};
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct queue_pair *p = (struct queue_pair *)qp;
	unsigned int index = (unsigned int)(p - pairs);
	bool wanted;

	null.posts++;
	for (; wr; wr = wr->next) {
		*bad = wr;
		if (p->posted - p->done >= null.cap[index].max_send_wr)
			return ENOMEM;
		if (null.refuse_at && null.posts == null.refuse_at)
			return EINVAL;
		if (null.log)
			note(index, wr);
		null.sends++;
		p->posted++;
		wanted = wr->send_flags & IBV_SEND_SIGNALED;
		null.signalled += wanted;
		if (null.on_send)
			null.on_send(index, wr);
		if (null.mute)
			continue;
		if (p->failed)
			complete(p, wr->wr_id, IBV_WC_WR_FLUSH_ERR, p->posted, 0);
		else if (null.error_at && null.sends >= null.error_at) {
			p->failed = true;
			complete(p, wr->wr_id, null.status, p->posted, 0);
		} else if (wanted)
			complete(p, wr->wr_id, IBV_WC_SUCCESS, p->posted, 0);
	}
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct queue_pair *p = (struct queue_pair *)qp;
	uint32_t most = null.cap[p - pairs].max_recv_wr;

	for (; wr; wr = wr->next) {
		*bad = wr;
		if (p->receive_end - p->receive_at >= most)
			return ENOMEM;
		p->receive[p->receive_end++ % NULL_RECEIVES] = wr->wr_id;
		null.receives++;
	}
	return 0;
}

static int poll_cq(struct ibv_cq *from, int n, struct ibv_wc *wc)
{
	int got = 0;

	(void)from;
	null.polls++;
	if (head == tail && null.on_empty)
		null.on_empty();
	while (got < n && tail != head) {
		const struct completion *c = &completions[tail++ % NULL_COMPLETIONS];

		if (c->posted)
			c->of->done = c->posted;
		wc[got++] = c->wc;
	}
	return got;
}

bool null_deliver(unsigned int index, uint32_t length)
{
	struct queue_pair *p = &pairs[index];

	if (p->receive_at == p->receive_end)
		return false;
	complete(p, p->receive[p->receive_at++ % NULL_RECEIVES], IBV_WC_SUCCESS, 0, length);
	return true;
}

unsigned int null_receives(unsigned int index)
{
	return pairs[index].receive_end - pairs[index].receive_at;
}

/* ── objects ── */

static struct ibv_device **get_device_list(int *n)
{
	struct ibv_device **list = fails() ? NULL : calloc(2, sizeof(struct ibv_device *));

	*n = list ? 1 : 0;
	if (list) {
		list[0] = &device;
		null.live++;
	}
	return list;
}

static void free_device_list(struct ibv_device **list)
{
	free((void *)list);
	null.live--;
}

static const char *get_device_name(struct ibv_device *d)
{
	return d->name;
}

static struct ibv_context *open_device(struct ibv_device *d)
{
	(void)d;
	if (fails())
		return NULL;
	context.ops.post_send = post_send;
	context.ops.post_recv = post_recv;
	context.ops.poll_cq = poll_cq;
	null.live++;
	return &context;
}

static int close_device(struct ibv_context *c)
{
	(void)c;
	null.live--;
	return 0;
}

static int query_device(struct ibv_context *c, struct ibv_device_attr *ret)
{
	(void)c;
	if (fails())
		return ENOMEM;
	*ret = null.device;
	return 0;
}

static int query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *ret)
{
	(void)c;
	(void)port;
	if (fails())
		return ENOMEM;
	*ret = null.port;
	return 0;
}

static int query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t index,
			struct ibv_gid_entry *ret, uint32_t flags, size_t size)
{
	static const union ibv_gid empty;

	(void)c;
	(void)port;
	(void)flags;
	if (fails())
		return ENOMEM;
	if (index >= NULL_GIDS || size != sizeof(*ret))
		return EINVAL;
	if (!memcmp(&null.gid[index].gid, &empty, sizeof(empty)))
		return ENODATA;
	*ret = null.gid[index];
	return 0;
}

static int query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *ret)
{
	(void)c;
	(void)port;
	if (fails() || index < 0 || index >= NULL_GIDS)
		return -1;
	*ret = null.gid[index].gid;
	return 0;
}

static struct ibv_pd *alloc_pd(struct ibv_context *c)
{
	(void)c;
	if (fails())
		return NULL;
	null.live++;
	return &pd;
}

static int dealloc_pd(struct ibv_pd *p)
{
	(void)p;
	null.live--;
	return 0;
}

static struct ibv_cq *create_cq(struct ibv_context *c, int cqe, void *owner,
				struct ibv_comp_channel *channel, int vector)
{
	(void)vector;
	if (fails())
		return NULL;
	cq = (struct ibv_cq){.context = c, .cqe = cqe, .cq_context = owner, .channel = channel};
	head = tail = 0;
	null.live++;
	return &cq;
}

static int destroy_cq(struct ibv_cq *c)
{
	(void)c;
	null.live--;
	return 0;
}

static struct ibv_qp *create_qp(struct ibv_pd *p, struct ibv_qp_init_attr *attr)
{
	unsigned int i = 0;

	if (fails())
		return NULL;
	if (attr->cap.max_inline_data > null.max_inline) {
		errno = EINVAL;
		return NULL;
	}
	while (i < NULL_QPS && pairs[i].made)
		i++;
	if (i == NULL_QPS) {
		errno = ENOMEM;
		return NULL;
	}
	pairs[i].made = true;
	pairs[i].failed = false;
	pairs[i].posted = pairs[i].done = 0;
	pairs[i].receive_at = pairs[i].receive_end = 0;
	pairs[i].qp = (struct ibv_qp){.context = p->context,
				      .pd = p,
				      .send_cq = attr->send_cq,
				      .recv_cq = attr->recv_cq,
				      .qp_num = 0x100 + i,
				      .qp_type = attr->qp_type};
	null.cap[i] = attr->cap;
	null.live++;
	return &pairs[i].qp;
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct queue_pair *p = (struct queue_pair *)qp;
	struct ibv_qp_attr *kept = &null.attr[p - pairs];

	if (fails())
		return ENOMEM;
	kept->qp_state = attr->qp_state;
	if (mask & IBV_QP_AV)
		kept->ah_attr = attr->ah_attr;
	if (mask & IBV_QP_PATH_MTU)
		kept->path_mtu = attr->path_mtu;
	if (mask & IBV_QP_DEST_QPN)
		kept->dest_qp_num = attr->dest_qp_num;
	if (mask & IBV_QP_RQ_PSN)
		kept->rq_psn = attr->rq_psn;
	if (mask & IBV_QP_SQ_PSN)
		kept->sq_psn = attr->sq_psn;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		kept->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		kept->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IBV_QP_TIMEOUT)
		kept->timeout = attr->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		kept->retry_cnt = attr->retry_cnt;
	if (mask & IBV_QP_PKEY_INDEX)
		kept->pkey_index = attr->pkey_index;
	if (attr->qp_state == IBV_QPS_RESET) {
		p->failed = false;
		p->posted = p->done = 0;
		p->receive_at = p->receive_end = 0;
	}
	return 0;
}

static int destroy_qp(struct ibv_qp *qp)
{
	((struct queue_pair *)qp)->made = false;
	null.live--;
	return 0;
}

static const char *event_text(enum ibv_event_type type)
{
	(void)type;
	return "event";
}

static int get_async_event(struct ibv_context *c, struct ibv_async_event *ret)
{
	(void)c;
	(void)ret;
	return -1;
}

static void ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

void null_reset(void)
{
	memset(pairs, 0, sizeof(pairs));
	head = tail = 0;
	null = (struct null){
		.device = {.max_qp = NULL_QPS,
			   .max_qp_wr = 8192,
			   .max_cqe = NULL_COMPLETIONS,
			   .max_qp_rd_atom = 16,
			   .max_qp_init_rd_atom = 8,
			   .phys_port_cnt = 1},
		.port = {.state = IBV_PORT_ACTIVE,
			 .max_mtu = IBV_MTU_4096,
			 .active_mtu = IBV_MTU_4096,
			 .gid_tbl_len = NULL_GIDS,
			 .max_msg_sz = 1U << 31,
			 .link_layer = IBV_LINK_LAYER_ETHERNET},
		.gid[0] = {.gid.raw = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1},
			   .gid_type = IBV_GID_TYPE_ROCE_V2},
		.max_inline = 220,
	};
}

const struct pp_verbs *null_verbs(void)
{
	static struct pp_verbs verbs;

	verbs = (struct pp_verbs){
		.get_device_list = get_device_list,
		.free_device_list = free_device_list,
		.get_device_name = get_device_name,
		.open_device = open_device,
		.close_device = close_device,
		.query_device = query_device,
		.query_port = query_port,
		.query_gid = query_gid,
		.query_gid_ex = null.old_library ? NULL : query_gid_ex,
		.alloc_pd = alloc_pd,
		.dealloc_pd = dealloc_pd,
		.create_cq = create_cq,
		.destroy_cq = destroy_cq,
		.create_qp = create_qp,
		.modify_qp = modify_qp,
		.destroy_qp = destroy_qp,
		.get_async_event = get_async_event,
		.ack_async_event = ack_async_event,
		.event_text = event_text,
	};
	return &verbs;
}
