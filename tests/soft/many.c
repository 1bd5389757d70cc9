/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many objects: 1,000 queue pairs that are all connected and each move a message, 10,000 regions of
 * a page each, a thousand of them written through; twice, and the second time takes no memory,
 * descriptor or number that the first did not give back.
 *
 * usage: many             Exit: 0 right, 77 the port is another user's.
 *        many forever     Makes and takes away until it is killed.
 */
#include "client.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { QPS = 1000, MRS = 10000, PAGE = 4096, WRITTEN = 1000, SLACK_BYTES = 64 << 10 };

static struct ibv_qp *qps[QPS];
static struct ibv_mr *mrs[MRS];
static unsigned char *pages;

static unsigned int descriptors(void)
{
	unsigned int n = 0;
	DIR *d = opendir("/proc/self/fd");

	if (!d)
		client_fault("/proc/self/fd: %s", strerror(errno));
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void expect_success(struct client *c, unsigned int n)
{
	while (n--) {
		struct ibv_wc wc = client_wait(c->cq);

		if (wc.status != IBV_WC_SUCCESS)
			client_fault("%s", ibv_wc_status_str(wc.status));
	}
}

static void move_by_each_qp(struct client *c, unsigned int n)
{
	struct client_peer self = client_self(c);

	for (unsigned int i = 0; i < n; i++) {
		qps[i] = client_qp(c, c->cq);
		self.qpn = qps[i]->qp_num;
		client_connect(qps[i], &self, 18, 7);
	}
	for (unsigned int i = 0; i < n; i++) {
		uint64_t number = i + 1;

		memcpy(c->memory, &number, sizeof(number));
		if (client_write(c, qps[i], i, 0, 8, &self, 64 + 8 * (size_t)i))
			client_fault("ibv_post_send");
		expect_success(c, 1);
	}
	for (unsigned int i = 0; i < n; i++) {
		uint64_t number;

		memcpy(&number, c->memory + 64 + 8 * (size_t)i, sizeof(number));
		if (number != i + 1)
			client_fault("queue pair %u wrote %llu", i, (unsigned long long)number);
	}
	for (unsigned int i = 0; i < n; i++)
		if (ibv_destroy_qp(qps[i]))
			client_fault("ibv_destroy_qp");
}

static void write_by_each_key(struct client *c, unsigned int n)
{
	struct client_peer self = client_self(c);

	for (unsigned int i = 0; i < n; i++) {
		mrs[i] = ibv_reg_mr(c->pd, pages + (size_t)i * PAGE, PAGE,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		if (!mrs[i])
			client_fault("region %u: %s", i, strerror(errno));
	}
	for (unsigned int k = 0; k < WRITTEN && k < n; k++) {
		unsigned int i = (unsigned int)((uint64_t)k * 7919 % n);

		self.rkey = mrs[i]->rkey;
		self.memory = (uintptr_t)mrs[i]->addr;
		memcpy(c->memory, &i, sizeof(i));
		if (client_write(c, c->qp, i, 0, sizeof(i), &self, 0))
			client_fault("ibv_post_send");
		expect_success(c, 1);
		if (memcmp(mrs[i]->addr, &i, sizeof(i)) != 0)
			client_fault("region %u was not written", i);
	}
	for (unsigned int i = 0; i < n; i++)
		if (ibv_dereg_mr(mrs[i]))
			client_fault("ibv_dereg_mr");
}

static void pass(unsigned int num_qps, unsigned int num_mrs)
{
	struct client c;
	struct client_peer self;

	client_open(&c, 64 + 8 * QPS);
	self = client_self(&c);
	client_connect(c.qp, &self, 18, 7);
	move_by_each_qp(&c, num_qps);
	write_by_each_key(&c, num_mrs);
	client_close(&c);
}

int main(int argc, char **argv)
{
	bool forever = argc > 1 && !strcmp(argv[1], "forever");
	size_t bytes = (size_t)MRS * PAGE, used = 0;
	unsigned int fds = 0;

	pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		client_fault("mmap: %s", strerror(errno));
	while (forever)
		pass(20, 50);
	for (int i = 0; i < 3; i++) {
		size_t now;

		pass(QPS, MRS);
		now = mallinfo2().uordblks;
		if (i == 2 && now > used + SLACK_BYTES)
			client_fault("%zu bytes more than after the pass before", now - used);
		if (i && descriptors() != fds)
			client_fault("%u descriptors, not %u", descriptors(), fds);
		used = now;
		fds = descriptors();
	}
	printf("%d queue pairs, %d regions, three times; %zu bytes in use at the end\n", QPS, MRS,
	       used);
	return 0;
}
