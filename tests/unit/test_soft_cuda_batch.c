/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which copies may be begun together, and what CUDA hears of them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "soft/copy/cuda_parts.h"

enum { KIB = 1024, MIB = 1024 * KIB, REFUSED = 1 };

static unsigned int singles, calls, records;
static size_t together;
static uint64_t first_to, last_from;
static int answer, recorded;

static int to_device(uint64_t device, const void *host, size_t len, soft_cuda_stream stream)
{
	(void)device;
	(void)host;
	(void)len;
	(void)stream;
	return singles++ == 1 ? SOFT_CUDA_OUT_OF_MEMORY : 0;
}

static int to_host(void *host, uint64_t device, size_t len, soft_cuda_stream stream)
{
	return to_device(device, host, len, stream);
}

static int event_record(soft_cuda_event event, soft_cuda_stream stream)
{
	(void)event;
	(void)stream;
	records++;
	return recorded;
}

static int copy_together(uint64_t *to, uint64_t *from, size_t *lens, size_t num,
			 struct soft_cuda_together *how, size_t *first_of_how, size_t num_how,
			 size_t *ret_fault, soft_cuda_stream stream)
{
	(void)ret_fault;
	(void)stream;
	calls++;
	together = num;
	first_to = to[0];
	last_from = from[num - 1];
	assert_int_equal(num_how, 1);
	assert_int_equal(first_of_how[0], 0);
	/* cuda.h: CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE */
	assert_int_equal(how->order, 1);
	assert_int_equal(how->flags, 1);
	assert_int_equal(sizeof(*how), 24);
	for (size_t i = 0; i < num; i++)
		assert_int_equal(lens[i], 64 * KIB);
	return answer;
}

static const struct soft_cuda_driver driver = {
	.to_device = to_device, .to_host = to_host, .event_record = event_record};
static struct soft_cuda_device d;

static int setup(void **state)
{
	(void)state;
	memset(&d, 0, sizeof(d));
	d.cuda = &driver;
	d.together = copy_together;
	singles = calls = records = 0;
	answer = recorded = 0;
	return 0;
}

static struct soft_copy direct(uint32_t chain, size_t len)
{
	return (struct soft_copy){
		.at = 0x1000, .from = 0x2000, .len = len, .to_device = true, .chain = chain};
}

static struct soft_copy staged(uint32_t chain, size_t len)
{
	struct soft_copy copy = direct(chain, len);

	copy.from = 0;
	copy.host = &d;
	return copy;
}

static bool joins(struct soft_copy first, struct soft_copy copy)
{
	return soft_cuda_joins(&d, &first, &copy);
}

static void test_who_joins(void **state)
{
	struct soft_copy unpin = staged(0, 64 * KIB), kernel = direct(2, MIB), out = staged(2, MIB);

	(void)state;
	unpin.what = SOFT_COPY_UNPIN;
	kernel.by_kernel = true;
	out.to_device = false;
	assert_true(joins(direct(1, MIB), direct(2, MIB)));
	assert_false(
		joins(direct(1, MIB), direct(1, MIB))); /* writes of a queue pair have an order */
	assert_true(joins(staged(0, 64 * KIB), staged(0, 64 * KIB))); /* those of none have none */
	assert_false(joins(direct(1, MIB), staged(2, 64 * KIB)));
	assert_false(joins(staged(1, 64 * KIB), out));
	assert_false(joins(unpin, staged(1, 64 * KIB)));
	assert_false(joins(staged(1, 64 * KIB), unpin));
	/* Without a kernel that copies it is copied like any. */
	assert_true(joins(direct(1, MIB), kernel));
	d.kernel = (struct soft_cuda_function *)&d;
	assert_false(joins(direct(1, MIB), kernel));
	/* Few bytes that a copy engine is to have come in rows, each by a call. */
	assert_false(joins(staged(1, 64 * KIB), staged(2, 4 * KIB)));
	assert_true(joins(staged(1, 4 * KIB), staged(2, 4 * KIB)));
	d.mps = true;
	assert_true(joins(staged(1, 64 * KIB), staged(2, 4 * KIB)));
}

static unsigned int fill(struct soft_copy (*make)(uint32_t, size_t), size_t len)
{
	static struct soft_copy copies[SOFT_CUDA_BATCH + 1];
	unsigned int num = 1;

	copies[0] = make(1, len);
	for (; num <= SOFT_CUDA_BATCH; num++) {
		copies[num] = make(num + 1, len);
		if (!soft_cuda_joins(&d, copies, &copies[num]))
			break;
		copies[num - 1].next = &copies[num];
	}
	return num;
}

static void test_how_many(void **state)
{
	(void)state;
	assert_int_equal(fill(direct, 8 * KIB), SOFT_CUDA_BATCH);
	assert_int_equal(fill(direct, MIB), 4);
	assert_int_equal(fill(direct, 8 * MIB), 1);
	assert_int_equal(fill(staged, 64 * KIB), 8);
	assert_int_equal(fill(staged, MIB), 1);
}

static void begin_three(struct soft_copy three[3])
{
	struct soft_cuda_batch batch = {.copies = {.first = three, .last = &three[2]}};

	for (unsigned int i = 0; i < 3; i++) {
		three[i] = staged(0, 64 * KIB);
		three[i].at = 0x1000 * (i + 1);
		three[i].rc = -EINPROGRESS;
		three[i].to_device = false;
		three[i].next = i < 2 ? &three[i + 1] : NULL;
	}
	soft_cuda_batch_begin(&d, &batch);
	assert_int_equal(records, 1);
	assert_int_equal(batch.told, !recorded);
}

static void test_one_call(void **state)
{
	struct soft_copy three[3];

	(void)state;
	begin_three(three);
	assert_int_equal(calls, 1);
	assert_int_equal(singles, 0);
	assert_int_equal(together, 3);
	assert_int_equal(first_to, (uintptr_t)&d);
	assert_int_equal(last_from, 0x3000);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(three[i].rc, 0);
}

/* A call that is refused is not tried again; each copy has its own result. */
static void test_one_by_one(void **state)
{
	struct soft_copy three[3];

	(void)state;
	answer = REFUSED;
	begin_three(three);
	assert_int_equal(calls, 1);
	assert_int_equal(singles, 3);
	assert_null(d.together);
	assert_int_equal(three[0].rc, 0);
	assert_int_equal(three[1].rc, -ENOMEM);
	assert_int_equal(three[2].rc, 0);
}

/* Nothing would tell of them. */
static void test_no_event(void **state)
{
	struct soft_copy three[3];

	(void)state;
	recorded = SOFT_CUDA_NOT_SUPPORTED;
	begin_three(three);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(three[i].rc, -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_who_joins, setup),
		cmocka_unit_test_setup(test_how_many, setup),
		cmocka_unit_test_setup(test_one_call, setup),
		cmocka_unit_test_setup(test_one_by_one, setup),
		cmocka_unit_test_setup(test_no_event, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
