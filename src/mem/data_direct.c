/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data-direct: a DMA-BUF that a ConnectX-8 reaches by its second, direct PCI function. Told from
 * plain dmabuf by one flag of a call that only mlx5's library has, from rdma-core 54 on.
 */
#include <dlfcn.h>
#include <errno.h>

#include "mem/way.h"
#include "base/banned.h"

/* MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT */
enum { DATA_DIRECT = 1, PATH_BYTES = 256 };

static const char REG[] = "mlx5dv_reg_dmabuf_mr", PATH[] = "mlx5dv_get_data_direct_sysfs_path";

typedef struct ibv_mr *reg_dmabuf(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova,
				  int fd, int access, int mlx5_access);
typedef int sysfs_path(struct ibv_context *context, char *path, size_t size);

/* The library is loaded already where libibverbs has an mlx5 device; it is found by its name. */
static void *library(void)
{
	return dlopen("libmlx5.so.1", RTLD_NOW | RTLD_LOCAL);
}

/* Does the device have that function? */
static int shown(struct pp_registering *g, void *lib)
{
	struct pp_attempt *a;
	char path[PATH_BYTES] = "";
	sysfs_path *fn = NULL;
	int error;

	*(void **)&fn = dlsym(lib, PATH);
	a = pp_attempt_begin(g, PATH, "%s", fn ? "" : "not in this libmlx5 (rdma-core 54 has it)");
	error = fn ? fn(g->pd->context, path, sizeof(path)) : ENOSYS;
	error = error < 0 ? -error : error;
	pp_attempt_end(g, a, error);
	if (!error)
		return 0;
	(void)pp_error_set(g->err, -error, "%s: %s (%d): this device has no data-direct function",
			   PATH, pp_errno_name(error), error);
	return g->options->automatic ? -EOPNOTSUPP : -error;
}

static int ready(struct pp_registering *g)
{
	void *lib;

	if (!g->memory->cuda)
		return pp_error_set(g->err, -EINVAL, "data-direct is for a GPU's memory");
	if (g->software)
		return pp_error_set(g->err, -EOPNOTSUPP, "the software device has no data-direct");
	lib = library();
	if (!lib || !dlsym(lib, REG))
		return pp_error_set(g->err, -EOPNOTSUPP,
				    "%s: data-direct needs mlx5's library of rdma-core 54 or newer",
				    lib ? "libmlx5.so.1 has no mlx5dv_reg_dmabuf_mr"
					: "there is no libmlx5.so.1");
	if (g->options->automatic || g->options->data_direct_only_where_shown)
		return shown(g, lib);
	return 0;
}

static struct ibv_mr *verb(struct pp_registering *g, uint64_t offset, size_t len, uint64_t iova,
			   int fd)
{
	void *lib = library();
	reg_dmabuf *fn = NULL;

	*(void **)&fn = lib ? dlsym(lib, REG) : NULL;
	errno = ENOSYS;
	if (!fn)
		return NULL;
	errno = 0;
	return fn(g->pd, offset, len, iova, fd, g->access, DATA_DIRECT);
}

/* The driver takes whole pages only. */
static int segment(struct pp_registering *g, unsigned int i, struct pp_key *ret_key,
		   struct ibv_mr **ret_mr)
{
	return pp_way_by_descriptor(g, i, REG, verb, /* whole_pages= */ true, ret_key, ret_mr);
}

const struct pp_way pp_way_data_direct = {
	.ready = ready, .segment = segment, .window = pp_way_whole_allocation};
