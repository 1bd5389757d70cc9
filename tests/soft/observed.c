/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that gets its verbs as NCCL does (dlopen, dlvsym), registers good and bad memory, makes
 * good and bad queue pairs, and prints what each call came to: the same with an observer and
 * without. The descriptor is a memfd, which the software device takes.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#undef ibv_reg_mr

enum { BYTES = 8192, THREADS = 4, ROUNDS = 50 };

static void *library;
static struct ibv_pd *pd;
static __typeof__(&ibv_reg_mr) reg_mr;
static __typeof__(&ibv_reg_mr_iova2) reg_mr_iova2;
static __typeof__(&ibv_reg_dmabuf_mr) reg_dmabuf_mr;
static __typeof__(&ibv_dereg_mr) dereg_mr;
static __typeof__(&ibv_create_qp) create_qp;
static __typeof__(&ibv_destroy_qp) destroy_qp;

static void *symbol(const char *name, const char *version)
{
	void *found = dlvsym(library, name, version);

	if (!found) {
		(void)fprintf(stderr, "no %s@%s\n", name, version);
		exit(1);
	}
	return found;
}

static void say(const char *what, const struct ibv_mr *mr, int error)
{
	(void)printf("%s %s %d\n", what, mr ? "good" : "refused", mr ? 0 : error);
}

static void attempt(const char *what, void *address, size_t length, int access)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = reg_mr(pd, address, length, access);
	say(what, mr, errno);
	if (mr)
		(void)printf("%s dereg %d\n", what, dereg_mr(mr));
}

static void attempt_dmabuf(const char *what, int fd, size_t length)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = reg_dmabuf_mr(pd, 0, length, 0, fd, IBV_ACCESS_LOCAL_WRITE);
	say(what, mr, errno);
	if (mr)
		(void)printf("%s dereg %d\n", what, dereg_mr(mr));
}

static void *rounds(void *arg)
{
	char *memory = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_mr *mr =
			reg_mr_iova2(pd, memory, BYTES, (uintptr_t)memory, IBV_ACCESS_LOCAL_WRITE);

		if (!mr || dereg_mr(mr))
			exit(1);
		errno = EXDEV;
		if (reg_mr(pd, memory, BYTES, IBV_ACCESS_REMOTE_WRITE) || errno != EINVAL) {
			(void)fprintf(stderr, "errno %d of a refused registration\n", errno);
			exit(1);
		}
	}
	return NULL;
}

static void queue_pairs(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = create_qp(pd, &attr);

	(void)printf("qp %s\n", qp ? "good" : "refused");
	if (qp)
		(void)printf("qp destroy %d\n", destroy_qp(qp));
	attr.cap.max_send_wr = 1 << 30;
	errno = 0;
	qp = create_qp(pd, &attr);
	(void)printf("large qp %s %d\n", qp ? "good" : "refused", qp ? 0 : errno);
}

static struct ibv_context *open_device(void)
{
	__typeof__(&ibv_get_device_list) list = symbol("ibv_get_device_list", "IBVERBS_1.1");
	__typeof__(&ibv_open_device) open = symbol("ibv_open_device", "IBVERBS_1.1");
	__typeof__(&ibv_free_device_list) free_list = symbol("ibv_free_device_list", "IBVERBS_1.1");
	struct ibv_device **devices = list(NULL);
	struct ibv_context *context = devices && devices[0] ? open(devices[0]) : NULL;

	if (devices)
		free_list(devices);
	return context;
}

int main(void)
{
	__typeof__(&ibv_alloc_pd) alloc_pd;
	__typeof__(&ibv_create_cq) create_cq;
	pthread_t thread[THREADS];
	struct ibv_context *context;
	char *memory, *none;
	int fd;

	library = dlopen("libibverbs.so.1", RTLD_NOW);
	if (!library)
		return 1;
	alloc_pd = symbol("ibv_alloc_pd", "IBVERBS_1.1");
	create_cq = symbol("ibv_create_cq", "IBVERBS_1.1");
	reg_mr = symbol("ibv_reg_mr", "IBVERBS_1.1");
	reg_mr_iova2 = symbol("ibv_reg_mr_iova2", "IBVERBS_1.8");
	reg_dmabuf_mr = symbol("ibv_reg_dmabuf_mr", "IBVERBS_1.12");
	dereg_mr = symbol("ibv_dereg_mr", "IBVERBS_1.1");
	create_qp = symbol("ibv_create_qp", "IBVERBS_1.1");
	destroy_qp = symbol("ibv_destroy_qp", "IBVERBS_1.1");
	context = open_device();
	pd = context ? alloc_pd(context) : NULL;
	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	none = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fd = memfd_create("observed", MFD_CLOEXEC);
	if (!pd || memory == MAP_FAILED || none == MAP_FAILED || fd < 0 || ftruncate(fd, BYTES))
		return 1;
	attempt("host", memory, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	attempt("reserved", none, BYTES, IBV_ACCESS_LOCAL_WRITE);
	attempt_dmabuf("question", -1, 4096);
	attempt_dmabuf("closed", 999, 4096);
	attempt_dmabuf("memfd", fd, BYTES);
	queue_pairs(create_cq(context, 4, NULL, NULL, 0));
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, rounds, memory))
			return 1;
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(thread[i], NULL);
	(void)printf("rounds good\n");
	return 0;
}
