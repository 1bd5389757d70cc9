/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is posted arrives, and what is wrong is refused at the call or by the completion that the
 * InfiniBand specification names (volume 1, 10.8.6 and 11.6.2). A queue pair connected to itself is
 * NCCL's flush queue pair; two of one process are the usual case.
 */
#include "soft_abi_client.h"

#include <endian.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 64 * 1024 };

struct pair {
	struct client c;
	struct ibv_qp *a, *b;
	struct ibv_mr *from, *to;
	uint8_t *src, *dst;
};

static void pair_open(struct pair *p)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC;

	client_open(&p->c);
	p->a = client_qp(&p->c, IBV_QPT_RC, NULL);
	p->b = client_qp(&p->c, IBV_QPT_RC, NULL);
	client_to_init(p->a);
	client_to_init(p->b);
	client_connect(&p->c, p->a, p->b->qp_num);
	client_connect(&p->c, p->b, p->a->qp_num);
	p->src = calloc(1, BYTES);
	p->dst = calloc(1, BYTES);
	for (int i = 0; i < BYTES; i++)
		p->src[i] = (uint8_t)(i * 7 + i / 251);
	p->from = ibv_reg_mr(p->c.pd, p->src, BYTES, access);
	p->to = ibv_reg_mr(p->c.pd, p->dst, BYTES, access);
	assert_non_null(p->from);
	assert_non_null(p->to);
}

static void pair_close(struct pair *p)
{
	assert_int_equal(ibv_destroy_qp(p->a), 0);
	assert_int_equal(ibv_destroy_qp(p->b), 0);
	assert_int_equal(ibv_dereg_mr(p->from), 0);
	assert_int_equal(ibv_dereg_mr(p->to), 0);
	free(p->src);
	free(p->dst);
	client_close(&p->c);
}

static struct ibv_wc send_one(struct pair *p, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags |= IBV_SEND_SIGNALED;
	wr->wr_id = 77;
	assert_int_equal(ibv_post_send(p->a, wr, &bad), 0);
	return client_wait(p->c.cq);
}

static struct ibv_send_wr write_wr(struct pair *p, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = {.sg_list = sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

	*sge = (struct ibv_sge){(uintptr_t)p->src, BYTES, p->from->lkey};
	wr.wr.rdma.remote_addr = (uintptr_t)p->dst;
	wr.wr.rdma.rkey = p->to->rkey;
	return wr;
}

static void test_write_and_read(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct pair p;

	(void)state;
	pair_open(&p);
	wr = write_wr(&p, &sge);
	wc = send_one(&p, &wr);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RDMA_WRITE);
	assert_int_equal(wc.wr_id, 77);
	assert_int_equal(wc.qp_num, p.a->qp_num);
	assert_memory_equal(p.src, p.dst, BYTES);
	memset(p.src, 0, BYTES);
	wr.opcode = IBV_WR_RDMA_READ;
	wc = send_one(&p, &wr);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
	assert_int_equal(wc.byte_len, BYTES);
	assert_memory_equal(p.src, p.dst, BYTES);
	pair_close(&p);
}

static void test_send_pieces_and_imm(void **state)
{
	struct ibv_send_wr wr = {.num_sge = 3, .opcode = IBV_WR_SEND_WITH_IMM};
	struct ibv_recv_wr recv = {.wr_id = 5, .num_sge = 2}, *bad_recv;
	struct ibv_sge out[3], in[2];
	struct ibv_wc one, two;
	struct pair p;

	(void)state;
	pair_open(&p);
	out[0] = (struct ibv_sge){(uintptr_t)p.src, 1, p.from->lkey};
	out[1] = (struct ibv_sge){(uintptr_t)p.src + 10, 3000, p.from->lkey};
	out[2] = (struct ibv_sge){(uintptr_t)p.src + 5000, 777, p.from->lkey};
	in[0] = (struct ibv_sge){(uintptr_t)p.dst, 1500, p.to->lkey};
	in[1] = (struct ibv_sge){(uintptr_t)p.dst + 8000, 4000, p.to->lkey};
	recv.sg_list = in;
	wr.sg_list = out;
	wr.imm_data = htobe32(0xdeadbeef);
	assert_int_equal(ibv_post_recv(p.b, &recv, &bad_recv), 0);
	one = send_one(&p, &wr);
	two = client_wait(p.c.cq);
	if (one.opcode & IBV_WC_RECV) {
		struct ibv_wc swap = one;

		one = two;
		two = swap;
	}
	assert_int_equal(one.status, IBV_WC_SUCCESS);
	assert_int_equal(two.status, IBV_WC_SUCCESS);
	assert_int_equal(two.opcode, IBV_WC_RECV);
	assert_int_equal(two.wr_id, 5);
	assert_int_equal(two.byte_len, 3778);
	assert_int_equal(two.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(be32toh(two.imm_data), 0xdeadbeef);
	assert_int_equal(two.qp_num, p.b->qp_num);
	assert_memory_equal(p.dst, p.src, 1);
	assert_memory_equal(p.dst + 1, p.src + 10, 1499);
	assert_memory_equal(p.dst + 8000, p.src + 10 + 1499, 1501);
	assert_memory_equal(p.dst + 9501, p.src + 5000, 777);
	assert_int_equal(p.dst[9501 + 777], 0);
	pair_close(&p);
}

static void test_inline(void **state)
{
	uint8_t local[64];
	struct ibv_sge sge = {(uintptr_t)local, sizeof(local), /* no key is looked at */ 1};
	struct ibv_send_wr wr, *bad;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct pair p;

	(void)state;
	pair_open(&p);
	wr = write_wr(&p, &(struct ibv_sge){0});
	wr.sg_list = &sge;
	wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
	memset(local, 0x5a, sizeof(local));
	assert_int_equal(ibv_post_send(p.a, &wr, &bad), 0);
	memset(local, 0, sizeof(local)); /* the bytes were taken at the call */
	assert_int_equal(client_wait(p.c.cq).status, IBV_WC_SUCCESS);
	for (size_t i = 0; i < sizeof(local); i++)
		assert_int_equal(p.dst[i], 0x5a);
	assert_int_equal(ibv_query_qp(p.a, &attr, IBV_QP_CAP, &init), 0);
	sge.length = init.cap.max_inline_data + 1;
	sge.addr = (uintptr_t)p.src;
	assert_int_equal(ibv_post_send(p.a, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	pair_close(&p);
}

static void test_atomics(void **state)
{
	struct ibv_send_wr wr = {.num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct ibv_sge sge;
	uint64_t *there, *old;
	struct pair p;

	(void)state;
	pair_open(&p);
	there = (uint64_t *)p.dst;
	old = (uint64_t *)p.src;
	*there = 40;
	sge = (struct ibv_sge){(uintptr_t)p.src, 8, p.from->lkey};
	wr.sg_list = &sge;
	wr.wr.atomic.remote_addr = (uintptr_t)p.dst;
	wr.wr.atomic.rkey = p.to->rkey;
	wr.wr.atomic.compare_add = 2;
	assert_int_equal(send_one(&p, &wr).status, IBV_WC_SUCCESS);
	assert_int_equal(*there, 42);
	assert_int_equal(*old, 40);
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.compare_add = 42;
	wr.wr.atomic.swap = 7;
	assert_int_equal(send_one(&p, &wr).status, IBV_WC_SUCCESS);
	assert_int_equal(*there, 7);
	assert_int_equal(*old, 42);
	assert_int_equal(send_one(&p, &wr).status, IBV_WC_SUCCESS);
	assert_int_equal(*there, 7); /* 7 is not 42 */
	assert_int_equal(*old, 7);
	pair_close(&p);
}

static void test_self_connected(void **state)
{
	struct ibv_send_wr wr = {
		.num_sge = 1, .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_sge sge;
	struct ibv_qp *qp;
	struct pair p;

	(void)state;
	pair_open(&p);
	qp = client_qp(&p.c, IBV_QPT_RC, NULL);
	client_to_init(qp);
	client_connect(&p.c, qp, qp->qp_num);
	sge = (struct ibv_sge){(uintptr_t)p.dst, 1, p.to->lkey};
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr = (uintptr_t)p.src + 3;
	wr.wr.rdma.rkey = p.from->rkey;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
		assert_int_equal(client_wait(p.c.cq).status, IBV_WC_SUCCESS);
	}
	assert_int_equal(p.dst[0], p.src[3]);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	pair_close(&p);
}

static void test_into_a_descriptor(void **state)
{
	int memory = memfd_create("target", MFD_CLOEXEC);
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct pair p;
	uint8_t *seen;

	(void)state;
	assert_int_equal(ftruncate(memory, 4096 + BYTES), 0);
	pair_open(&p);
	/* as NCCL: keys are used with addresses of the caller's choice, and the fd is closed */
	mr = ibv_reg_dmabuf_mr(p.c.pd, 4096, BYTES, 0x700000000000, memory,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_RELAXED_ORDERING);
	assert_non_null(mr);
	assert_ptr_equal(mr->addr, (void *)4096);
	seen = mmap(NULL, 4096 + BYTES, PROT_READ, MAP_SHARED, memory, 0);
	close(memory);
	wr = write_wr(&p, &sge);
	wr.wr.rdma.remote_addr = 0x700000000000;
	wr.wr.rdma.rkey = mr->rkey;
	assert_int_equal(send_one(&p, &wr).status, IBV_WC_SUCCESS);
	assert_memory_equal(seen + 4096, p.src, BYTES);
	assert_int_equal(seen[4095], 0);
	munmap(seen, 4096 + BYTES);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_close(&p);
}

/* ── what is wrong ── */

static void test_protection(void **state)
{
	static const struct {
		const char *what;
		int key, past_end, read_only, other_pd;
	} cases[] = {
		{"no such key", 1, 0, 0, 0},
		{"one byte past the end", 0, 1, 0, 0},
		{"not for writing", 0, 0, 1, 0},
		{"another protection domain", 0, 0, 0, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		struct ibv_send_wr wr;
		struct ibv_pd *pd;
		struct ibv_mr *mr;
		struct ibv_sge sge;
		struct ibv_wc wc;
		struct pair p;

		pair_open(&p);
		pd = ibv_alloc_pd(p.c.context);
		mr = ibv_reg_mr(cases[i].other_pd ? pd : p.c.pd, p.dst, BYTES,
				cases[i].read_only
					? IBV_ACCESS_REMOTE_READ
					: IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		wr = write_wr(&p, &sge);
		wr.wr.rdma.rkey = mr->rkey ^ (uint32_t)cases[i].key;
		wr.wr.rdma.remote_addr += (uint32_t)cases[i].past_end;
		wc = send_one(&p, &wr);
		if (wc.status != IBV_WC_REM_ACCESS_ERR)
			fail_msg("%s: %s", cases[i].what, ibv_wc_status_str(wc.status));
		for (int j = 0; j < BYTES; j++)
			assert_int_equal(p.dst[j], 0);
		assert_int_equal(p.a->state, IBV_QPS_RTS); /* what the client set, until it asks */
		assert_int_equal(ibv_query_qp(p.a, &attr, IBV_QP_STATE, &init), 0);
		assert_int_equal(attr.qp_state, IBV_QPS_ERR);
		ibv_dereg_mr(mr);
		ibv_dealloc_pd(pd);
		pair_close(&p);
	}
}

static void test_local_protection(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;

	(void)state;
	pair_open(&p);
	wr = write_wr(&p, &sge);
	sge.length = BYTES + 1;
	assert_int_equal(send_one(&p, &wr).status, IBV_WC_LOC_PROT_ERR);
	pair_close(&p);
}

static void test_refused_at_the_call(void **state)
{
	struct ibv_sge five[5] = {{0}};
	struct ibv_recv_wr recv = {.num_sge = 5, .sg_list = five}, *bad_recv;
	struct ibv_send_wr first, second, *bad;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_sge sge;
	struct ibv_qp *fresh;
	struct pair p;
	int r;

	(void)state;
	pair_open(&p);
	first = write_wr(&p, &sge);
	second = first;
	first.next = &second;
	second.num_sge = 5;
	second.sg_list = five;
	first.send_flags = IBV_SEND_SIGNALED;
	/* what came before the bad one counts */
	assert_int_equal(ibv_post_send(p.a, &first, &bad), EINVAL);
	assert_ptr_equal(bad, &second);
	assert_int_equal(client_wait(p.c.cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_post_recv(p.a, &recv, &bad_recv), EINVAL);
	assert_ptr_equal(bad_recv, &recv);
	second = write_wr(&p, &sge);
	second.opcode = IBV_WR_BIND_MW;
	assert_int_equal(ibv_post_send(p.a, &second, &bad), EINVAL);
	/* full after what was granted */
	assert_int_equal(ibv_query_qp(p.b, &attr, IBV_QP_CAP, &init), 0);
	recv.num_sge = 0;
	for (unsigned int i = 0; i < init.cap.max_recv_wr; i++)
		assert_int_equal(ibv_post_recv(p.b, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_recv(p.b, &recv, &bad_recv), ENOMEM);
	/* by state */
	fresh = client_qp(&p.c, IBV_QPT_RC, NULL);
	assert_int_equal(ibv_post_recv(fresh, &recv, &bad_recv), EINVAL);
	client_to_init(fresh);
	assert_int_equal(ibv_post_recv(fresh, &recv, &bad_recv), 0);
	first = write_wr(&p, &sge);
	r = ibv_post_send(fresh, &first, &bad);
	assert_int_equal(r, EINVAL);
	assert_ptr_equal(bad, &first);
	/* an attribute missing, one too many */
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR};
	assert_int_equal(ibv_modify_qp(fresh, &attr, IBV_QP_STATE), EINVAL);
	attr.qp_state = IBV_QPS_ERR;
	assert_int_equal(ibv_modify_qp(fresh, &attr, IBV_QP_STATE | IBV_QP_QKEY), EINVAL);
	assert_int_equal(fresh->state, IBV_QPS_INIT);
	assert_int_equal(ibv_destroy_qp(fresh), 0);
	pair_close(&p);
}

static void test_error_flushes_in_order(void **state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_recv_wr recv = {0}, *bad;
	struct pair p;

	(void)state;
	pair_open(&p);
	for (recv.wr_id = 1; recv.wr_id <= 4; recv.wr_id++)
		assert_int_equal(ibv_post_recv(p.a, &recv, &bad), 0);
	assert_int_equal(ibv_modify_qp(p.a, &attr, IBV_QP_STATE), 0);
	/* what is posted later is flushed too */
	assert_int_equal(ibv_post_recv(p.a, &recv, &bad), 0);
	for (uint64_t i = 1; i <= 5; i++) {
		struct ibv_wc wc = client_wait(p.c.cq);

		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(wc.wr_id, i);
	}
	attr.qp_state = IBV_QPS_RESET;
	assert_int_equal(ibv_modify_qp(p.a, &attr, IBV_QP_STATE), 0);
	client_to_init(p.a);
	client_quiet(p.c.cq);
	pair_close(&p);
}

/* ── the new way to post, the extended way to poll ── */

static struct ibv_qp *ex_qp(struct client *c, struct ibv_cq *cq, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_inline_data = 32},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = c->pd,
		.send_ops_flags = ops,
	};

	return ibv_create_qp_ex(c->context, &attr);
}

static void test_extended_posting(void **state)
{
	struct ibv_data_buf bufs[2] = {{(void *)"abc", 3}, {(void *)"defg", 4}};
	struct ibv_qp_ex *ex, *other;
	struct ibv_qp *qp, *qp2;
	struct pair p;

	(void)state;
	pair_open(&p);
	assert_null(ibv_qp_to_qp_ex(p.a));
	assert_null(ex_qp(&p.c, p.c.cq, IBV_QP_EX_WITH_TSO));
	assert_int_equal(errno, EOPNOTSUPP);
	qp = ex_qp(&p.c, p.c.cq, IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ);
	qp2 = ex_qp(&p.c, p.c.cq, IBV_QP_EX_WITH_RDMA_WRITE);
	client_to_init(qp);
	client_to_init(qp2);
	client_connect(&p.c, qp, qp->qp_num);
	client_connect(&p.c, qp2, qp2->qp_num);
	ex = ibv_qp_to_qp_ex(qp);
	other = ibv_qp_to_qp_ex(qp2);
	/* two batches of one thread at the same time */
	ibv_wr_start(ex);
	ibv_wr_start(other);
	ex->wr_id = 1;
	ex->wr_flags = 0;
	ibv_wr_rdma_write(ex, p.to->rkey, (uintptr_t)p.dst);
	ibv_wr_set_inline_data_list(ex, 2, bufs);
	ex->wr_id = 2;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, p.to->rkey, (uintptr_t)p.dst + 100);
	ibv_wr_set_sge(ex, p.from->lkey, (uintptr_t)p.src, 1000);
	assert_int_equal(ibv_wr_complete(other), 0);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(client_wait(p.c.cq).wr_id, 2);
	assert_memory_equal(p.dst, "abcdefg", 8);
	assert_memory_equal(p.dst + 100, p.src, 1000);
	/* an operation that was not asked for: nothing of the batch is posted */
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, p.to->rkey, (uintptr_t)p.dst);
	ibv_wr_set_sge(ex, p.from->lkey, (uintptr_t)p.src, 8);
	ibv_wr_send(ex);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	/* more than fits; more inline than granted */
	ibv_wr_start(ex);
	for (int i = 0; i < 5; i++) {
		ibv_wr_rdma_write(ex, p.to->rkey, (uintptr_t)p.dst);
		ibv_wr_set_sge(ex, p.from->lkey, (uintptr_t)p.src, 8);
	}
	assert_int_equal(ibv_wr_complete(ex), ENOMEM);
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, p.to->rkey, (uintptr_t)p.dst);
	ibv_wr_set_inline_data(ex, p.src, 4096);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, p.to->rkey, (uintptr_t)p.dst);
	ibv_wr_abort(ex);
	client_quiet(p.c.cq);
	assert_memory_equal(p.dst, "abcdefg", 8);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_qp(qp2), 0);
	pair_close(&p);
}

static void test_extended_polling(void **state)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 8,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_QP_NUM |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_poll_cq_attr poll = {0};
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_qp_ex *ex;
	struct ibv_cq_ex *cq;
	struct timespec wall;
	struct ibv_qp *qp;
	uint64_t stamp;
	struct pair p;
	int r;

	(void)state;
	pair_open(&p);
	attr.wc_flags |= IBV_WC_EX_WITH_CVLAN;
	assert_null(ibv_create_cq_ex(p.c.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.wc_flags &= ~(uint64_t)IBV_WC_EX_WITH_CVLAN;
	cq = ibv_create_cq_ex(p.c.context, &attr);
	assert_non_null(cq);
	assert_int_equal(ibv_start_poll(cq, &poll), ENOENT);
	qp = ex_qp(&p.c, ibv_cq_ex_to_cq(cq), IBV_QP_EX_WITH_RDMA_READ);
	client_to_init(qp);
	client_connect(&p.c, qp, qp->qp_num);
	ex = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(ex);
	for (ex->wr_id = 1; ex->wr_id <= 2; ex->wr_id++) {
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_read(ex, p.from->rkey, (uintptr_t)p.src);
		ibv_wr_set_sge(ex, p.to->lkey, (uintptr_t)p.dst, 500);
	}
	assert_int_equal(ibv_wr_complete(ex), 0);
	for (int i = 0; (r = ibv_start_poll(cq, &poll)) == ENOENT && i < 1000; i++)
		usleep(1000);
	assert_int_equal(r, 0);
	assert_int_equal(cq->wr_id, 1);
	assert_int_equal(cq->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RDMA_READ);
	assert_int_equal(ibv_wc_read_byte_len(cq), 500);
	assert_int_equal(ibv_wc_read_qp_num(cq), qp->qp_num);
	stamp = ibv_wc_read_completion_ts(cq);
	assert_int_equal(ibv_query_rt_values_ex(p.c.context, &values), 0);
	assert_true(stamp <= (uint64_t)values.raw_clock.tv_sec * 1000000000u +
				     (uint64_t)values.raw_clock.tv_nsec);
	clock_gettime(CLOCK_REALTIME, &wall);
	assert_true(ibv_wc_read_completion_wallclock_ns(cq) / 1000000000u + 60 >
		    (uint64_t)wall.tv_sec);
	for (int i = 0; (r = ibv_next_poll(cq)) == ENOENT && i < 1000; i++)
		usleep(1000);
	assert_int_equal(r, 0);
	assert_int_equal(cq->wr_id, 2);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	assert_int_equal(ibv_start_poll(cq, &poll), ENOENT);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	pair_close(&p);
}

/* ── shared receive queues, datagrams ── */

static void test_shared_receive_queue(void **state)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_srq_attr limit = {.srq_limit = 2};
	struct ibv_send_wr wr = {.num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_recv_wr recv = {.num_sge = 1}, *bad;
	struct ibv_async_event event;
	struct ibv_sge in, out;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct pair p;
	int got = 0;

	(void)state;
	pair_open(&p);
	srq = ibv_create_srq(p.c.pd, &init);
	assert_non_null(srq);
	qp = client_qp(&p.c, IBV_QPT_RC, srq);
	client_to_init(qp);
	client_connect(&p.c, qp, qp->qp_num);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	assert_int_equal(ibv_post_recv(qp, &recv, &bad), EINVAL);
	in = (struct ibv_sge){(uintptr_t)p.dst, 4096, p.to->lkey};
	recv.sg_list = &in;
	for (recv.wr_id = 10; recv.wr_id < 13; recv.wr_id++)
		assert_int_equal(ibv_post_srq_recv(srq, &recv, &bad), 0);
	assert_int_equal(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
	out = (struct ibv_sge){(uintptr_t)p.src, 2000, p.from->lkey};
	wr.sg_list = &out;
	for (int i = 0; i < 2; i++) {
		struct ibv_send_wr *bad_send;

		assert_int_equal(ibv_post_send(qp, &wr, &bad_send), 0);
		while (got <= i) {
			struct ibv_wc wc = client_wait(p.c.cq);

			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			if (wc.opcode == IBV_WC_RECV)
				assert_int_equal(wc.wr_id, 10 + got++);
		}
	}
	assert_memory_equal(p.dst, p.src, 2000);
	/* one is left, fewer than two */
	do {
		assert_int_equal(ibv_get_async_event(p.c.context, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, srq);
	assert_int_equal(ibv_query_srq(srq, &limit), 0);
	assert_int_equal(limit.srq_limit, 0); /* disarmed */
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	pair_close(&p);
}

static void test_datagram_and_answer(void **state)
{
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1};
	struct ibv_send_wr wr = {
		.num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_recv_wr recv = {.wr_id = 9, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr *bad;
	struct ibv_sge in, out;
	struct ibv_wc wc, got = {0};
	struct ibv_ah_attr back;
	struct ibv_qp *a, *b;
	struct ibv_ah *ah;
	struct pair p;

	(void)state;
	pair_open(&p);
	to.grh.hop_limit = 3;
	to.grh.traffic_class = 0x48;
	for (to.grh.sgid_index = 0; to.grh.sgid_index < 2; to.grh.sgid_index++) {
		assert_int_equal(ibv_query_gid(p.c.context, 1, to.grh.sgid_index, &to.grh.dgid), 0);
		a = client_qp(&p.c, IBV_QPT_UD, NULL);
		b = client_qp(&p.c, IBV_QPT_UD, NULL);
		client_ud_ready(a);
		client_ud_ready(b);
		ah = ibv_create_ah(p.c.pd, &to);
		assert_non_null(ah);
		in = (struct ibv_sge){(uintptr_t)p.dst, 1024, p.to->lkey};
		out = (struct ibv_sge){(uintptr_t)p.src, 600, p.from->lkey};
		recv.sg_list = &in;
		wr.sg_list = &out;
		wr.imm_data = htobe32(4711);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = b->qp_num;
		wr.wr.ud.remote_qkey = 0x1234;
		assert_int_equal(ibv_post_recv(b, &recv, &bad_recv), 0);
		assert_int_equal(ibv_post_send(a, &wr, &bad), 0);
		for (int i = 0; i < 2; i++) {
			wc = client_wait(p.c.cq);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			if (wc.opcode == IBV_WC_RECV)
				got = wc;
		}
		assert_int_equal(got.wr_id, 9);
		assert_int_equal(got.byte_len, 640);
		assert_int_equal(got.src_qp, a->qp_num);
		assert_int_equal(got.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
		/* kind of the packet as mlx5 says it: UDP, and IPv4 or IPv6 */
		assert_int_equal(got.sl, to.grh.sgid_index ? 0x9 : 0xa);
		assert_int_equal(be32toh(got.imm_data), 4711);
		assert_memory_equal(p.dst + 40, p.src, 600);
		/* the way back, from the header that came before the bytes */
		assert_int_equal(
			ibv_init_ah_from_wc(p.c.context, 1, &got, (struct ibv_grh *)p.dst, &back),
			0);
		assert_memory_equal(&back.grh.dgid, &to.grh.dgid, 16);
		assert_int_equal(back.grh.sgid_index, to.grh.sgid_index);
		assert_int_equal(back.grh.traffic_class, 0x48);
		assert_int_equal(ibv_destroy_ah(ah), 0);
		assert_int_equal(ibv_destroy_qp(a), 0);
		assert_int_equal(ibv_destroy_qp(b), 0);
	}
	/* IPv4 to IPv6, and no GID at all */
	to.grh.sgid_index = 0;
	assert_null(ibv_create_ah(p.c.pd, &to));
	assert_int_equal(errno, EINVAL);
	to.is_global = 0;
	assert_null(ibv_create_ah(p.c.pd, &to));
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write_and_read),
		cmocka_unit_test(test_send_pieces_and_imm),
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_self_connected),
		cmocka_unit_test(test_into_a_descriptor),
		cmocka_unit_test(test_protection),
		cmocka_unit_test(test_local_protection),
		cmocka_unit_test(test_refused_at_the_call),
		cmocka_unit_test(test_error_flushes_in_order),
		cmocka_unit_test(test_extended_posting),
		cmocka_unit_test(test_extended_polling),
		cmocka_unit_test(test_shared_receive_queue),
		cmocka_unit_test(test_datagram_and_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
