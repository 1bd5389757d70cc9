/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of each kind. The GPU's is that of tests/fake's CUDA, whose copies are made late and in
 * whose memory the test looks by itself; what the driver refuses and how is NVIDIA's documentation
 * (CUDA driver API: cuDevicePrimaryCtxRetain, cuMemCreate, cuFlushGPUDirectRDMAWrites).
 */
#include "fake_cuda.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mem/cuda.h"
#include "mem/memory.h"
#include "mem/pattern.h"

static struct pp_memory *new (struct pp_memory_options options)
{
	struct pp_memory *m = NULL;
	struct pp_error err = {0};

	if (pp_memory_new(&options, &m, &err))
		fail_msg("%s", err.text);
	return m;
}

static int refused(struct pp_memory_options options, const char *word)
{
	struct pp_memory *m = NULL;
	struct pp_error err = {0};
	int r = pp_memory_new(&options, &m, &err);

	assert_null(m);
	if (!strstr(err.text, word))
		fail_msg("'%s' does not say '%s'", err.text, word);
	assert_null(strchr(err.text, '\n'));
	assert_int_equal(fake_live(), 0);
	return r;
}

/* Bytes at the memory's address: the fake GPU's can be looked at like any other. */
static uint8_t *bytes(const struct pp_memory *m)
{
	return (uint8_t *)(uintptr_t)m->at;
}

static struct pp_memory_checked check(struct pp_memory *m, uint64_t offset, uint64_t len,
				      uint64_t seed, uint64_t from)
{
	struct pp_memory_checked c = {0};
	struct pp_error err = {0};

	if (pp_memory_check(m, offset, len, seed, from, &c, &err))
		fail_msg("%s", err.text);
	return c;
}

/* Fills, is right, one byte is changed by hand, is wrong there; a part elsewhere is right again. */
static void exercise(struct pp_memory *m)
{
	struct pp_memory_checked c;
	struct pp_error err = {0};
	uint8_t expected;

	assert_int_equal(pp_memory_fill(m, 0, m->size, 5, &err), 0);
	c = check(m, 0, m->size, 5, 0);
	assert_int_equal(c.bytes, m->size);
	assert_int_equal(c.wrong, 0);
	pp_pattern_fill(&expected, m->size - 9, 1, 5);
	assert_int_equal(bytes(m)[m->size - 9], expected);
	bytes(m)[m->size - 9] ^= 0xff;
	c = check(m, 0, m->size, 5, 0);
	assert_int_equal(c.wrong, 1);
	assert_int_equal(c.first, m->size - 9);
	assert_int_equal(c.expected, expected);
	assert_int_equal(c.found, expected ^ 0xff);
	c = check(m, 1, m->size - 10, 5, 1);
	assert_int_equal(c.wrong, 0);
	/* What belongs 64 bytes further on is not right here. */
	c = check(m, 0, 4096, 5, 64);
	assert_in_range(c.wrong, 4000, 4096);
	assert_int_equal(pp_memory_fill(m, 100, 1000, 6, &err), 0);
	assert_int_equal(check(m, 100, 1000, 6, 100).wrong, 0);
	assert_int_equal(check(m, 0, 100, 5, 0).wrong, 0);
	assert_int_equal(pp_memory_fill(m, m->size - 1, 2, 6, &err), -ERANGE);
	assert_int_equal(pp_memory_check(m, UINT64_MAX, 2, 6, 0, &c, &err), -ERANGE);
}

static void copies(struct pp_memory *m)
{
	struct pp_bounce in = {0}, out = {0};
	struct pp_copy *a = NULL, *b = NULL;
	struct pp_error err = {0};
	size_t n = 8192;
	int turns = 0;

	assert_int_equal(pp_bounce_new(m, n, &in, &err), 0);
	assert_int_equal(pp_bounce_new(m, n, &out, &err), 0);
	assert_int_equal((uintptr_t)in.at % 4096, 0);
	assert_int_equal(pp_copy_new(m, &a, &err), 0);
	assert_int_equal(pp_copy_new(m, &b, &err), 0);
	assert_int_equal(pp_copy_done(m, a), 1);
	pp_pattern_fill(in.at, 512, n, 9);
	assert_int_equal(pp_copy_in(m, a, 512, in.at, n), 0);
	while (!pp_copy_done(m, a))
		assert_in_range(++turns, 1, 16);
	assert_int_equal(check(m, 512, n, 9, 512).wrong, 0);
	assert_int_equal(pp_copy_out(m, b, 512, out.at, n), 0);
	while (!pp_copy_done(m, b))
		assert_in_range(++turns, 1, 16);
	assert_memory_equal(in.at, out.at, n);
	assert_int_equal(pp_copy_out(m, b, m->size - n + 1, out.at, n), -ERANGE);
	assert_int_equal(pp_copy_in(m, b, UINT64_MAX, out.at, n), -ERANGE);
	/* A GPU's copy is not made when the call returns. */
	assert_int_equal(turns != 0, m->cuda != NULL);
	a = pp_copy_free(m, a);
	b = pp_copy_free(m, b);
	pp_bounce_free(m, &in);
	pp_bounce_free(m, &out);
	assert_null(in.at);
}

static void test_host(void **state)
{
	struct pp_memory *m = new (
		(struct pp_memory_options){.kind = PP_MEMORY_HOST, .size = 300001, .numa = -1});

	(void)state;
	assert_false(m->simulated);
	assert_int_equal(m->fd, -1);
	assert_int_equal(m->bar1_total, -1);
	assert_int_equal(m->n_segments, 1);
	assert_int_equal(m->segment[0].base, m->at);
	assert_int_equal(m->segment[0].size, 74 * 4096);
	assert_int_equal(m->segment[0].length, 300001);
	exercise(m);
	copies(m);
	m = pp_memory_free(m);
	assert_null(m);
}

/* Where pages lie is the kernel's word: this machine has node 0, and no node 1000. */
static void test_numa(void **state)
{
	struct pp_memory *m;

	(void)state;
	if (access("/sys/devices/system/node/node0", F_OK))
		skip();
	m = new ((struct pp_memory_options){.kind = PP_MEMORY_HOST, .size = 1 << 20, .numa = 0});
	if (!strstr(m->note, "mbind"))
		assert_non_null(strstr(m->note, "NUMA node 0"));
	pp_memory_free(m);
	assert_int_equal(refused((struct pp_memory_options){.kind = PP_MEMORY_HOST,
							    .size = 4096,
							    .numa = 1000},
				 "no NUMA node 1000"),
			 -EINVAL);
}

/* No machine has so many huge pages reserved. */
static void test_huge(void **state)
{
	struct pp_memory_options options = {
		.kind = PP_MEMORY_HOST, .size = (size_t)1 << 45, .huge = true, .numa = -1};

	(void)state;
	assert_int_equal(refused(options, "vm.nr_hugepages"), -ENOMEM);
}

static void test_sizes(void **state)
{
	struct pp_memory_options options = {.kind = PP_MEMORY_HOST, .numa = -1};

	(void)state;
	assert_int_equal(refused(options, "no size"), -EINVAL);
	options.size = SIZE_MAX;
	assert_int_equal(refused(options, "no size"), -EINVAL);
	options.size = SIZE_MAX / 2;
	options.inside = SIZE_MAX / 2;
	assert_int_equal(refused(options, "no size"), -EINVAL);
	options = (struct pp_memory_options){
		.kind = PP_MEMORY_CUDA_VMM, .gpu = GPU0, .size = 1 << 20, .segments = 17};
	assert_int_equal(refused(options, "at most 16"), -EINVAL);
}

/* What the descriptor shows to another mapping is the memory. */
static void test_sim(void **state)
{
	struct pp_memory *m = new ((struct pp_memory_options){
		.kind = PP_MEMORY_SIM, .size = 1 << 20, .inside = 12288});
	uint8_t *again;

	(void)state;
	assert_true(m->simulated);
	exercise(m);
	copies(m);
	again = mmap(NULL, (1 << 20) + 12288, PROT_READ, MAP_SHARED, m->fd, 0);
	assert_ptr_not_equal(again, MAP_FAILED);
	assert_memory_equal(again + 12288, bytes(m), 1 << 20);
	assert_int_equal(m->segment[0].base + 12288, m->at);
	(void)munmap(again, (1 << 20) + 12288);
	pp_memory_free(m);
}

static void test_cuda(void **state)
{
	struct pp_memory *m = new ((struct pp_memory_options){
		.kind = PP_MEMORY_CUDA, .gpu = "0000:3B:00.0", .size = 9 << 20, .inside = 70000});

	(void)state;
	assert_false(m->simulated);
	assert_string_equal(m->cuda->name, GPU0);
	assert_int_equal(m->bar1_total, (int64_t)262144 << 20);
	assert_int_equal(m->bar1_free, (int64_t)262143 << 20);
	assert_int_equal(m->gdr_capable, 1);
	assert_int_equal(m->n_segments, 1);
	/* Whole pages of a GPU, 64 KiB each: 9507184 bytes in 146. */
	assert_int_equal(m->segment[0].size, 146 * 65536);
	assert_int_equal(m->segment[0].base + 70000, m->at);
	assert_int_equal(m->segment[0].start, 0);
	assert_int_equal(m->segment[0].length, 9 << 20);
	exercise(m);
	copies(m);
	pp_memory_free(m);
	assert_int_equal(fake_live(), 0);
}

/* 2 MiB a page there: segments of 4, 4 and 2 MiB, the memory begins in the first's last page. */
static void test_vmm(void **state)
{
	struct pp_memory *m = new ((struct pp_memory_options){.kind = PP_MEMORY_CUDA_VMM,
							      .gpu = GPU0,
							      .size = 7 << 20,
							      .segments = 3,
							      .inside = 3 << 20});

	(void)state;
	assert_int_equal(m->n_segments, 3);
	assert_int_equal(m->segment[0].size, 4 << 20);
	assert_int_equal(m->segment[0].base + (3 << 20), m->at);
	assert_int_equal(m->segment[0].start, 0);
	assert_int_equal(m->segment[0].length, 1 << 20);
	assert_int_equal(m->segment[1].base, m->segment[0].base + (4 << 20));
	assert_int_equal(m->segment[1].start, 1 << 20);
	assert_int_equal(m->segment[1].length, 4 << 20);
	assert_int_equal(m->segment[2].size, 2 << 20);
	assert_int_equal(m->segment[2].start, 5 << 20);
	assert_int_equal(m->segment[2].length, 2 << 20);
	exercise(m);
	copies(m);
	pp_memory_free(m);
	assert_int_equal(fake_live(), 0);
	assert_int_equal(refused((struct pp_memory_options){.kind = PP_MEMORY_CUDA_VMM,
							    .gpu = GPU0,
							    .size = 4 << 20,
							    .segments = 3},
				 "3 segments"),
			 -EINVAL);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *cuda, *fails, *gpu, *word;
		enum pp_memory_kind kind;
		int error;
	} rows[] = {
		{"exclusive", "", GPU0, "EXCLUSIVE_PROCESS", PP_MEMORY_CUDA, EBUSY},
		{"prohibited", "", GPU0, "PROHIBITED", PP_MEMORY_CUDA, EBUSY},
		{"", "", "0000:77:00.0", "no such GPU", PP_MEMORY_CUDA, ENODEV},
		{"", "", "mlx5_0", "not a PCI address", PP_MEMORY_CUDA, EINVAL},
		{"", "", NULL, "not a PCI address", PP_MEMORY_CUDA, EINVAL},
		{"", "cuDevicePrimaryCtxRetain=2", GPU0, "no memory left", PP_MEMORY_CUDA, ENOMEM},
		{"", "cuMemAlloc_v2=2", GPU0, "of 143771 MiB has no 1 MiB left", PP_MEMORY_CUDA,
		 ENOMEM},
		{"", "cuMemAlloc_v2=700", GPU0, "CUDA_ERROR_ILLEGAL_ADDRESS (700)", PP_MEMORY_CUDA,
		 EIO},
		{"", "cuMemGetAddressRange_v2=1", GPU0, "cuMemGetAddressRange", PP_MEMORY_CUDA,
		 EINVAL},
		{"", "cuMemHostRegister_v2=2", GPU0, "cuMemHostRegister", PP_MEMORY_CUDA, ENOMEM},
		{"", "cuEventCreate=2", GPU0, "cuEventCreate", PP_MEMORY_CUDA, ENOMEM},
		{"", "cuStreamCreate=2@2", GPU0, "cuStreamCreate", PP_MEMORY_CUDA, ENOMEM},
		{"", "cuMemCreate=801", GPU0, "cuMemCreate", PP_MEMORY_CUDA_VMM, EOPNOTSUPP},
		{"", "cuMemAddressReserve=2", GPU0, "cuMemAddressReserve", PP_MEMORY_CUDA_VMM,
		 ENOMEM},
		{"", "cuMemMap=1", GPU0, "cuMemMap", PP_MEMORY_CUDA_VMM, EINVAL},
		{"", "cuMemSetAccess=1", GPU0, "cuMemSetAccess", PP_MEMORY_CUDA_VMM, EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake_set(rows[i].cuda, rows[i].fails, "");
		assert_int_equal(refused((struct pp_memory_options){.kind = rows[i].kind,
								    .gpu = rows[i].gpu,
								    .size = 1 << 20},
					 rows[i].word),
				 -rows[i].error);
	}
	fake_set("", "", "");
	assert_int_equal(setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
	assert_int_equal(refused((struct pp_memory_options){.kind = PP_MEMORY_CUDA,
							    .gpu = GPU0,
							    .size = 1 << 20},
				 "CUDA_VISIBLE_DEVICES"),
			 -ENODEV);
	(void)unsetenv("CUDA_VISIBLE_DEVICES");
}

/* An error of a copy is told by the call that made or waited for it, and ends. */
static void test_copy_errors(void **state)
{
	static const char *const fails[] = {"cuMemcpyHtoDAsync_v2=700", "cuEventRecord=700",
					    "cuEventSynchronize=700"};
	struct pp_memory_options options = {.kind = PP_MEMORY_CUDA, .gpu = GPU0, .size = 20 << 20};
	struct pp_memory_checked c;
	struct pp_memory *m = new (options);
	struct pp_error err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(fails) / sizeof(fails[0]); i++) {
		fake_set("", fails[i], "");
		assert_int_equal(pp_memory_fill(m, 0, m->size, 1, &err), -EIO);
		assert_non_null(strstr(err.text, "ILLEGAL_ADDRESS"));
	}
	fake_set("", "cuMemcpyDtoHAsync_v2=700", "");
	assert_int_equal(pp_memory_check(m, 0, m->size, 1, 0, &c, &err), -EIO);
	fake_set("", "", "");
	exercise(m);
	pp_memory_free(m);
	assert_int_equal(fake_live(), 0);
}

/* CUDA: nothing up to the ordering that the device keeps by itself, the call below it. */
static void test_flush(void **state)
{
	struct pp_memory_options options = {.kind = PP_MEMORY_CUDA, .gpu = GPU0, .size = 1 << 20};
	struct pp_memory *m = new (options);
	int before = fake_number("pp_fake_cuda_flushes");
	struct pp_error err = {0};
	const char *did = NULL;

	(void)state;
	assert_int_equal(pp_memory_flush(m, &did, &err), 0);
	assert_string_equal(did, "not needed (ordering owner)");
	pp_memory_free(m);
	assert_int_equal(fake_number("pp_fake_cuda_flushes"), before);
	fake_set("unordered", "", "");
	m = new (options);
	assert_int_equal(pp_memory_flush(m, &did, &err), 0);
	assert_string_equal(did, "cuFlushGPUDirectRDMAWrites");
	assert_int_equal(fake_number("pp_fake_cuda_flushes"), before + 1);
	fake_set("unordered", "cuFlushGPUDirectRDMAWrites=700", "");
	assert_int_equal(pp_memory_flush(m, &did, &err), -EIO);
	pp_memory_free(m);
	fake_set("old", "", "");
	m = new (options);
	assert_int_equal(pp_memory_flush(m, &did, &err), 0);
	assert_non_null(strstr(did, "not possible"));
	pp_memory_free(m);
	fake_set("", "", "");
	m = new ((struct pp_memory_options){.kind = PP_MEMORY_SIM, .size = 4096});
	assert_int_equal(pp_memory_flush(m, &did, &err), 0);
	assert_non_null(strstr(did, "not needed"));
	pp_memory_free(m);
}

/* NVML that says nothing leaves BAR1 unknown; that is no error. */
static void test_no_nvml(void **state)
{
	struct pp_memory *m;

	(void)state;
	fake_set("", "", "unloaded");
	m = new ((struct pp_memory_options){.kind = PP_MEMORY_CUDA, .gpu = GPU0, .size = 4096});
	assert_int_equal(m->bar1_total, -1);
	assert_int_equal(m->bar1_free, -1);
	pp_memory_free(m);
	fake_set("", "", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_host),	    cmocka_unit_test(test_numa),
		cmocka_unit_test(test_huge),	    cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_sim),	    cmocka_unit_test(test_cuda),
		cmocka_unit_test(test_vmm),	    cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_copy_errors), cmocka_unit_test(test_flush),
		cmocka_unit_test(test_no_nvml),
	};

	return cmocka_run_group_tests(tests, fake_start, NULL);
}
