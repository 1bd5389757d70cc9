/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies that are begun together, and one event behind them. Whatever its size, a copy costs its
 * engine about 3 us (H200): 1 MiB from a peer's memory takes 6.1 us alone, 2.9 in one call with 15
 * others.
 */
#include "soft/copy/cuda_parts.h"

#include "base/banned.h"

enum { FEW = 32 << 10 }; /* bytes that the driver does not leave to a copy engine */

enum kind { BY_KERNEL, DIRECT, FEW_BYTES, TO_DEVICE, TO_HOST };

static enum kind kind_of(const struct soft_cuda_device *d, const struct soft_copy *copy)
{
	if (copy->by_kernel && d->kernel)
		return BY_KERNEL;
	if (copy->from)
		return DIRECT;
	if (!copy->to_device)
		return TO_HOST;
	return copy->len < FEW && !d->mps ? FEW_BYTES : TO_DEVICE;
}

static uint64_t other_place(const struct soft_copy *copy)
{
	return copy->from ? copy->from : (uintptr_t)copy->host;
}

static uint64_t target(const struct soft_copy *copy)
{
	return copy->to_device ? copy->at : other_place(copy);
}

static uint64_t source(const struct soft_copy *copy)
{
	return copy->to_device ? other_place(copy) : copy->at;
}

static int by_kernel(struct soft_cuda_device *d, const struct soft_copy *copy, soft_cuda_stream s)
{
	return soft_cuda_kernel_copy(d, target(copy), source(copy), copy->len, s);
}

static int direct(struct soft_cuda_device *d, const struct soft_copy *copy, soft_cuda_stream s)
{
	(void)d;
	return soft_cuda_peers()->copy(copy->at, copy->from, copy->len, s);
}

static int few_bytes(struct soft_cuda_device *d, const struct soft_copy *copy, soft_cuda_stream s)
{
	return soft_cuda_few_to_device(d, copy->at, copy->host, copy->len, s);
}

static int to_device(struct soft_cuda_device *d, const struct soft_copy *copy, soft_cuda_stream s)
{
	return d->cuda->to_device(copy->at, copy->host, copy->len, s);
}

static int to_host(struct soft_cuda_device *d, const struct soft_copy *copy, soft_cuda_stream s)
{
	return d->cuda->to_host(copy->host, copy->at, copy->len, s);
}

/* A batch is over when all of it is: so it is no more than takes about 10 us. */
static const struct {
	const char *name;
	int (*one)(struct soft_cuda_device *d, const struct soft_copy *copy, soft_cuda_stream s);
	size_t bytes;
	bool together; /* by one call, where there is one */
} kinds[] = {
	[BY_KERNEL] = {"cuLaunchKernel", by_kernel, 4 << 20, false},
	[DIRECT] = {"cuMemcpyDtoDAsync", direct, 4 << 20, true},
	[FEW_BYTES] = {"cuMemcpy2DAsync", few_bytes, 512 << 10, false},
	[TO_DEVICE] = {"cuMemcpyHtoDAsync", to_device, 512 << 10, true},
	[TO_HOST] = {"cuMemcpyDtoHAsync", to_host, 512 << 10, true},
};

bool soft_cuda_joins(const struct soft_cuda_device *d, const struct soft_copy *first,
		     const struct soft_copy *copy)
{
	enum kind kind = kind_of(d, copy);
	size_t bytes = copy->len;
	unsigned int num = 1;

	if (first->what != SOFT_COPY || copy->what != SOFT_COPY || kind_of(d, first) != kind)
		return false;
	for (const struct soft_copy *c = first; c; c = c->next) {
		/* Within a call there is no order, and what a queue pair writes has one. */
		if (c->chain && c->chain == copy->chain)
			return false;
		bytes += c->len;
		num++;
	}
	return num <= SOFT_CUDA_BATCH && bytes <= kinds[kind].bytes;
}

/* false: one by one, from now on. */
static bool all_at_once(struct soft_cuda_device *d, const struct soft_copy *first,
			soft_cuda_stream stream)
{
	uint64_t to[SOFT_CUDA_BATCH], from[SOFT_CUDA_BATCH];
	size_t lens[SOFT_CUDA_BATCH], num = 0, first_of_how = 0, fault = 0;
	struct soft_cuda_together how = {.order = SOFT_CUDA_SOURCE_IN_STREAM_ORDER,
					 .flags = SOFT_CUDA_BESIDE_KERNELS};

	for (const struct soft_copy *c = first; c; c = c->next, num++) {
		to[num] = target(c);
		from[num] = source(c);
		lens[num] = c->len;
	}
	/* Memory that this call does not take others may. */
	if (SOFT_CUDA_CALL_BY(
		    d, "cuMemcpyBatchAsync",
		    d->together(to, from, lens, num, &how, &first_of_how, 1, &fault, stream)))
		d->together = NULL;
	return d->together;
}

void soft_cuda_batch_begin(struct soft_cuda_device *d, struct soft_cuda_batch *batch)
{
	struct soft_copy *first = batch->copies.first;
	soft_cuda_stream stream = d->streams[first->to_device];
	enum kind kind = kind_of(d, first);
	bool begun =
		first->next && kinds[kind].together && d->together && all_at_once(d, first, stream);
	int r = 0;

	for (struct soft_copy *c = first; c; c = c->next) {
		if (!begun)
			r = SOFT_CUDA_CALL_BY(d, kinds[kind].name, kinds[kind].one(d, c, stream));
		c->rc = soft_cuda_errno(r);
	}
	r = SOFT_CUDA_CALL(d, "cuEventRecord", event_record(batch->event, stream));
	batch->told = !r;
	for (struct soft_copy *c = first; c && r; c = c->next)
		c->rc = soft_cuda_errno(r);
}
