/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion queues and shared receive queues as a client changes them, and what happens when one
 * overruns: by rdma-core's manual pages (ibv_modify_cq, ibv_modify_srq, ibv_alloc_null_mr,
 * ibv_advise_mr, ibv_alloc_td) and the InfiniBand Architecture Specification, volume 1, 11.6.3.2.
 */
#include "soft_abi_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

static int post_write(struct ibv_qp *qp, unsigned int flags)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = flags}, *bad;

	return ibv_post_send(qp, &wr, &bad);
}

/* The queue, and every queue pair that completes to it, are in error; others are not. */
static void test_overrun(void **state)
{
	int told_cq = 0, told_qp = 0;
	struct ibv_qp_attr is;
	struct ibv_qp_init_attr attr;
	struct ibv_async_event event;
	struct ibv_qp *qp, *idle, *other;
	struct ibv_cq *small;
	struct client c;

	(void)state;
	client_open(&c);
	small = ibv_create_cq(c.context, 1, NULL, NULL, 0);
	attr = (struct ibv_qp_init_attr){.send_cq = small,
					 .recv_cq = c.cq,
					 .cap = {.max_send_wr = 8, .max_send_sge = 1},
					 .qp_type = IBV_QPT_RC};
	qp = ibv_create_qp(c.pd, &attr);
	idle = ibv_create_qp(c.pd, &attr);
	other = client_qp(&c, IBV_QPT_RC, NULL);
	assert_non_null(qp);
	assert_non_null(idle);
	client_to_init(qp);
	client_connect(&c, qp, qp->qp_num);
	client_to_init(idle);
	client_to_init(other);
	client_connect(&c, other, other->qp_num);
	assert_int_equal(fcntl(c.context->async_fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(ibv_get_async_event(c.context, &event), -1);
	assert_int_equal(errno, EAGAIN);
	for (int i = 0; i < 4; i++)
		assert_int_equal(post_write(qp, IBV_SEND_SIGNALED), 0);
	while (told_cq < 1 || told_qp < 2) {
		struct pollfd p = {.fd = c.context->async_fd, .events = POLLIN};

		assert_int_equal(poll(&p, 1, 10000), 1);
		if (ibv_get_async_event(c.context, &event))
			continue;
		if (event.event_type == IBV_EVENT_CQ_ERR) {
			assert_ptr_equal(event.element.cq, small);
			told_cq++;
		} else if (event.event_type == IBV_EVENT_QP_FATAL) {
			assert_true(event.element.qp == qp || event.element.qp == idle);
			told_qp++;
		}
		ibv_ack_async_event(&event);
	}
	assert_int_equal(told_cq, 1);
	assert_int_equal(ibv_query_qp(qp, &is, IBV_QP_STATE, &attr), 0);
	assert_int_equal(is.qp_state, IBV_QPS_ERR);
	assert_int_equal(ibv_query_qp(idle, &is, IBV_QP_STATE, &attr), 0);
	assert_int_equal(is.qp_state, IBV_QPS_ERR);
	assert_int_equal(ibv_query_qp(other, &is, IBV_QP_STATE, &attr), 0);
	assert_int_equal(is.qp_state, IBV_QPS_RTS);
	assert_int_equal(post_write(other, IBV_SEND_SIGNALED), 0);
	assert_int_equal(client_wait(c.cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(other), 0);
	assert_int_equal(ibv_destroy_qp(idle), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(small), 0);
	client_close(&c);
}

/* Who asked not to hear of it does not. */
static void test_overrun_ignored(void **state)
{
	struct ibv_cq_init_attr_ex with = {.cqe = 1,
					   .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					   .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN};
	struct ibv_qp_init_attr attr;
	struct ibv_async_event event;
	struct ibv_qp_attr is;
	struct ibv_cq_ex *small;
	struct ibv_qp *qp;
	struct client c;

	(void)state;
	client_open(&c);
	small = ibv_create_cq_ex(c.context, &with);
	assert_non_null(small);
	attr = (struct ibv_qp_init_attr){.send_cq = ibv_cq_ex_to_cq(small),
					 .recv_cq = c.cq,
					 .cap = {.max_send_wr = 8, .max_send_sge = 1},
					 .qp_type = IBV_QPT_RC};
	qp = ibv_create_qp(c.pd, &attr);
	client_to_init(qp);
	client_connect(&c, qp, qp->qp_num);
	assert_int_equal(fcntl(c.context->async_fd, F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(post_write(qp, IBV_SEND_SIGNALED), 0);
	usleep(50000);
	while (ibv_get_async_event(c.context, &event) == 0) {
		assert_int_equal(event.event_type, IBV_EVENT_COMM_EST);
		ibv_ack_async_event(&event);
	}
	assert_int_equal(ibv_query_qp(qp, &is, IBV_QP_STATE, &attr), 0);
	assert_int_equal(is.qp_state, IBV_QPS_RTS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(small)), 0);
	client_close(&c);
}

static int event_within(struct ibv_comp_channel *channel, int ms)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	if (poll(&p, 1, ms) != 1)
		return 0;
	assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	return 1;
}

static void drain(struct ibv_cq *cq, int n)
{
	for (; n; n--)
		assert_int_equal(client_wait(cq).status, IBV_WC_SUCCESS);
}

static void test_moderation(void **state)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
					  .moderate = {.cq_count = 4, .cq_period = UINT16_MAX}};
	struct ibv_comp_channel *channel;
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct client c;

	(void)state;
	client_open(&c);
	channel = ibv_create_comp_channel(c.context);
	cq = ibv_create_cq(c.context, 16, NULL, channel, 0);
	init = (struct ibv_qp_init_attr){.send_cq = cq,
					 .recv_cq = c.cq,
					 .cap = {.max_send_wr = 16, .max_send_sge = 1},
					 .qp_type = IBV_QPT_RC};
	qp = ibv_create_qp(c.pd, &init);
	client_to_init(qp);
	client_connect(&c, qp, qp->qp_num);
	assert_int_equal(ibv_modify_cq(cq, &attr), 0);
	/* four: at once, well before the period */
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(post_write(qp, IBV_SEND_SIGNALED), 0);
	assert_int_equal(event_within(channel, 10000), 1);
	drain(cq, 4);
	/* one: not at once, but when the period (65.5 ms) is over, though nobody polls */
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(post_write(qp, IBV_SEND_SIGNALED), 0);
	assert_int_equal(event_within(channel, 20), 0);
	assert_int_equal(event_within(channel, 10000), 1);
	drain(cq, 1);
	/* without moderation again */
	attr.moderate.cq_count = attr.moderate.cq_period = 0;
	assert_int_equal(ibv_modify_cq(cq, &attr), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(post_write(qp, IBV_SEND_SIGNALED), 0);
	assert_int_equal(event_within(channel, 10000), 1);
	drain(cq, 1);
	attr.attr_mask = 1 << 5;
	assert_int_equal(ibv_modify_cq(cq, &attr), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	client_close(&c);
}

static void test_srq(void **state)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq_attr attr;
	struct ibv_recv_wr recv = {0}, *bad;
	struct ibv_async_event event;
	struct ibv_srq *srq;
	struct client c;

	(void)state;
	client_open(&c);
	srq = ibv_create_srq(c.pd, &init);
	assert_non_null(srq);
	for (uint32_t i = 0; i < init.attr.max_wr; i++)
		assert_int_equal(ibv_post_srq_recv(srq, &recv, &bad), 0);
	assert_int_equal(ibv_post_srq_recv(srq, &recv, &bad), ENOMEM);
	attr = (struct ibv_srq_attr){.max_wr = 1};
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr = (struct ibv_srq_attr){.max_wr = 1 << 20};
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr = (struct ibv_srq_attr){.max_wr = 64, .srq_limit = 65};
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, init.attr.max_wr); /* nothing changed */
	attr = (struct ibv_srq_attr){.max_wr = 64, .srq_limit = 64};
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	/* fewer are there than the limit says: told at once */
	assert_int_equal(ibv_get_async_event(c.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, srq);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, 64);
	assert_int_equal(attr.srq_limit, 0);
	assert_int_equal(ibv_post_srq_recv(srq, &recv, &bad), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	client_close(&c);
}

/* What is written to the null region is gone, what is read from it is zero. */
static void test_null_region(void **state)
{
	uint8_t *memory = aligned_alloc(PAGE, PAGE);
	struct ibv_send_wr wr, *bad;
	struct ibv_mr *mr, *null;
	struct ibv_sge sge[2];
	struct ibv_qp *qp;
	struct client c;

	(void)state;
	assert_non_null(memory);
	memset(memory, 0xa5, PAGE);
	client_open(&c);
	qp = client_qp(&c, IBV_QPT_RC, NULL);
	client_to_init(qp);
	client_connect(&c, qp, qp->qp_num);
	mr = ibv_reg_mr(c.pd, memory, PAGE,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	null = ibv_alloc_null_mr(c.pd);
	assert_non_null(null);
	assert_null(null->addr);
	/* 100 bytes of nothing, then 10 of memory, written to memory */
	sge[0] = (struct ibv_sge){0x1234567, 100, null->lkey};
	sge[1] = (struct ibv_sge){(uintptr_t)memory, 10, mr->lkey};
	wr = (struct ibv_send_wr){.sg_list = sge,
				  .num_sge = 2,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = {(uintptr_t)memory + 1000, mr->rkey}};
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(client_wait(c.cq).status, IBV_WC_SUCCESS);
	for (int i = 0; i < PAGE; i++)
		assert_int_equal(memory[i], i >= 1000 && i < 1100 ? 0 : 0xa5);
	/* read: the first 100 bytes go nowhere */
	wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(client_wait(c.cq).status, IBV_WC_SUCCESS);
	/* no peer's key */
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.num_sge = 1;
	sge[0] = sge[1];
	wr.wr.rdma.rkey = null->lkey;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_not_equal(client_wait(c.cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_dereg_mr(null), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	client_close(&c);
	free(memory);
}

static int advise(struct ibv_pd *pd, int advice, uint32_t flags, uint64_t addr, uint32_t length,
		  uint32_t lkey)
{
	struct ibv_sge sge = {addr, length, lkey};

	return ibv_advise_mr(pd, (enum ib_uverbs_advise_mr_advice)advice, flags, &sge, 1);
}

static void test_advice(void **state)
{
	uint8_t *memory =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_pd *other;
	struct ibv_mr *mr, *sealed;
	struct client c;
	uint8_t there[4];
	uint64_t at;

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	at = (uintptr_t)memory;
	client_open(&c);
	other = ibv_alloc_pd(c.context);
	mr = ibv_reg_mr(c.pd, memory, 4 * PAGE, IBV_ACCESS_LOCAL_WRITE);
	sealed = ibv_reg_mr(c.pd, memory, PAGE, 0);
	assert_int_equal(mincore(memory, 4 * PAGE, there), 0);
	assert_int_equal(there[2] & 1, 0);
	assert_int_equal(advise(c.pd, 1, 1, at + 2 * PAGE + 5, 10, mr->lkey), 0);
	assert_int_equal(mincore(memory, 4 * PAGE, there), 0);
	assert_int_equal(there[2] & 1, 1);
	assert_int_equal(advise(c.pd, 0, 0, at, 4 * PAGE, mr->lkey), 0);
	assert_int_equal(advise(c.pd, 2, 0, at, PAGE, mr->lkey), 0);
	assert_int_equal(advise(c.pd, 3, 0, at, PAGE, mr->lkey), EOPNOTSUPP);
	assert_int_equal(advise(c.pd, 0, 2, at, PAGE, mr->lkey), EINVAL);
	assert_int_equal(ibv_advise_mr(c.pd, (enum ib_uverbs_advise_mr_advice)0, 0, NULL, 0),
			 EINVAL);
	assert_int_equal(advise(c.pd, 0, 0, at, 4 * PAGE + 1, mr->lkey), EFAULT);
	assert_int_equal(advise(c.pd, 0, 0, at, PAGE, mr->lkey ^ 0x10000), EFAULT);
	assert_int_equal(advise(other, 0, 0, at, PAGE, mr->lkey), EPERM);
	assert_int_equal(advise(c.pd, 1, 0, at, PAGE, sealed->lkey), EPERM);
	assert_int_equal(advise(c.pd, 0, 0, at, PAGE, sealed->lkey), 0);
	assert_int_equal(ibv_dereg_mr(sealed), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	client_close(&c);
	munmap(memory, 4 * PAGE);
}

static void test_thread_domains(void **state)
{
	struct ibv_td_init_attr attr = {.comp_mask = 1};
	struct ibv_parent_domain_init_attr parent = {0};
	struct ibv_pd *domain;
	struct ibv_td *td;
	struct client c;

	(void)state;
	client_open(&c);
	assert_null(ibv_alloc_td(c.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask = 0;
	td = ibv_alloc_td(c.context, &attr);
	assert_non_null(td);
	assert_null(ibv_alloc_parent_domain(c.context, &parent)); /* of no domain */
	parent.pd = c.pd;
	parent.td = td;
	parent.comp_mask = 1 << 7;
	assert_null(ibv_alloc_parent_domain(c.context, &parent));
	assert_int_equal(errno, EINVAL);
	parent.comp_mask = 0;
	domain = ibv_alloc_parent_domain(c.context, &parent);
	assert_non_null(domain);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(c.pd), EBUSY);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	client_close(&c);
}

/* What a device says it can, it can; and of the rest nothing. */
static void test_capabilities(void **state)
{
	static const uint8_t zero[64];
	struct ibv_device_attr_ex a;
	struct ibv_port_attr port;
	struct client c;

	(void)state;
	client_open(&c);
	memset(&a, 0xff, sizeof(a));
	assert_int_equal(ibv_query_device_ex(c.context, NULL, &a), 0);
	assert_int_equal(a.comp_mask, 0);
	assert_memory_equal(&a.odp_caps, zero, sizeof(a.odp_caps));
	assert_memory_equal(&a.tso_caps, zero, sizeof(a.tso_caps));
	assert_memory_equal(&a.rss_caps, zero, sizeof(a.rss_caps));
	assert_memory_equal(&a.packet_pacing_caps, zero, sizeof(a.packet_pacing_caps));
	assert_memory_equal(&a.tm_caps, zero, sizeof(a.tm_caps));
	assert_int_equal(a.max_wq_type_rq, 0);
	assert_int_equal(a.raw_packet_caps, 0);
	assert_int_equal(a.max_dm_size, 0);
	assert_int_equal(a.xrc_odp_caps, 0);
	assert_int_equal(a.hca_core_clock, 1000000);
	assert_int_equal(a.cq_mod_caps.max_cq_count, UINT16_MAX);
	assert_int_equal(a.orig_attr.max_mcast_grp, 0);
	assert_true(a.orig_attr.max_mw > 0);
	assert_int_equal(a.orig_attr.device_cap_flags & IBV_DEVICE_XRC, 0);
	assert_int_not_equal(a.orig_attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B, 0);
	assert_int_equal(a.orig_attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A, 0);
	assert_int_equal(a.device_cap_flags_ex, a.orig_attr.device_cap_flags);
	assert_int_equal(ibv_query_port(c.context, 1, &port), 0);
	assert_int_equal(port.max_msg_sz, 1 << 30);
	client_close(&c);
}

/* By rdma-core's own answer where a provider has no such verb. */
static void test_refusals(void **state)
{
	struct ibv_xrcd_init_attr xrcd = {.comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1};
	struct ibv_alloc_dm_attr dm = {.length = 4096};
	struct ibv_counters_init_attr counters = {0};
	struct ibv_wq_init_attr wq = {0};
	struct ibv_flow_attr flow = {0};
	struct ibv_ece ece = {0};
	union ibv_gid gid = {0};
	struct ibv_qp *qp;
	struct client c;

	(void)state;
	client_open(&c);
	qp = client_qp(&c, IBV_QPT_RC, NULL);
#define REFUSED(call)                                \
	do {                                         \
		errno = 0;                           \
		assert_null(call);                   \
		assert_int_equal(errno, EOPNOTSUPP); \
	} while (0)
	REFUSED(ibv_open_xrcd(c.context, &xrcd));
	REFUSED(ibv_alloc_dm(c.context, &dm));
	REFUSED(ibv_create_counters(c.context, &counters));
	REFUSED(ibv_create_wq(c.context, &wq));
	REFUSED(ibv_create_flow(qp, &flow));
	assert_int_equal(ibv_attach_mcast(qp, &gid, 0), EOPNOTSUPP);
	/* no vendor: rdma-core refuses that before any provider sees it */
	assert_int_equal(ibv_set_ece(qp, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_query_ece(qp, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	client_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overrun),	       cmocka_unit_test(test_overrun_ignored),
		cmocka_unit_test(test_moderation),     cmocka_unit_test(test_srq),
		cmocka_unit_test(test_null_region),    cmocka_unit_test(test_advice),
		cmocka_unit_test(test_thread_domains), cmocka_unit_test(test_capabilities),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
