/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: mr_holder DEVICE COUNT SIZE [thread|own]
 *
 * Registers COUNT regions of SIZE bytes of one piece of memory on DEVICE, prints
 * "holding PID TID lkey rkey" of the first and stays until it is killed. With `thread`
 * another thread registers all of it but the context and the domain, and is gone before the line
 * is printed; with `own` (the default) the first thread does.
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COUNT_MAX = 100000 };

struct holder {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr **mr;
	size_t count, size;
	void *memory;
	pid_t tid;
	int failed;
};

static void *register_all(void *arg)
{
	struct holder *h = arg;

	h->tid = (pid_t)syscall(SYS_gettid);
	for (size_t i = 0; i < h->count; i++) {
		h->mr[i] = ibv_reg_mr(h->pd, h->memory, h->size, IBV_ACCESS_LOCAL_WRITE);
		if (!h->mr[i]) {
			perror("ibv_reg_mr");
			h->failed = 1;
			return NULL;
		}
	}
	return NULL;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (size_t i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	return context;
}

int main(int argc, char **argv)
{
	struct holder h = {0};
	pthread_t thread;

	if (argc < 4) {
		(void)fprintf(stderr, "usage: mr_holder DEVICE COUNT SIZE [thread|own]\n");
		return 64;
	}
	h.count = strtoull(argv[2], NULL, 10);
	h.size = strtoull(argv[3], NULL, 10);
	if (!h.count || h.count > COUNT_MAX || !h.size)
		return 64;
	h.mr = calloc(h.count, sizeof(*h.mr));
	h.memory = aligned_alloc(4096, (h.size + 4095) / 4096 * 4096);
	h.context = open_device(argv[1]);
	h.pd = h.context ? ibv_alloc_pd(h.context) : NULL;
	if (!h.mr || !h.memory || !h.pd) {
		(void)fprintf(stderr, "no device %s, or no memory\n", argv[1]);
		return 1;
	}
	if (argc > 4 && !strcmp(argv[4], "thread")) {
		if (pthread_create(&thread, NULL, register_all, &h) || pthread_join(thread, NULL))
			return 1;
	} else {
		(void)register_all(&h);
	}
	if (h.failed)
		return 1;
	(void)printf("holding %d %d 0x%x 0x%x\n", getpid(), h.tid, h.mr[0]->lkey, h.mr[0]->rkey);
	(void)fflush(stdout);
	for (;;)
		(void)pause();
}
