/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends in the middle of copies: registrations, queue pairs, processes go, and nothing touches
 * their memory afterwards (tests/fake/cuda_copy.c watches). And what is refused.
 */
#include "traffic.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { DEEP = 16, LEN = 256 << 10 };

static void drain(struct end *e)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(e->cq, 1, &wc) > 0)
		;
}

static void flood(struct end *e)
{
	for (unsigned int i = 0; i < DEEP; i++)
		end_post(e, IBV_WR_RDMA_WRITE, i, (size_t)i * LEN, LEN, (size_t)i * LEN);
}

/* The peer's GPU has this memory mapped afterwards, if it ever will. */
static void warm(struct end *e, bool first)
{
	for (unsigned int i = 0; i < 20 && first; i++) {
		end_post(e, IBV_WR_RDMA_WRITE, i, 0, 64, 0);
		(void)end_wait(e);
		usleep(1000);
	}
	end_meet(e);
}

/* t->call: what goes first. */
void traffic_ends(struct end *e, bool first, const struct traffic *t)
{
	bool mine = first == (t->call[0] == 's'); /* sender's, receiver's */
	const char *what = t->call + 1;

	end_connect(e, first ? t->source : t->target, (size_t)DEEP * LEN, 0);
	warm(e, first);
	if (first)
		flood(e);
	if (!first || mine)
		usleep(300 * (t->rounds % 7));
	if (mine && !strcmp(what, "kill"))
		(void)kill(getpid(), SIGKILL);
	if (mine && !strcmp(what, "exit"))
		exit(0);
	if (mine && !strcmp(what, "close")) {
		(void)ibv_close_device(e->context);
		gpu_give(&e->memory);
		usleep(20000);
		return;
	}
	if (mine && !strcmp(what, "dereg")) {
		if (ibv_dereg_mr(e->mr))
			end_fault("ibv_dereg_mr");
		gpu_give(&e->memory);
		usleep(20000);
		(void)ibv_destroy_qp(e->qp);
		return;
	}
	if (mine && !strcmp(what, "destroy")) {
		if (ibv_destroy_qp(e->qp) || ibv_dereg_mr(e->mr))
			end_fault("something stays");
		gpu_give(&e->memory);
		usleep(20000);
		return;
	}
	usleep(200000);
	drain(e);
	if (ibv_destroy_qp(e->qp) || ibv_dereg_mr(e->mr))
		end_fault("something stays");
	gpu_give(&e->memory);
	(void)ibv_close_device(e->context);
}

static void refused(struct end *e, const char *what, int want, uint64_t offset, size_t len,
		    uint64_t iova, int fd)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_dmabuf_mr(e->pd, offset, len, iova, fd, END_ACCESS);
	/* The descriptor that stands in for a GPU's says another word when it is mapped. */
	if (!mr && want == ENODEV && errno == EACCES)
		errno = want;
	if (mr || errno != want)
		end_fault("%s: %s, not %s", what, mr ? "registered" : strerror(errno),
			  strerror(want));
	printf("rule: %s: %s\n", what, strerror(want));
}

/* One process is enough: the other only waits. */
void traffic_rules(struct end *e, bool first, const struct traffic *t)
{
	struct ibv_port_attr port;
	struct gpu_memory m, later;
	struct ibv_mr *mr;
	int fd;

	(void)t;
	if (!first) {
		end_meet(e);
		return;
	}
	if (ibv_query_port(e->context, 1, &port))
		end_fault("ibv_query_port");
	printf("port: width %u, speed %u\n", port.active_width, port.active_speed);
	m = gpu_take(GPU_ALLOC, 4 << 20, 0);
	fd = gpu_export(m.at, 2 << 20);
	refused(e, "no descriptor", EBADF, 0, 4096, m.at, -1);
	refused(e, "no descriptor and no length", EBADF, 0, 0, 0, -1);
	refused(e, "no length", EINVAL, 0, 0, m.at, fd);
	refused(e, "offset and iova differ within a page", EINVAL, 0, 4096, m.at + 8, fd);
	refused(e, "longer than the descriptor", EINVAL, 0, 3 << 20, m.at, fd);
	refused(e, "offset behind the descriptor", EINVAL, 2 << 20, 4096, m.at, fd);
	refused(e, "longer than the allocation", EINVAL, 0, 2 << 20, m.at + (3 << 20), fd);
	refused(e, "an address of nobody", ENODEV, 0, 4096, 0x1000, fd);
	errno = 0;
	if (ibv_reg_mr(e->pd, (void *)(uintptr_t)m.at, 4096, END_ACCESS) || errno != EFAULT)
		end_fault("ibv_reg_mr: %m");
	errno = 0;
	if (ibv_reg_mr_iova(e->pd, (void *)(uintptr_t)m.at, 4096, m.at, END_ACCESS) ||
	    errno != EFAULT)
		end_fault("ibv_reg_mr_iova: %m");
	printf("rule: address of a GPU without a descriptor: %s\n", strerror(EFAULT));
	mr = ibv_reg_dmabuf_mr(e->pd, 0, 2 << 20, m.at, fd, END_ACCESS);
	if (!mr)
		end_fault("ibv_reg_dmabuf_mr: %m");
	close(fd);
	errno = 0;
	if (ibv_dereg_mr(mr))
		end_fault("ibv_dereg_mr");
	later = gpu_take(GPU_VMM_TWO, 4 << 20, 0);
	fd = gpu_export(later.base, later.whole);
	mr = ibv_reg_dmabuf_mr(e->pd, 0, later.whole, later.base, fd, END_ACCESS);
	if (!mr)
		end_fault("two segments: %m");
	close(fd);
	if (ibv_dereg_mr(mr))
		end_fault("ibv_dereg_mr");
	printf("rule: two segments that follow each other: registered\n");
	end_meet(e);
}
