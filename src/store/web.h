/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd, loaded where a page is served and nowhere else: with it come GnuTLS and what that
 * needs, which would more than double what every other start of the program costs.
 *
 * pp_web holds its calls by the names of its own header, once pp_web_load() has succeeded.
 */
#ifndef PP_STORE_WEB_H
#define PP_STORE_WEB_H

#include <microhttpd.h>

#include "base/error.h"

#define PP_WEB_CALLS(X)                \
	X(add_response_header)         \
	X(create_response_from_buffer) \
	X(destroy_response)            \
	X(get_connection_info)         \
	X(get_daemon_info)             \
	X(get_response_header)         \
	X(get_timeout)                 \
	X(lookup_connection_value)     \
	X(queue_response)              \
	X(run)                         \
	X(start_daemon)                \
	X(stop_daemon)

struct pp_web {
#define X(name) __typeof__(MHD_##name) *(name);
	PP_WEB_CALLS(X)
#undef X
};

extern struct pp_web pp_web;

/* Once; later calls do nothing. -ENOENT when it is not there, -ELIBACC when it lacks a call. */
int pp_web_load(struct pp_error *err);

#endif
