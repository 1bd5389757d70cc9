/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page-locked buffers and tickets. One stream each way and GPU carries all copies, so that those
 * of one direction end in the order of their start; an event behind each tells its end.
 */
#include "mem/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mem/cuda.h"
#include "mem/kind.h"
#include "base/banned.h"

struct pp_copy {
	void *event;	  /* NULL: not of a GPU */
	const char *call; /* the last one that failed */
	int code;	  /* its CUresult */
	bool pending;
};

int pp_bounce_new(struct pp_memory *m, size_t size, struct pp_bounce *ret, struct pp_error *err)
{
	const struct pp_cuda *c = m->cuda;
	uint64_t bytes;
	void *at;
	int r = pp_memory_round(size, (uint64_t)sysconf(_SC_PAGESIZE), &bytes, err), code;

	if (r)
		return r;
	/* Not cuMemHostAlloc: a mapping of our own can be registered and read as any other. */
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
		  -1, 0);
	if (at == MAP_FAILED)
		return pp_error_set(err, -errno, "a buffer of %llu bytes: %s",
				    (unsigned long long)bytes, pp_errno_name(errno));
	if (c) {
		pp_cuda_enter(c);
		code = c->call.host_register(at, bytes, PP_CUDA_PORTABLE);
		if (code) {
			(void)munmap(at, bytes);
			return pp_cuda_fail(c, "cuMemHostRegister", code, err);
		}
	}
	*ret = (struct pp_bounce){.at = at, .size = bytes};
	return 0;
}

void pp_bounce_free(struct pp_memory *m, struct pp_bounce *b)
{
	if (!b->at)
		return;
	if (m->cuda) {
		pp_cuda_enter(m->cuda);
		(void)m->cuda->call.host_unregister(b->at);
	}
	(void)munmap(b->at, b->size);
	*b = (struct pp_bounce){0};
}

int pp_copy_new(struct pp_memory *m, struct pp_copy **ret, struct pp_error *err)
{
	const struct pp_cuda *c = m->cuda;
	struct pp_copy *t = calloc(1, sizeof(*t));
	int code;

	if (!t)
		return pp_error_set(err, -ENOMEM, "out of memory");
	if (c) {
		pp_cuda_enter(c);
		code = c->call.event_create(&t->event, PP_CUDA_NO_TIMING);
		if (code) {
			free(t);
			return pp_cuda_fail(c, "cuEventCreate", code, err);
		}
	}
	*ret = t;
	return 0;
}

struct pp_copy *pp_copy_free(struct pp_memory *m, struct pp_copy *t)
{
	if (!t)
		return NULL;
	if (t->event) {
		pp_cuda_enter(m->cuda);
		(void)m->cuda->call.event_destroy(t->event);
	}
	free(t);
	return NULL;
}

static int note(struct pp_copy *t, const char *call, int code)
{
	t->call = call;
	t->code = code;
	return -pp_cuda_errno(code);
}

static bool within(const struct pp_memory *m, uint64_t offset, size_t len)
{
	return offset <= m->size && len <= m->size - offset;
}

/* Puts the event behind the copy that @code is the result of. */
static int started(struct pp_memory *m, struct pp_copy *t, const char *call, int code, void *stream)
{
	if (code)
		return note(t, call, code);
	t->pending = true;
	code = m->cuda->call.event_record(t->event, stream);
	return code ? note(t, "cuEventRecord", code) : 0;
}

int pp_copy_out(struct pp_memory *m, struct pp_copy *t, uint64_t offset, void *to, size_t len)
{
	const struct pp_cuda *c = m->cuda;

	if (!within(m, offset, len))
		return -ERANGE;
	if (!c) {
		memcpy(to, (const void *)(uintptr_t)(m->at + offset), len);
		return 0;
	}
	pp_cuda_enter(c);
	return started(m, t, "cuMemcpyDtoHAsync", c->call.copy_out(to, m->at + offset, len, c->out),
		       c->out);
}

int pp_copy_in(struct pp_memory *m, struct pp_copy *t, uint64_t offset, const void *from,
	       size_t len)
{
	const struct pp_cuda *c = m->cuda;

	if (!within(m, offset, len))
		return -ERANGE;
	if (!c) {
		memcpy((void *)(uintptr_t)(m->at + offset), from, len);
		return 0;
	}
	pp_cuda_enter(c);
	return started(m, t, "cuMemcpyHtoDAsync", c->call.copy_in(m->at + offset, from, len, c->in),
		       c->in);
}

int pp_copy_done(struct pp_memory *m, struct pp_copy *t)
{
	int code;

	if (!t->pending)
		return 1;
	pp_cuda_enter(m->cuda);
	code = m->cuda->call.event_query(t->event);
	if (code == PP_CUDA_NOT_READY)
		return 0;
	t->pending = false;
	return code ? note(t, "cuEventQuery", code) : 1;
}

int pp_copy_wait(struct pp_memory *m, struct pp_copy *t, struct pp_error *err)
{
	int code;

	if (!t->pending)
		return 0;
	pp_cuda_enter(m->cuda);
	code = m->cuda->call.event_wait(t->event);
	t->pending = false;
	if (!code)
		return 0;
	(void)note(t, "cuEventSynchronize", code);
	return pp_copy_failed(m, t, err);
}

int pp_copy_failed(const struct pp_memory *m, const struct pp_copy *t, struct pp_error *err)
{
	if (!m->cuda || !t->code)
		return pp_error_set(err, -ERANGE, "a copy beyond the memory's end");
	return pp_cuda_fail(m->cuda, t->call, t->code, err);
}
