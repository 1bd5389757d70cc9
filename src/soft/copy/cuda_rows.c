/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fewer than 32 KiB to memory of cuMemCreate() the driver writes by the engine that runs kernels,
 * and without MPS two contexts of one GPU have that in turns, of 2.4 ms (seen with driver 580): a
 * message would wait until NCCL's kernel, which waits for it, has had its turn. What comes in rows
 * is left to a copy engine, whatever its size.
 */
#include "soft/copy/cuda_parts.h"

#include "base/banned.h"

/* What LL128 of NCCL wants to arrive whole. */
enum { LINE = 128 };

/* The bytes of a row, at least two of which are @len, lines whole where they are; 0: there are no
 * such rows. */
static size_t width_of(size_t len)
{
	size_t rows = 2;

	if (len % LINE == 0)
		return len == LINE ? 0 : len % (2 * LINE) ? LINE : len / 2;
	while (rows * rows <= len && len % rows)
		rows++;
	return len % rows ? 1 : len / rows;
}

int soft_cuda_few_to_device(struct soft_cuda_device *d, uint64_t at, const void *host, size_t len,
			    soft_cuda_stream stream)
{
	size_t width = width_of(len);
	const struct soft_cuda_rows rows = {
		.from = {.type = SOFT_CUDA_MEMORYTYPE_HOST, .host = host, .pitch = width},
		.to = {.type = SOFT_CUDA_MEMORYTYPE_DEVICE, .device = at, .pitch = width},
		.width = width,
		.height = width ? len / width : 0,
	};

	return rows.height > 1 ? d->cuda->rows_to_device(&rows, stream)
			       : d->cuda->to_device(at, host, len, stream);
}
