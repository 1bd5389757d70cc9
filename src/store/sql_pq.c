/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sql_pq.h"

#include <dlfcn.h>
#include <errno.h>

#include "base/banned.h"

int pp_pq_load(struct pq *ret, struct pp_error *err)
{
	void *lib = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
	struct pq pq;

	if (!lib)
		return pp_error_set(err, -ENOENT,
				    "a PostgreSQL database needs libpq.so.5, which this machine "
				    "lacks (Debian: libpq5)");
/* A function's address out of dlsym()'s pointer to an object: POSIX has it so. */
#define X(name, type, takes)                      \
	*(void **)(&pq.name) = dlsym(lib, #name); \
	if (!pq.name)                             \
		return pp_error_set(err, -ELIBACC, "libpq.so.5 has no " #name ": too old");
	PQ_CALLS(X)
#undef X
#define X(name, type, takes) *(void **)(&pq.name) = dlsym(lib, #name);
	PQ_PIPELINE_CALLS(X)
#undef X
	*ret = pq;
	return 0;
}
