/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Few bytes to a GPU in rows, of which the driver's rule is known (seen with 580: a copy of one
 * row, or without rows, goes by the engine of kernels). What CUDA would copy is added up here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "soft/copy/cuda_parts.h"

static uint8_t target[40000], source[40000];
static unsigned int plain;
static size_t width, height;

static int rows_to_device(const struct soft_cuda_rows *r, soft_cuda_stream stream)
{
	assert_ptr_equal(stream, source);
	assert_int_equal(r->from.type, SOFT_CUDA_MEMORYTYPE_HOST);
	assert_int_equal(r->to.type, SOFT_CUDA_MEMORYTYPE_DEVICE);
	width = r->width;
	height = r->height;
	for (size_t y = 0; y < height; y++)
		memcpy((uint8_t *)(uintptr_t)r->to.device + y * r->to.pitch,
		       (const uint8_t *)r->from.host + y * r->from.pitch, width);
	return 0;
}

static int to_device(uint64_t device, const void *host, size_t len, soft_cuda_stream stream)
{
	(void)stream;
	plain++;
	memcpy((void *)(uintptr_t)device, host, len);
	return 0;
}

static void test_every_length(void **state)
{
	const struct soft_cuda_driver driver = {.rows_to_device = rows_to_device,
						.to_device = to_device};
	struct soft_cuda_device d = {.cuda = &driver};

	(void)state;
	for (size_t i = 0; i < sizeof(source); i++)
		source[i] = (uint8_t)(i * 7 + i / 251 + 1);
	for (size_t len = 1; len < 32768; len += len < 4100 ? 1 : 37) {
		memset(target, 0, sizeof(target));
		plain = 0;
		width = height = 0;
		assert_int_equal(soft_cuda_few_to_device(&d, (uintptr_t)target, source, len,
							 (soft_cuda_stream)(void *)source),
				 0);
		assert_memory_equal(target, source, len);
		assert_int_equal(target[len], 0);
		/* One byte has no rows, and a line of LL128 is not cut. */
		assert_int_equal(plain, len == 1 || len == 128);
		if (plain)
			continue;
		assert_true(height > 1);
		assert_int_equal(width * height, len);
		if (len % 128 == 0)
			assert_int_equal(width % 128, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_length)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
