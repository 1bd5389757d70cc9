/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of the verbs library as a client sees them. Error numbers are the kernel's
 * (ib_uverbs: EBUSY for what is in use, ib_check_mr_access(), ib_umem_get(), dma_buf_get()).
 */
#include "soft_abi_client.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_our_library(void **state)
{
	Dl_info info;

	(void)state;
	assert_true(dladdr(dlsym(RTLD_DEFAULT, "ibv_open_device"), &info));
	assert_non_null(strstr(info.dli_fname, "soft/lib/"));
}

static void test_list_keeps_its_pointers(void **state)
{
	int n, m;
	struct ibv_device **a = ibv_get_device_list(&n), **b = ibv_get_device_list(&m);

	(void)state;
	assert_int_equal(n, m);
	assert_true(n > 0);
	for (int i = 0; i < n; i++)
		assert_ptr_equal(a[i], b[i]);
	assert_null(a[n]);
	ibv_free_device_list(a);
	/* what is read behind a device by providers: a table that is nobody's */
	assert_non_null(*(void **)(b[0] + 1));
	assert_int_not_equal(ibv_get_device_guid(b[0]), 0);
	ibv_free_device_list(b);
}

static void test_gids(void **state)
{
	struct ibv_gid_entry entry, table[8];
	union ibv_gid gid;
	struct client c;
	__be16 pkey;

	(void)state;
	client_open(&c);
	assert_int_equal(c.port.gid_tbl_len, 2);
	assert_int_equal(c.gid.raw[10], 0xff);
	assert_int_equal(c.gid.raw[12], 127);
	assert_int_equal(ibv_query_gid_ex(c.context, 1, 1, &entry, 0), 0);
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(entry.gid.raw[15], 1);
	assert_int_equal(entry.ndev_ifindex, 1); /* lo, always */
	assert_int_equal(ibv_query_gid_ex(c.context, 1, 2, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(c.context, 1, 0, &entry, 1), EOPNOTSUPP);
	assert_int_equal(ibv_query_gid_table(c.context, table, 8, 0), 2);
	assert_int_equal(ibv_query_gid_table(c.context, table, 1, 0), -EINVAL);
	assert_int_equal(ibv_query_gid(c.context, 1, 7, &gid), -1);
	assert_int_equal(ibv_query_gid(c.context, 2, 0, &gid), -1);
	assert_int_equal(ibv_query_pkey(c.context, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(ibv_query_pkey(c.context, 1, 1, &pkey), -1);
	assert_int_equal(ibv_query_port(c.context, 2, &c.port), EINVAL);
	client_close(&c);
}

static void test_old_query_port_writes_48_bytes(void **state)
{
	int (*exported)(struct ibv_context *, uint8_t, void *) =
		(int (*)(struct ibv_context *, uint8_t, void *))dlvsym(
			RTLD_DEFAULT, "ibv_query_port", "IBVERBS_1.1");
	uint8_t bytes[64];
	struct client c;

	(void)state;
	client_open(&c);
	memset(bytes, 0xa5, sizeof(bytes));
	assert_int_equal(exported(c.context, 1, bytes), 0);
	assert_memory_equal(bytes, &c.port, 48);
	for (size_t i = 48; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], 0xa5);
	client_close(&c);
}

static void test_busy(void **state)
{
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct client c;

	(void)state;
	client_open(&c);
	qp = client_qp(&c, IBV_QPT_RC, NULL);
	assert_int_equal(ibv_dealloc_pd(c.pd), EBUSY);
	assert_int_equal(ibv_destroy_cq(c.cq), EBUSY);
	channel = ibv_create_comp_channel(c.context);
	assert_non_null(channel);
	cq = ibv_create_cq(c.context, 1, NULL, channel, 0);
	assert_non_null(cq);
	assert_int_equal(channel->refcnt, 1);
	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	client_close(&c);
}

static void test_resize_cq(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_recv_wr recv = {0}, *bad_recv;
	struct ibv_qp_init_attr attr;
	struct ibv_cq *sends;
	struct ibv_qp *qp;
	struct client c;

	(void)state;
	client_open(&c);
	sends = ibv_create_cq(c.context, 8, NULL, NULL, 0);
	attr = (struct ibv_qp_init_attr){.send_cq = sends,
					 .recv_cq = c.cq,
					 .cap = {.max_send_wr = 8, .max_recv_wr = 8},
					 .qp_type = IBV_QPT_RC};
	qp = ibv_create_qp(c.pd, &attr);
	assert_non_null(qp);
	client_to_init(qp);
	client_connect(&c, qp, qp->qp_num);
	for (recv.wr_id = 0; recv.wr_id < 5; recv.wr_id++)
		assert_int_equal(ibv_post_recv(qp, &recv, &bad_recv), 0);
	for (int i = 0; i < 5; i++) {
		wr.send_flags = i == 4 ? IBV_SEND_SIGNALED : 0;
		assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	}
	/* the last is acknowledged when all have been received */
	assert_int_equal(client_wait(sends).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_resize_cq(c.cq, 4), EINVAL);
	assert_int_equal(ibv_resize_cq(c.cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(c.cq, 1 << 30), EINVAL);
	assert_int_equal(c.cq->cqe, 256);
	assert_int_equal(ibv_resize_cq(c.cq, 5), 0);
	assert_int_equal(c.cq->cqe, 5);
	assert_int_equal(ibv_resize_cq(c.cq, 1000), 0);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(client_wait(c.cq).wr_id, i);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(sends), 0);
	client_close(&c);
}

static void *resize(void *cq)
{
	return (void *)(intptr_t)ibv_resize_cq(cq, 100);
}

/* Who polls the extended way may post and query before it ends; who resizes has to wait for it. */
static void test_resize_beside_a_poller(void **state)
{
	struct ibv_cq_init_attr_ex init = {.cqe = 8};
	struct ibv_poll_cq_attr none = {0};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_qp_init_attr got;
	struct ibv_cq_ex *ex;
	pthread_t thread;
	struct client c;
	struct ibv_qp *qp;
	void *rc;

	(void)state;
	client_open(&c);
	ex = ibv_create_cq_ex(c.context, &init);
	assert_non_null(ex);
	qp = ibv_create_qp(c.pd,
			   &(struct ibv_qp_init_attr){.send_cq = ibv_cq_ex_to_cq(ex),
						      .recv_cq = ibv_cq_ex_to_cq(ex),
						      .cap = {.max_send_wr = 8, .max_recv_wr = 8},
						      .qp_type = IBV_QPT_RC});
	assert_non_null(qp);
	client_to_init(qp);
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	alarm(60);
	assert_int_equal(ibv_start_poll(ex, &none), 0);
	assert_int_equal(ex->status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(pthread_create(&thread, NULL, resize, ibv_cq_ex_to_cq(ex)), 0);
	poll(NULL, 0, 50);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &got), 0);
	ibv_end_poll(ex);
	assert_int_equal(pthread_join(thread, &rc), 0);
	alarm(0);
	assert_null(rc);
	assert_int_equal(ibv_cq_ex_to_cq(ex)->cqe, 100);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
	client_close(&c);
}

/* rdma-core's ibv_query_qp() shows the state in the object, when it was asked for. */
static void test_query_shows_the_state(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE}, *bad;
	struct ibv_sge nowhere = {.addr = 0x1000, .length = 8, .lkey = 1};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct client c;
	struct ibv_qp *qp;

	(void)state;
	client_open(&c);
	qp = client_qp(&c, IBV_QPT_RC, NULL);
	client_to_init(qp);
	client_connect(&c, qp, qp->qp_num);
	wr.sg_list = &nowhere;
	wr.num_sge = 1;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(client_wait(c.cq).status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_CAP, &init), 0);
	assert_int_equal(qp->state, IBV_QPS_RTS);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	assert_int_equal(qp->state, IBV_QPS_ERR);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	client_close(&c);
}

/* rdma-core promises it on x86 alone. */
static void test_data_in_order(void **state)
{
#if defined(__x86_64__)
	const int promised = 1;
#else
	const int promised = 0;
#endif
	struct client c;
	struct ibv_qp *rc, *ud;

	(void)state;
	client_open(&c);
	rc = client_qp(&c, IBV_QPT_RC, NULL);
	ud = client_qp(&c, IBV_QPT_UD, NULL);
	assert_int_equal(ibv_query_qp_data_in_order(rc, IBV_WR_RDMA_WRITE, 0), promised);
	assert_int_equal(ibv_query_qp_data_in_order(rc, IBV_WR_RDMA_READ, 0), 0);
	assert_int_equal(ibv_query_qp_data_in_order(ud, IBV_WR_SEND, 0), 0);
	assert_int_equal(ibv_destroy_qp(rc), 0);
	assert_int_equal(ibv_destroy_qp(ud), 0);
	client_close(&c);
}

/* ── memory ── */

static int reg_errno(struct ibv_pd *pd, void *at, size_t len, int access)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(pd, at, len, access);
	if (!mr)
		return errno;
	assert_int_equal(mr->lkey, mr->rkey);
	assert_ptr_equal(mr->addr, at);
	assert_int_equal(mr->length, len);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	return 0;
}

static void test_host_memory(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rw = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	volatile int unknown = 1 << 10;
	unsigned char core[4];
	struct client c;

	(void)state;
	client_open(&c);
	assert_int_equal(reg_errno(c.pd, at + 3, 4 * page - 7, rw), 0);
	assert_int_equal(reg_errno(c.pd, at, page, rw | IBV_ACCESS_RELAXED_ORDERING), 0);
	assert_int_equal(reg_errno(c.pd, at, page, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	assert_int_equal(reg_errno(c.pd, at, page, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
	assert_int_equal(reg_errno(c.pd, at, page, rw | unknown), EINVAL);
	assert_int_equal(reg_errno(c.pd, at, page, IBV_ACCESS_ON_DEMAND | rw), EINVAL);
	assert_int_equal(reg_errno(c.pd, at, 0, rw), EINVAL);
	/* looking at pages must not make them */
	assert_int_equal(mincore(at, 4 * page, core), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(core[i] & 1, 0);
	assert_int_equal(mprotect(at + page, page, PROT_READ), 0);
	assert_int_equal(reg_errno(c.pd, at, 4 * page, rw), EFAULT);
	assert_int_equal(reg_errno(c.pd, at, 4 * page, IBV_ACCESS_REMOTE_READ), 0);
	assert_int_equal(mprotect(at + page, page, PROT_NONE), 0);
	assert_int_equal(reg_errno(c.pd, at, 4 * page, 0), EFAULT);
	assert_int_equal(munmap(at + page, page), 0);
	assert_int_equal(reg_errno(c.pd, at, 4 * page, 0), EFAULT);
	assert_int_equal(reg_errno(c.pd, at + 2 * page, 2 * page, rw), 0);
	munmap(at, 4 * page);
	assert_int_equal(reg_errno(c.pd, NULL, page, rw), EFAULT);
	assert_int_equal(reg_errno(c.pd, (void *)(UINTPTR_MAX - 100), page, 0), EINVAL);
	client_close(&c);
}

static int dmabuf_errno(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd,
			int access)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_dmabuf_mr(pd, offset, len, iova, fd, access);
	if (!mr)
		return errno;
	assert_int_equal(ibv_dereg_mr(mr), 0);
	return 0;
}

static void test_descriptors(void **state)
{
	int rw = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	int memory = memfd_create("test", MFD_CLOEXEC), pipes[2];
	struct client c;

	(void)state;
	assert_int_equal(ftruncate(memory, 3 * 4096), 0);
	assert_int_equal(pipe(pipes), 0);
	client_open(&c);
	/* NCCL's and UCX's probe */
	assert_int_equal(dmabuf_errno(c.pd, 0, 0, 0, -1, 0), EBADF);
	assert_int_equal(dmabuf_errno(c.pd, 0, 4096, 0, 9999, rw), EBADF);
	assert_int_equal(dmabuf_errno(c.pd, 0, 4096, 0, pipes[0], rw), EINVAL);
	assert_int_equal(dmabuf_errno(c.pd, 0, 3 * 4096, 0, memory, rw), 0);
	assert_int_equal(dmabuf_errno(c.pd, 0, 3 * 4096 + 1, 0, memory, rw), EINVAL);
	assert_int_equal(dmabuf_errno(c.pd, 4096, 3 * 4096, 0, memory, rw), EINVAL);
	assert_int_equal(dmabuf_errno(c.pd, UINT64_MAX - 4095, 8192, 0, memory, rw), EINVAL);
	assert_int_equal(dmabuf_errno(c.pd, 100, 200, 4096 + 100, memory, rw), 0);
	assert_int_equal(dmabuf_errno(c.pd, 100, 200, 4096 + 101, memory, rw), EINVAL);
	assert_int_equal(dmabuf_errno(c.pd, 0, 0, 0, memory, rw), EINVAL);
	close(memory);
	close(pipes[0]);
	close(pipes[1]);
	client_close(&c);
}

static void test_rereg(void **state)
{
	static char a[4096], b[8192];
	struct ibv_pd *other;
	struct client c;
	struct ibv_mr *mr;

	(void)state;
	client_open(&c);
	other = ibv_alloc_pd(c.context);
	mr = ibv_reg_mr(c.pd, a, sizeof(a), IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD,
				      other, b, sizeof(b), 0),
			 0);
	assert_ptr_equal(mr->addr, b);
	assert_ptr_equal(mr->pd, other);
	assert_int_equal(ibv_dealloc_pd(other), EBUSY);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 10, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	client_close(&c);
}

/* ── events ── */

struct sleeper {
	struct ibv_context *context;
	_Atomic pid_t tid;
};

static void *wait_for_ever(void *arg)
{
	struct sleeper *s = arg;
	struct ibv_context *context = s->context;
	struct ibv_async_event event;

	atomic_store(&s->tid, gettid());
	(void)ibv_get_async_event(context, &event);
	return (void *)1;
}

static bool asleep(pid_t tid)
{
	char path[64], text[128] = "";
	const char *state;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	state = strrchr(text, ')');
	return state && strncmp(state, ") S", 3) == 0;
}

/* Time says nothing on a busy machine. Seen three times: no lock is held for so long. */
static void await_sleep(struct sleeper *s)
{
	for (int times = 0; times < 3; times = s->tid && asleep(s->tid) ? times + 1 : 0)
		usleep(10000);
}

static void test_async_sleeper_survives_close(void **state)
{
	struct client c;
	struct sleeper sleeper = {0};
	pthread_t thread;
	void *result;

	(void)state;
	client_open(&c);
	sleeper.context = c.context;
	assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, &sleeper), 0);
	await_sleep(&sleeper);
	client_close(&c);
	usleep(30000);
	/* it sleeps on until the process ends, as NCCL's does */
	assert_int_equal(pthread_tryjoin_np(thread, &result), EBUSY);
	pthread_detach(thread);
}

struct acker {
	struct ibv_cq *cq;
	volatile int acked;
};

static void *ack_later(void *arg)
{
	struct acker *a = arg;

	usleep(100000);
	a->acked = 1;
	ibv_ack_cq_events(a->cq, 1);
	return NULL;
}

static void test_completion_channel(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_comp_channel *channel;
	struct ibv_qp_init_attr attr;
	struct acker acker = {0};
	struct ibv_cq *cq, *got;
	struct pollfd p;
	struct ibv_qp *qp;
	pthread_t thread;
	struct client c;
	void *context;

	(void)state;
	client_open(&c);
	channel = ibv_create_comp_channel(c.context);
	cq = ibv_create_cq(c.context, 16, &attr, channel, 0);
	attr = (struct ibv_qp_init_attr){.send_cq = cq,
					 .recv_cq = cq,
					 .cap = {.max_send_wr = 8, .max_send_sge = 1},
					 .qp_type = IBV_QPT_RC};
	qp = ibv_create_qp(c.pd, &attr);
	client_to_init(qp);
	client_connect(&c, qp, qp->qp_num);
	p = (struct pollfd){.fd = channel->fd, .events = POLLIN};
	/* not armed: completions make no event */
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(client_wait(cq).status, IBV_WC_SUCCESS);
	assert_int_equal(poll(&p, 1, 20), 0);
	/* armed, and nobody polls: the device wakes the sleeper by itself */
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(poll(&p, 1, 20), 0);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(ibv_get_cq_event(channel, &got, &context), 0);
	assert_ptr_equal(got, cq);
	assert_ptr_equal(context, &attr);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(client_wait(cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	/* destroying waits for the acknowledge */
	acker.cq = cq;
	assert_int_equal(pthread_create(&thread, NULL, ack_later, &acker), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(acker.acked, 1);
	pthread_join(thread, NULL);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	client_close(&c);
}

static void test_close_takes_what_is_left(void **state)
{
	static char memory[4096];
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct client c;

	(void)state;
	client_open(&c);
	assert_non_null(ibv_reg_mr(c.pd, memory, sizeof(memory), 0));
	client_to_init(client_qp(&c, IBV_QPT_RC, ibv_create_srq(c.pd, &srq)));
	assert_non_null(ibv_create_comp_channel(c.context));
	assert_int_equal(ibv_close_device(c.context), 0);
}

static void test_fork(void **state)
{
	static char memory[4096];
	struct client c, mine;
	int status;
	pid_t pid;

	(void)state;
#ifdef __SANITIZE_THREAD__
	skip(); /* it has no threads in a child of a threaded process */
#endif
	client_open(&c);
	pid = fork();
	if (pid == 0) {
		/* what it inherited is dead, and says so; a device of its own works */
		bool dead = !ibv_reg_mr(c.pd, memory, sizeof(memory), 0) && errno == EIO;
		struct ibv_qp *qp;

		client_open(&mine);
		qp = client_qp(&mine, IBV_QPT_RC, NULL);
		client_to_init(qp);
		client_connect(&mine, qp, qp->qp_num);
		_exit(dead ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	client_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_our_library),
		cmocka_unit_test(test_list_keeps_its_pointers),
		cmocka_unit_test(test_gids),
		cmocka_unit_test(test_old_query_port_writes_48_bytes),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_resize_cq),
		cmocka_unit_test(test_resize_beside_a_poller),
		cmocka_unit_test(test_query_shows_the_state),
		cmocka_unit_test(test_data_in_order),
		cmocka_unit_test(test_host_memory),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_rereg),
		cmocka_unit_test(test_async_sleeper_survives_close),
		cmocka_unit_test(test_completion_channel),
		cmocka_unit_test(test_close_takes_what_is_left),
		cmocka_unit_test(test_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
