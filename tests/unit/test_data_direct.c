/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data-direct, against tests/fake's libmlx5 of rdma-core 54: mlx5dv_reg_dmabuf_mr(3) and
 * mlx5dv_get_data_direct_sysfs_path(3) (ENODEV: the device has none). The kernel's driver takes
 * whole pages only.
 */
#include "fake_cuda.h"

#include <errno.h>

#include "mem/registration.h"

struct given {
	uint64_t offset, length, iova;
	int64_t fd_bytes;
	int access, mlx5_access;
};

static const struct given *(*last)(void);
static struct pp_verbs verbs;
static struct ibv_pd pd;
static struct ibv_mr plain = {.lkey = 1, .rkey = 2};

static struct ibv_mr *reg_dmabuf(struct ibv_pd *p, uint64_t offset, size_t len, uint64_t iova,
				 int fd, int access)
{
	(void)p;
	(void)offset;
	(void)len;
	(void)iova;
	(void)fd;
	(void)access;
	return &plain;
}

static int dereg(struct ibv_mr *mr)
{
	(void)mr;
	return 0;
}

static int start(void **state)
{
	void *lib = fake_load("mlx5/libmlx5.so.1");

	*(void **)&last = dlsym(lib, "pp_fake_mlx5_last");
	assert_non_null(last);
	verbs = (struct pp_verbs){.library = dlopen("libc.so.6", RTLD_NOW),
				  .reg_dmabuf = reg_dmabuf,
				  .dereg_mr = dereg};
	return fake_start(state);
}

static struct pp_memory *memory(enum pp_memory_kind kind, size_t inside)
{
	const struct pp_memory_options options = {
		.kind = kind, .gpu = GPU0, .size = 100000, .inside = inside, .numa = -1};
	struct pp_memory *m = NULL;
	struct pp_error err;

	if (pp_memory_new(&options, &m, &err))
		fail_msg("%s", err.text);
	return m;
}

static struct pp_registered reg;

static int by(const char *word, bool automatic, struct pp_memory *m, struct pp_error *err)
{
	const struct pp_registration_options options = {
		.automatic = automatic, .how = PP_REGISTERED_DATA_DIRECT, .access = 7};

	assert_int_equal(setenv("PP_FAKE_MLX5", word, 1), 0);
	return pp_register(&verbs, &pd, m, &options, &reg, err);
}

/* The first that auto tries; pages around the part, the key at the part's own address. */
static void test_first(void **state)
{
	struct pp_memory *m = memory(PP_MEMORY_CUDA, 5000);
	struct pp_error err = {0};

	(void)state;
	assert_int_equal(by("direct", true, m, &err), 0);
	assert_int_equal(reg.how, PP_REGISTERED_DATA_DIRECT);
	assert_int_equal(last()->mlx5_access, 1);
	assert_int_equal(last()->access, 7);
	assert_int_equal(last()->offset, 4096);
	assert_int_equal(last()->iova, m->at - 904);
	assert_int_equal(last()->iova % 4096, 0);
	/* 904 bytes before, 100000 of it, 1496 behind: 25 pages. */
	assert_int_equal(last()->length, 102400);
	assert_int_equal(last()->fd_bytes, m->segment[0].size);
	assert_int_equal(reg.key[0].address, m->at);
	assert_int_equal(reg.key[0].length, 100000);
	assert_int_equal(reg.key[0].rkey, 8);
	assert_string_equal(reg.attempt[1].call, "mlx5dv_get_data_direct_sysfs_path");
	pp_memory_free(m);
}

/* A device without it is the usual one: no failure, but an attempt that is kept. */
static void test_not_there(void **state)
{
	struct pp_memory *m = memory(PP_MEMORY_CUDA, 0);
	struct pp_error err = {0};

	(void)state;
	assert_int_equal(by("plain", true, m, &err), 0);
	assert_int_equal(reg.how, PP_REGISTERED_DMABUF);
	assert_int_equal(reg.key[0].rkey, 2);
	assert_string_equal(reg.attempt[1].call, "mlx5dv_get_data_direct_sysfs_path");
	assert_int_equal(reg.attempt[1].error, ENODEV);
	assert_int_equal(reg.attempt[1].how, PP_REGISTERED_DATA_DIRECT);
	/* Refused in earnest: auto goes on, who asked for it alone is told. */
	assert_int_equal(by("reg-95", true, m, &err), 0);
	assert_int_equal(reg.how, PP_REGISTERED_DMABUF);
	assert_int_equal(by("reg-95", false, m, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "mlx5dv_reg_dmabuf_mr of 128 KiB: EOPNOTSUPP (95)"));
	assert_int_equal(by("plain", false, m, &err), 0);
	pp_memory_free(m);
	m = memory(PP_MEMORY_SIM, 0);
	assert_int_equal(by("direct", false, m, &err), -EINVAL);
	pp_memory_free(m);
	assert_int_equal(fake_live(), 0);
}

/* Only where it is shown: the path is asked for first, and its refusal decides. */
static void test_only_where_shown(void **state)
{
	const struct pp_registration_options options = {.how = PP_REGISTERED_DATA_DIRECT,
							.data_direct_only_where_shown = true};
	struct pp_memory *m = memory(PP_MEMORY_CUDA, 0);
	struct pp_error err = {0};

	(void)state;
	assert_int_equal(setenv("PP_FAKE_MLX5", "plain", 1), 0);
	assert_int_equal(pp_register(&verbs, &pd, m, &options, &reg, &err), -ENODEV);
	assert_non_null(strstr(err.text, "has no data-direct function"));
	pp_memory_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first),
		cmocka_unit_test(test_not_there),
		cmocka_unit_test(test_only_where_shown),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
