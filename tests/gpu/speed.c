/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast: WRITEs of one length, so many under way; every byte of the last of each place is
 * compared, outside the timed part. And what a registration costs. With -c fork either end forks in
 * the middle of it: children have nothing of the device, and take nothing of it with them.
 */
#include "traffic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNDER_WAY = 8, REGISTERED = 1 << 30, FORKS = 16 };

static void verify(struct end *e, size_t len)
{
	uint8_t *have = malloc(len * UNDER_WAY);

	gpu_get(&e->memory, 0, have, len * UNDER_WAY);
	for (size_t i = 0; i < len * UNDER_WAY; i++)
		if (have[i] != (uint8_t)(i * 2654435761u >> 13))
			end_fault("byte %zu is %02x", i, have[i]);
	free(have);
}

static void prepare(struct end *e, size_t len, bool first)
{
	uint8_t *bytes = calloc(UNDER_WAY, len);

	for (size_t i = 0; i < len * UNDER_WAY && first; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 13);
	gpu_put(&e->memory, 0, bytes, len * UNDER_WAY);
	free(bytes);
}

static void fork_one(struct end *e)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(!ibv_alloc_pd(e->context) && errno == EIO ? 0 : 1);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		end_fault("a child has the device, or none could be forked");
}

static void registration(struct end *e)
{
	struct gpu_memory m = gpu_take(GPU_ALLOC, REGISTERED, 0);
	struct ibv_mr *mr;
	double begin;
	int fd;

	for (unsigned int i = 0; i < 3; i++) {
		begin = end_seconds();
		fd = gpu_export(m.base, m.whole);
		printf("registration of 1 GiB: export %.0f us, ", (end_seconds() - begin) * 1e6);
		begin = end_seconds();
		mr = ibv_reg_dmabuf_mr(e->pd, 0, REGISTERED, m.at, fd, END_ACCESS);
		if (!mr)
			end_fault("ibv_reg_dmabuf_mr: %m");
		printf("ibv_reg_dmabuf_mr %.0f us, ", (end_seconds() - begin) * 1e6);
		close(fd);
		begin = end_seconds();
		if (ibv_dereg_mr(mr))
			end_fault("ibv_dereg_mr");
		printf("ibv_dereg_mr %.0f us\n", (end_seconds() - begin) * 1e6);
	}
	gpu_give(&m);
}

void traffic_speed(struct end *e, bool first, const struct traffic *t)
{
	bool forks = !strcmp(t->call, "fork");
	unsigned int posted = 0, done = 0, total = t->rounds;
	double begin;

	end_connect(e, first ? t->source : t->target, t->len * UNDER_WAY, 0);
	prepare(e, t->len, first);
	for (unsigned int pass = 0; pass < 2; pass++) { /* the first warms up */
		end_meet(e);
		begin = end_seconds();
		for (posted = done = 0; first && done < total; done++) {
			while (posted < total && posted - done < UNDER_WAY) {
				size_t at = posted % UNDER_WAY * t->len;

				end_post(e, IBV_WR_RDMA_WRITE, posted++, at, t->len, at);
			}
			(void)end_wait(e);
			if (forks && done % (total / FORKS + 1) == 0)
				fork_one(e);
		}
		for (unsigned int i = 0; !first && forks && i < FORKS; i++)
			fork_one(e);
		if (first)
			printf("speed: %s to %s, %zu bytes, %u of them%s: %.2f GB/s\n",
			       gpu_kind_names[t->source], gpu_kind_names[t->target], t->len, total,
			       pass ? "" : " (first pass)",
			       (double)total * (double)t->len / (end_seconds() - begin) * 1e-9);
		end_meet(e);
	}
	if (!first)
		verify(e, t->len);
	if (first && t->source == GPU_ALLOC && t->len >= 1 << 20)
		registration(e);
	end_meet(e);
	end_close(e);
}
