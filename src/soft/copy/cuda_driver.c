/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/copy/cuda_driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/banned.h"

static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;
static struct soft_cuda_driver driver;
static struct soft_cuda_peers peers;
static bool all_peers; /* peers is filled */
static soft_cuda_copy_together *together;
static _Atomic int found; /* 1: driver is filled; -1: there is one that lacks something */

static bool fill(void *library)
{
	bool all = true;
	void *at;

#define FILL_OF(of, member, symbol)                     \
	at = dlsym(library, symbol);                    \
	memcpy(&(of).member, &at, sizeof((of).member)); \
	all = all && at;
#define FILL(member, symbol, arguments) FILL_OF(peers, member, symbol)
	SOFT_CUDA_PEER_CALLS(FILL)
#undef FILL
	all_peers = all;
	all = true;
	at = dlsym(library, "cuMemcpyBatchAsync");
	memcpy(&together, &at, sizeof(together));
#define FILL(member, symbol, arguments) FILL_OF(driver, member, symbol)
	SOFT_CUDA_CALLS(FILL)
#undef FILL
#undef FILL_OF
	return all;
}

const struct soft_cuda_driver *soft_cuda_driver(void)
{
	int known = atomic_load_explicit(&found, memory_order_acquire);
	void *library;

	if (known)
		return known > 0 ? &driver : NULL;
	library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (!library)
		return NULL;
	pthread_mutex_lock(&looking);
	/* Kept open: it is in use from now on. */
	if (!atomic_load(&found))
		atomic_store_explicit(&found, fill(library) ? 1 : -1, memory_order_release);
	pthread_mutex_unlock(&looking);
	return atomic_load(&found) > 0 ? &driver : NULL;
}

const struct soft_cuda_peers *soft_cuda_peers(void)
{
	return soft_cuda_driver() && all_peers ? &peers : NULL;
}

soft_cuda_copy_together *soft_cuda_together(void)
{
	return soft_cuda_driver() ? together : NULL;
}

int soft_cuda_errno(int result)
{
	switch (result) {
	case SOFT_CUDA_SUCCESS:
		return 0;
	case SOFT_CUDA_OUT_OF_MEMORY:
		return -ENOMEM;
	case SOFT_CUDA_NOT_SUPPORTED:
		return -EOPNOTSUPP;
	default:
		return -EIO;
	}
}
