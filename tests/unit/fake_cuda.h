/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads tests/fake's libcuda and libnvidia-ml into a test: dlopen() by name then finds them by
 * their soname. What they are to do is in the environment: their sources say.
 */
#ifndef PP_TESTS_FAKE_CUDA_H
#define PP_TESTS_FAKE_CUDA_H

#include "unit.h"

#include <dlfcn.h>

static const char GPU0[] = "0000:3b:00.0";

static inline void *fake_load(const char *file)
{
	char path[1024];
	void *lib;

	assert_non_null(getenv("PP_FAKE_DIR"));
	(void)snprintf(path, sizeof(path), "%s/%s", getenv("PP_FAKE_DIR"), file);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		fail_msg("%s", dlerror());
	return lib;
}

static inline int fake_number(const char *function)
{
	static void *lib;
	int (*fn)(void);

	if (!lib)
		lib = fake_load("cuda/libcuda.so.1");
	*(void **)&fn = dlsym(lib, function);
	assert_non_null(fn);
	return fn();
}

/* What the fake driver has made and not undone. */
static inline int fake_live(void)
{
	return fake_number("pp_fake_cuda_live");
}

static inline void fake_set(const char *cuda, const char *fails, const char *nvml)
{
	assert_int_equal(setenv("PP_FAKE_CUDA", cuda, 1), 0);
	assert_int_equal(setenv("PP_FAKE_CUDA_FAIL", fails, 1), 0);
	assert_int_equal(setenv("PP_FAKE_NVML", nvml, 1), 0);
}

/* A group's setup. */
static inline int fake_start(void **state)
{
	(void)state;
	(void)unsetenv("CUDA_VISIBLE_DEVICES");
	(void)fake_load("cuda/libcuda.so.1");
	(void)fake_load("nvml/libnvidia-ml.so.1");
	return 0;
}

#endif
