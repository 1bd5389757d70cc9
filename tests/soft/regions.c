/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose memory regions come and go as it is told, line by line:
 *
 *   host BYTES    ibv_reg_mr                        -> the lkey
 *   memfd BYTES   ibv_reg_dmabuf_mr of a memfd      -> the lkey
 *   drop LKEY     ibv_dereg_mr                      -> "dropped"
 *
 * Says "ready" when the first device is open; ends with its input.
 */
#include "client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { REGIONS = 16 };

static struct ibv_mr *region[REGIONS];

static struct ibv_mr *of_memfd(struct ibv_pd *pd, size_t bytes)
{
	int fd = memfd_create("regions", MFD_CLOEXEC);
	struct ibv_mr *mr;

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		client_fault("memfd: %s", strerror(errno));
	mr = ibv_reg_dmabuf_mr(pd, 0, bytes, 0x10000, fd, IBV_ACCESS_LOCAL_WRITE);
	(void)close(fd);
	return mr;
}

static void add(struct ibv_mr *mr)
{
	if (!mr)
		client_fault("not registered: %s", strerror(errno));
	for (size_t i = 0; i < REGIONS; i++) {
		if (region[i])
			continue;
		region[i] = mr;
		(void)printf("%" PRIu32 "\n", mr->lkey);
		return;
	}
	client_fault("more regions than can be");
}

static void drop(unsigned long lkey)
{
	for (size_t i = 0; i < REGIONS; i++) {
		if (!region[i] || region[i]->lkey != lkey)
			continue;
		if (ibv_dereg_mr(region[i]))
			client_fault("ibv_dereg_mr");
		region[i] = NULL;
		(void)puts("dropped");
		return;
	}
	client_fault("no region %lu", lkey);
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	char line[64];

	if (!pd)
		client_fault("no device: %s", strerror(errno));
	(void)puts("ready");
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		char *number = strchr(line, ' ');
		unsigned long n = number ? strtoul(number, NULL, 10) : 0;

		if (!strncmp(line, "host ", 5))
			add(ibv_reg_mr(pd, malloc(n), n, IBV_ACCESS_LOCAL_WRITE));
		else if (!strncmp(line, "memfd ", 6))
			add(of_memfd(pd, n));
		else
			drop(n);
		(void)fflush(stdout);
	}
	return 0;
}
