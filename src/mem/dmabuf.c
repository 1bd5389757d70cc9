/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dmabuf: a descriptor of the whole allocation, and a region of the part that is wanted.
 *
 *        base                  at = iova
 *   fd:  |<------ offset ----->|<--- length --->|        |
 *        [ the segment, whole pages                      ]
 *
 * offset and iova have the same place in their page, as the kernel demands, since base begins one.
 * The region keeps the memory: the descriptor is closed at once.
 */
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "mem/way.h"
#include "base/banned.h"

static const char RANGE[] = "peerpath_soft_dmabuf_range";

typedef int soft_range(int fd, uint64_t va, uint64_t length);

static soft_range *soft_range_of(const struct pp_verbs *v)
{
	soft_range *range = NULL;

	*(void **)&range = dlsym(v->library, RANGE);
	return range;
}

bool pp_verbs_are_software(const struct pp_verbs *v)
{
	return soft_range_of(v) != NULL;
}

/* *ret_fd: 0 is a legal one. */
static int export_segment(struct pp_registering *g, const struct pp_memory_segment *s, int *ret_fd)
{
	const struct pp_cuda *c = g->memory->cuda;
	const char call[] = "cuMemGetHandleForAddressRange";
	struct pp_attempt *a;
	int fd = -1, code;

	if (!c->call.handle_for_range)
		return pp_error_set(
			g->err, -EOPNOTSUPP,
			"GPU %s: this driver has no %s (CUDA 11.7 has): peermem is left", c->name,
			call);
	pp_cuda_enter(c);
	a = pp_attempt_begin(g, call, "address 0x%llx, size %llu, DMA_BUF_FD, flags 0",
			     (unsigned long long)s->base, (unsigned long long)s->size);
	code = c->call.handle_for_range(&fd, s->base, s->size, PP_CUDA_DMABUF_FD, 0);
	pp_attempt_end_cuda(g, a, code);
	if (code)
		return pp_way_refused_cuda(g, call, code, s->size);
	if (fd < 0)
		return pp_error_set(g->err, -EIO, "GPU %s: %s gave descriptor %d", c->name, call,
				    fd);
	*ret_fd = fd;
	return 0;
}

/* The software device cannot see of a GPU's descriptor which addresses it stands for. */
static int tell_software(struct pp_registering *g, const struct pp_memory_segment *s, int fd)
{
	soft_range *range = soft_range_of(g->verbs);
	struct pp_attempt *a;
	int error;

	if (!range)
		return 0;
	a = pp_attempt_begin(g, RANGE, "fd %d, address 0x%llx, length %llu: offset honoured", fd,
			     (unsigned long long)s->base, (unsigned long long)s->size);
	error = range(fd, s->base, s->size);
	error = error < 0 ? -error : error;
	pp_attempt_end(g, a, error);
	return error ? pp_way_refused(g, RANGE, error, s->size) : 0;
}

static int register_fd(struct pp_registering *g, const struct pp_memory_segment *s, int fd,
		       const char *call, pp_descriptor_verb *verb, bool whole_pages,
		       struct pp_key *ret_key, struct ibv_mr **ret_mr)
{
	const uint64_t mask = whole_pages ? (uint64_t)sysconf(_SC_PAGESIZE) - 1 : 0,
		       at = g->memory->at + s->start, iova = at & ~mask,
		       end = (at + s->length + mask) & ~mask;
	struct pp_attempt *a = pp_attempt_begin(
		g, call, "offset %llu, length %llu, iova 0x%llx, fd %d, access 0x%x",
		(unsigned long long)(iova - s->base), (unsigned long long)(end - iova),
		(unsigned long long)iova, fd, g->access);
	struct ibv_mr *mr = verb(g, iova - s->base, end - iova, iova, fd);
	int error = pp_verb_errno(mr);

	pp_attempt_end(g, a, error);
	if (error)
		return pp_way_refused(g, call, error, s->size);
	*ret_key = (struct pp_key){.start = s->start,
				   .length = s->length,
				   .address = at,
				   .lkey = mr->lkey,
				   .rkey = mr->rkey};
	*ret_mr = mr;
	return 0;
}

int pp_way_by_descriptor(struct pp_registering *g, unsigned int i, const char *call,
			 pp_descriptor_verb *verb, bool whole_pages, struct pp_key *ret_key,
			 struct ibv_mr **ret_mr)
{
	const struct pp_memory_segment *s = &g->memory->segment[i];
	int fd = g->memory->fd, r = 0;

	if (g->memory->cuda) {
		r = export_segment(g, s, &fd);
		if (r)
			return r;
		r = tell_software(g, s, fd);
	}
	if (!r)
		r = register_fd(g, s, fd, call, verb, whole_pages, ret_key, ret_mr);
	if (g->memory->cuda)
		(void)close(fd);
	return r;
}

uint64_t pp_way_whole_allocation(const struct pp_memory_segment *s)
{
	return s->size;
}

static int ready(struct pp_registering *g)
{
	if (!g->memory->cuda && g->memory->fd < 0)
		return pp_error_set(g->err, -EINVAL,
				    "dmabuf is for a GPU's or simulated memory: host memory has no "
				    "descriptor");
	if (!g->verbs->reg_dmabuf)
		return pp_error_set(
			g->err, -EOPNOTSUPP,
			"this libibverbs has no ibv_reg_dmabuf_mr: rdma-core 34 or newer "
			"is needed, in the container too");
	return 0;
}

static struct ibv_mr *verb(struct pp_registering *g, uint64_t offset, size_t len, uint64_t iova,
			   int fd)
{
	return g->verbs->reg_dmabuf(g->pd, offset, len, iova, fd, g->access);
}

static int segment(struct pp_registering *g, unsigned int i, struct pp_key *ret_key,
		   struct ibv_mr **ret_mr)
{
	return pp_way_by_descriptor(g, i, "ibv_reg_dmabuf_mr", verb, /* whole_pages= */ false,
				    ret_key, ret_mr);
}

const struct pp_way pp_way_dmabuf = {
	.ready = ready, .segment = segment, .window = pp_way_whole_allocation};
