/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda-vmm: physical segments of cuMemCreate, mapped one behind the other into one range of
 * addresses, as PyTorch's expandable segments and NCCL's buffers are.
 *
 *   allocation              at = allocation + inside
 *   |                       |
 *   [ segment 0             ][ segment 1            ][ segment 2     ]
 *
 * The segments are of one size; the last takes what is left.
 */
#include "mem/cuda.h"

#include <errno.h>

#include "mem/kind.h"
#include "base/banned.h"

/* CUmemAllocationType, CUmemLocationType, CUmemAllocationHandleType, CUmemAccess_flags */
enum { PINNED = 1, OF_DEVICE = 1, POSIX_FD = 1, READ_WRITE = 3, MINIMUM = 0 };

static int supported(const struct pp_cuda *c, struct pp_error *err)
{
	const struct pp_cuda_calls *f = &c->call;

	if (!f->create || !f->destroy || !f->reserve || !f->unreserve || !f->map || !f->unmap ||
	    !f->set_access || !f->granularity)
		return pp_error_set(err, -ENOSYS, "GPU %s: this driver has no cuMemCreate",
				    c->name);
	if (!c->gdr_vmm)
		return pp_error_set(
			err, -EOPNOTSUPP,
			"GPU %s: cuMemCreate cannot make memory for RDMA here "
			"(GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED is 0): take cuda memory",
			c->name);
	return 0;
}

static struct pp_cuda_property property(const struct pp_cuda *c)
{
	return (struct pp_cuda_property){
		.type = PINNED,
		/* As NCCL's: what a peer of the same host can be given. */
		.handle_types = c->posix_fd > 0 ? POSIX_FD : 0,
		.place = {.type = OF_DEVICE, .id = c->device},
		/* Without it neither peermem nor an export gets at the memory. */
		.gdr_capable = 1,
	};
}

/* One segment behind the others. */
static int append(struct pp_memory *m, const struct pp_cuda_property *p, uint64_t offset,
		  uint64_t size, struct pp_error *err)
{
	const struct pp_cuda *c = m->cuda;
	uint64_t handle = 0;
	int code = c->call.create(&handle, size, p, 0);

	if (code)
		return pp_memory_no_room(m, "cuMemCreate", code, err);
	code = c->call.map(m->allocation + offset, size, 0, handle, 0);
	if (code) {
		(void)c->call.destroy(handle);
		return pp_cuda_fail(c, "cuMemMap", code, err);
	}
	m->handle[m->n_handles] = handle;
	m->mapped[m->n_handles++] = size;
	return pp_memory_add_segment(m, m->allocation + offset, size, err);
}

static int make(struct pp_memory *m, struct pp_error *err)
{
	const struct pp_cuda *c = m->cuda;
	const struct pp_cuda_property p = property(c);
	const struct pp_cuda_access access = {.place = p.place, .flags = READ_WRITE};
	uint64_t n = m->options.segments ? m->options.segments : 1, total, each;
	size_t unit = 0;
	int r = supported(c, err), code;

	if (r)
		return r;
	pp_cuda_enter(c);
	code = c->call.granularity(&unit, &p, MINIMUM);
	if (code)
		return pp_cuda_fail(c, "cuMemGetAllocationGranularity", code, err);
	if (!unit || unit & (unit - 1))
		return pp_error_set(err, -EIO, "GPU %s: a granularity of %zu bytes", c->name, unit);
	r = pp_memory_round(m->size + m->options.inside, unit, &total, err);
	if (!r)
		r = pp_memory_round((total + n - 1) / n, unit, &each, err);
	if (r)
		return r;
	if (each * (n - 1) >= total)
		return pp_error_set(
			err, -EINVAL,
			"%llu segments of GPU memory need at least %llu bytes: each is a "
			"multiple of %zu",
			(unsigned long long)n, (unsigned long long)((n - 1) * unit + 1), unit);
	code = c->call.reserve(&m->allocation, total, 0, 0, 0);
	if (code)
		return pp_cuda_fail(c, "cuMemAddressReserve", code, err);
	m->allocated = total;
	m->at = m->allocation + m->options.inside;
	for (uint64_t i = 0; i < n && !r; i++)
		r = append(m, &p, i * each, i + 1 < n ? each : total - i * each, err);
	if (r)
		return r;
	code = c->call.set_access(m->allocation, total, &access, 1);
	return code ? pp_cuda_fail(c, "cuMemSetAccess", code, err) : 0;
}

static void unmake(struct pp_memory *m)
{
	const struct pp_cuda *c = m->cuda;
	uint64_t at = m->allocation;

	if (!at)
		return;
	pp_cuda_enter(c);
	for (unsigned int i = 0; i < m->n_handles; i++) {
		(void)c->call.unmap(at, m->mapped[i]);
		(void)c->call.destroy(m->handle[i]);
		at += m->mapped[i];
	}
	(void)c->call.unreserve(m->allocation, m->allocated);
}

const struct pp_memory_ops pp_memory_vmm_ops = {.make = make, .unmake = unmake};
