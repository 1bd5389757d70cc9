/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each allocation, each call of CUDA and each verb on the way from nothing to a registered, filled
 * and checked piece of memory fails once: an error in one line, nothing left behind, no descriptor
 * open; and what was to be right is right when all succeed.
 */
#include "fake_cuda.h"

#include <errno.h>
#include <fcntl.h>

#include "base/compiler.h"
#include "fail_alloc.h"
#include "mem/registration.h"

enum { BYTES = 9 << 20, MOST_CALLS = 64 };

static struct pp_verbs verbs;
static struct ibv_pd pd;
static unsigned int verb_calls, verb_fails, registered;

static struct ibv_mr *reg(void)
{
	static struct ibv_mr mr;

	if (++verb_calls == verb_fails) {
		errno = ENOMEM;
		return NULL;
	}
	registered++;
	return &mr;
}

static struct ibv_mr *reg_memory(struct ibv_pd *p, void *addr, size_t len, int access)
{
	(void)p;
	(void)addr;
	(void)len;
	(void)access;
	return reg();
}

static struct ibv_mr *reg_dmabuf(struct ibv_pd *p, uint64_t offset, size_t len, uint64_t iova,
				 int fd, int access)
{
	(void)offset;
	(void)iova;
	(void)fd;
	return reg_memory(p, /* addr= */ NULL, len, access);
}

static int dereg(struct ibv_mr *mr)
{
	(void)mr;
	registered--;
	return 0;
}

static int start(void **state)
{
	verbs = (struct pp_verbs){.library = dlopen("libc.so.6", RTLD_NOW),
				  .reg_memory = reg_memory,
				  .reg_dmabuf = reg_dmabuf,
				  .dereg_mr = dereg};
	return fake_start(state);
}

static int use(struct pp_memory *m, enum pp_registration how, struct pp_error *err)
{
	const struct pp_registration_options options = {.how = how};
	static struct pp_registered r;
	struct pp_memory_checked c;
	struct pp_bounce b = {0};
	struct pp_copy *t = NULL;
	const char *did;
	int code = pp_register(&verbs, &pd, m, &options, &r, err);

	if (code)
		return code;
	code = pp_memory_fill(m, 0, m->size, 3, err);
	if (!code)
		code = pp_memory_flush(m, &did, err);
	if (!code)
		code = pp_memory_check(m, 0, m->size, 3, 0, &c, err);
	if (!code)
		assert_int_equal(c.wrong, 0);
	if (!code)
		code = pp_bounce_new(m, 8192, &b, err);
	if (!code)
		code = pp_copy_new(m, &t, err);
	if (!code)
		code = pp_copy_out(m, t, 0, b.at, 8192);
	while (!code && (code = pp_copy_done(m, t)) == 0)
		;
	pp_copy_free(m, t);
	pp_bounce_free(m, &b);
	return pp_unregister(&r, err) ? -EIO : code > 0 ? 0 : code;
}

static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int whole(enum pp_memory_kind kind, enum pp_registration how)
{
	const struct pp_memory_options options = {
		.kind = kind, .size = BYTES, .numa = -1, .gpu = GPU0, .segments = 2};
	int before = descriptors(), r;
	struct pp_memory *m = NULL;
	struct pp_error err = {0};

	r = pp_memory_new(&options, &m, &err);
	if (!r)
		r = use(m, how, &err);
	pp_memory_free(m);
	assert_true(r <= 0);
	assert_int_equal(registered, 0);
	assert_int_equal(fake_live(), 0);
	assert_int_equal(descriptors(), before);
	return r;
}

static const struct {
	enum pp_memory_kind kind;
	enum pp_registration how;
} ways[] = {
	{PP_MEMORY_HOST, PP_REGISTERED_HOST},	    {PP_MEMORY_SIM, PP_REGISTERED_DMABUF},
	{PP_MEMORY_CUDA, PP_REGISTERED_DMABUF},	    {PP_MEMORY_CUDA, PP_REGISTERED_PEERMEM},
	{PP_MEMORY_CUDA_VMM, PP_REGISTERED_DMABUF},
};

static void test_allocations(void **state)
{
	size_t nth;
	bool failed;
	int r;

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(ways); i++) {
		for (nth = 1, failed = true; failed; nth++) {
			assert_in_range(nth, 1, MOST_CALLS);
			pp_fail_alloc_start(nth);
			r = whole(ways[i].kind, ways[i].how);
			failed = pp_fail_alloc_stop();
			assert_int_equal(r, failed ? -ENOMEM : 0);
			assert_int_equal(pp_fail_alloc_live(), 0);
		}
		assert_true(nth > 2);
	}
}

static void test_verbs(void **state)
{
	int r;

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(ways); i++) {
		for (verb_fails = 1; verb_fails < MOST_CALLS; verb_fails++) {
			verb_calls = 0;
			r = whole(ways[i].kind, ways[i].how);
			if (verb_calls < verb_fails)
				break;
			assert_int_equal(r, -ENOMEM);
		}
		assert_int_equal(r, 0);
		assert_int_equal(verb_fails, ways[i].kind == PP_MEMORY_CUDA_VMM ? 3 : 2);
	}
	verb_fails = 0;
}

/* From its n-th call on a function gives an error, until it is not called that often any more. */
static void test_cuda(void **state)
{
	static const char *const calls[] = {
		"cuDeviceGetByPCIBusId",
		"cuDevicePrimaryCtxRetain",
		"cuStreamCreate",
		"cuMemAlloc_v2",
		"cuMemGetAddressRange_v2",
		"cuMemGetAllocationGranularity",
		"cuMemAddressReserve",
		"cuMemCreate",
		"cuMemMap",
		"cuMemSetAccess",
		"cuMemHostRegister_v2",
		"cuEventCreate",
		"cuEventRecord",
		"cuEventQuery",
		"cuEventSynchronize",
		"cuMemcpyHtoDAsync_v2",
		"cuMemcpyDtoHAsync_v2",
		"cuMemGetHandleForAddressRange",
	};
	unsigned int n, reached = 0;
	char fails[96];

	(void)state;
	for (size_t i = 0; i < PP_ARRAY_LEN(ways); i++) {
		for (size_t k = 0; k < PP_ARRAY_LEN(calls); k++) {
			for (n = 1; n < MOST_CALLS; n++) {
				(void)snprintf(fails, sizeof(fails), "%s=700@%u", calls[k], n);
				fake_set("", fails, "");
				(void)fake_number("pp_fake_cuda_count_again");
				if (!whole(ways[i].kind, ways[i].how))
					break;
				reached++;
			}
			assert_in_range(n, 1, MOST_CALLS - 1);
		}
	}
	/* Each of them was reached by some way, most of them several times. */
	assert_true(reached > 2 * PP_ARRAY_LEN(calls));
	fake_set("", "", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allocations),
		cmocka_unit_test(test_verbs),
		cmocka_unit_test(test_cuda),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
