/* SPDX-License-Identifier: Apache-2.0 */
#include "store/web.h"

#include <dlfcn.h>
#include <errno.h>

#include "base/banned.h"

struct pp_web pp_web;

int pp_web_load(struct pp_error *err)
{
	void *lib;
	struct pp_web web;

	if (pp_web.start_daemon)
		return 0;
	lib = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return pp_error_set(err, -ENOENT,
				    "a page is served by libmicrohttpd.so.12, which this machine "
				    "lacks (Debian: libmicrohttpd12)");
/* A function's address out of dlsym()'s pointer to an object: POSIX has it so. */
#define X(name)                                           \
	*(void **)(&web.name) = dlsym(lib, "MHD_" #name); \
	if (!web.name)                                    \
		return pp_error_set(err, -ELIBACC, "libmicrohttpd.so.12 has no MHD_" #name);
	PP_WEB_CALLS(X)
#undef X
	pp_web = web;
	return 0;
}
