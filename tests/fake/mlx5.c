/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two calls of rdma-core 54's libmlx5.so.1 that data-direct is, of a device that has it.
 *
 * PP_FAKE_MLX5: direct (default); plain: the device has no such function; reg-<errno>: it has, and
 * the registration is refused. What the registration was given last: pp_fake_mlx5_last().
 */
#include <infiniband/verbs.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

struct given {
	uint64_t offset, length, iova;
	int64_t fd_bytes;
	int access, mlx5_access;
};

static struct given last;

API const struct given *pp_fake_mlx5_last(void)
{
	return &last;
}

API int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *context, char *path, size_t size)
{
	static const char where[] = "/sys/devices/pci0000:00/0000:00:04.0/0000:04:00.2";
	const char *word = getenv("PP_FAKE_MLX5");

	(void)context;
	if (word && !strcmp(word, "plain"))
		return ENODEV;
	if (size < sizeof(where))
		return ENOSPC;
	memcpy(path, where, sizeof(where));
	return 0;
}

API struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access, int mlx5_access)
{
	const char *word = getenv("PP_FAKE_MLX5");
	static struct ibv_mr mr = {.lkey = 7, .rkey = 8};

	(void)pd;
	last = (struct given){.offset = offset,
			      .length = length,
			      .iova = iova,
			      .fd_bytes = lseek(fd, 0, SEEK_END),
			      .access = access,
			      .mlx5_access = mlx5_access};
	errno = 0;
	for (word = word && !strncmp(word, "reg-", 4) ? word + 4 : ""; *word; word++)
		errno = errno * 10 + (*word - '0');
	return errno ? NULL : &mr;
}
