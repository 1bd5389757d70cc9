/* SPDX-License-Identifier: Apache-2.0 */
#include "mem/memory.h"

#include <errno.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "mem/bar1.h"
#include "mem/cuda.h"
#include "mem/kind.h"
#include "mem/pattern.h"
#include "mem/staging.h"
#include "base/banned.h"

/* CUflushGPUDirectRDMAWritesOptions and -Scope, CUGPUDirectRDMAWritesOrdering */
enum { BY_HOST = 1, TO_OWNER = 100, ORDERED_FOR_OWNER = 100 };

static const struct pp_memory_ops *const kinds[] = {
	[PP_MEMORY_HOST] = &pp_memory_host_ops,
	[PP_MEMORY_CUDA] = &pp_memory_cuda_ops,
	[PP_MEMORY_CUDA_VMM] = &pp_memory_vmm_ops,
	[PP_MEMORY_SIM] = &pp_memory_sim_ops,
};

int pp_memory_round(uint64_t size, uint64_t unit, uint64_t *ret, struct pp_error *err)
{
	uint64_t up;

	if (!size || __builtin_add_overflow(size, unit - 1, &up) || up > SIZE_MAX / 2)
		return pp_error_set(err, -EINVAL, "%llu bytes are no size of memory",
				    (unsigned long long)size);
	*ret = up & ~(unit - 1);
	return 0;
}

int pp_memory_add_segment(struct pp_memory *m, uint64_t base, uint64_t size, struct pp_error *err)
{
	uint64_t end = m->at + m->size, from = base > m->at ? base : m->at,
		 to = base + size < end ? base + size : end;

	if (from >= to)
		return 0;
	if (m->n_segments == PP_MEMORY_SEGMENTS)
		return pp_error_set(err, -EINVAL, "memory of more than %d segments",
				    PP_MEMORY_SEGMENTS);
	m->segment[m->n_segments++] = (struct pp_memory_segment){
		.base = base, .size = size, .start = from - m->at, .length = to - from};
	return 0;
}

int pp_memory_no_room(const struct pp_memory *m, const char *call, int code, struct pp_error *err)
{
	if (code != PP_CUDA_OUT_OF_MEMORY)
		return pp_cuda_fail(m->cuda, call, code, err);
	return pp_error_set(err, -ENOMEM,
			    "GPU %s of %llu MiB has no %llu MiB left: choose a smaller size or end "
			    "what uses it (nvidia-smi)",
			    m->cuda->name, (unsigned long long)(m->cuda->memory >> 20),
			    (unsigned long long)(m->allocated >> 20));
}

static bool of_gpu(const struct pp_memory *m)
{
	return m->options.kind == PP_MEMORY_CUDA || m->options.kind == PP_MEMORY_CUDA_VMM;
}

static void ask_capable(struct pp_memory *m)
{
	int capable = 0;

	pp_cuda_enter(m->cuda);
	if (!m->cuda->call.pointer_get(&capable, PP_CUDA_GDR_CAPABLE, m->at))
		m->gdr_capable = capable != 0;
}

static int make(struct pp_memory *m, struct pp_error *err)
{
	int64_t used;
	int r;

	if (of_gpu(m)) {
		r = pp_cuda_open(m->options.gpu, &m->cuda, err);
		if (r)
			return r;
		pp_bar1_read(&m->cuda->bar1, &m->bar1_total, &used);
		m->bar1_free = m->bar1_total < 0 ? -1 : m->bar1_total - used;
	}
	r = m->ops->make(m, err);
	if (!r && m->cuda)
		ask_capable(m);
	return !r && m->cuda ? pp_staging_new(m, &m->staging, err) : r;
}

int pp_memory_new(const struct pp_memory_options *options, struct pp_memory **ret,
		  struct pp_error *err)
{
	struct pp_memory *m;
	uint64_t end;
	int r;

	if (!options->size || options->size > SIZE_MAX / 2 ||
	    __builtin_add_overflow(options->size, options->inside, &end) || end > SIZE_MAX / 2)
		return pp_error_set(err, -EINVAL, "%zu bytes are no size of memory", options->size);
	if (options->segments > PP_MEMORY_SEGMENTS)
		return pp_error_set(err, -EINVAL, "%u segments: at most %d", options->segments,
				    PP_MEMORY_SEGMENTS);
	m = calloc(1, sizeof(*m));
	if (!m)
		return pp_error_set(err, -ENOMEM, "out of memory");
	m->options = *options;
	m->size = options->size;
	m->ops = kinds[options->kind];
	m->fd = m->gdr_capable = -1;
	m->bar1_total = m->bar1_free = -1;
	r = make(m, err);
	if (r) {
		pp_memory_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

struct pp_memory *pp_memory_free(struct pp_memory *m)
{
	if (!m)
		return NULL;
	pp_staging_free(m, m->staging);
	m->ops->unmake(m);
	pp_cuda_close(m->cuda);
	free(m);
	return NULL;
}

static int within(const struct pp_memory *m, uint64_t offset, uint64_t len, struct pp_error *err)
{
	if (offset <= m->size && len <= m->size - offset)
		return 0;
	return pp_error_set(err, -ERANGE, "[%llu, +%llu) is not within %zu bytes of memory",
			    (unsigned long long)offset, (unsigned long long)len, m->size);
}

int pp_memory_fill(struct pp_memory *m, uint64_t offset, uint64_t len, uint64_t seed,
		   struct pp_error *err)
{
	int r = within(m, offset, len, err);

	if (r)
		return r;
	if (m->cuda)
		return pp_staging_fill(m, m->staging, offset, len, seed, err);
	pp_pattern_fill((void *)(uintptr_t)(m->at + offset), offset, len, seed);
	return 0;
}

int pp_memory_check(struct pp_memory *m, uint64_t offset, uint64_t len, uint64_t seed,
		    uint64_t from, struct pp_memory_checked *ret, struct pp_error *err)
{
	struct pp_pattern_wrong wrong;
	int r = within(m, offset, len, err);

	if (r)
		return r;
	if (m->cuda)
		return pp_staging_check(m, m->staging, offset, len, seed, from, ret, err);
	pp_pattern_check((const void *)(uintptr_t)(m->at + offset), from, len, seed, &wrong);
	*ret = (struct pp_memory_checked){.bytes = len,
					  .wrong = wrong.bytes,
					  .first = wrong.bytes ? offset + wrong.first : 0,
					  .expected = wrong.expected,
					  .found = wrong.found};
	return 0;
}

int pp_memory_flush(struct pp_memory *m, const char **ret_did, struct pp_error *err)
{
	const struct pp_cuda *c = m->cuda;
	int code;

	if (!c) {
		*ret_did = "not needed (memory of the processor)";
		return 0;
	}
	if (c->writes_ordering >= ORDERED_FOR_OWNER) {
		*ret_did = c->writes_ordering > ORDERED_FOR_OWNER
				   ? "not needed (ordering all devices)"
				   : "not needed (ordering owner)";
		return 0;
	}
	if (c->flush_options < 0 || !(c->flush_options & BY_HOST) || !c->call.flush) {
		*ret_did = c->flush_options < 0
				   ? "not possible (driver before CUDA 11.3)"
				   : "not possible by the host (a read through the NIC would do)";
		return 0;
	}
	pp_cuda_enter(c);
	code = c->call.flush(/* current context */ 0, TO_OWNER);
	if (code)
		return pp_cuda_fail(c, "cuFlushGPUDirectRDMAWrites", code, err);
	*ret_did = "cuFlushGPUDirectRDMAWrites";
	return 0;
}
