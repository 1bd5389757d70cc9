/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda: memory of cuMemAlloc, possibly in the midst of a larger allocation.
 */
#include "mem/cuda.h"

#include <errno.h>
#include <unistd.h>

#include "mem/kind.h"
#include "base/banned.h"

static int make(struct pp_memory *m, struct pp_error *err)
{
	const struct pp_cuda *c = m->cuda;
	uint64_t base = 0, page = (uint64_t)sysconf(_SC_PAGESIZE), end;
	size_t size = 0;
	int r, code;

	/* Whole GPU pages, so that none is shared with an allocation that is not exported. */
	r = pp_memory_round(m->size + m->options.inside, PP_GPU_PAGE, &m->allocated, err);
	if (r)
		return r;
	pp_cuda_enter(c);
	code = c->call.alloc(&m->allocation, m->allocated);
	if (code) {
		m->allocation = 0;
		return pp_memory_no_room(m, "cuMemAlloc", code, err);
	}
	m->at = m->allocation + m->options.inside;
	/* As for memory that somebody else allocated: what the driver calls the allocation. */
	code = c->call.address_range(&base, &size, m->at);
	if (code)
		return pp_cuda_fail(c, "cuMemGetAddressRange", code, err);
	if (base > m->at || __builtin_add_overflow(base, size, &end) || end < m->at + m->size)
		return pp_error_set(err, -EIO,
				    "GPU %s: cuMemGetAddressRange says [0x%llx, +%zu), which does "
				    "not hold the memory at 0x%llx",
				    c->name, (unsigned long long)base, size,
				    (unsigned long long)m->at);
	end = (end + page - 1) & ~(page - 1);
	base &= ~(page - 1);
	return pp_memory_add_segment(m, base, end - base, err);
}

static void unmake(struct pp_memory *m)
{
	if (!m->allocation)
		return;
	pp_cuda_enter(m->cuda);
	(void)m->cuda->call.free(m->allocation);
}

const struct pp_memory_ops pp_memory_cuda_ops = {.make = make, .unmake = unmake};
