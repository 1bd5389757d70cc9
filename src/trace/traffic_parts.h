/* SPDX-License-Identifier: Apache-2.0 */
/* The two questions of a traffic window. Private to trace/traffic*.c. */
#ifndef PP_TRACE_TRAFFIC_PARTS_H
#define PP_TRACE_TRAFFIC_PARTS_H

#include "trace/traffic.h"

struct pp_traffic_question {
	struct pp_source *src; /* borrowed */
	pp_ns window;
	bool module_absent;
	bool open_end;	 /* the window may end earlier: */
	int stop, ready; /* readable: it ends now; a byte is written: counting has begun */
};

/* In a helper each; @arg is a struct pp_traffic_question. */
int pp_traffic_host_run(struct pp_json *data, const void *arg, struct pp_error *err);
int pp_traffic_gpu_run(struct pp_json *data, const void *arg, struct pp_error *err);

/* Sleeps until @end of the monotonic clock; true: the window is to end now. */
bool pp_traffic_until(const struct pp_traffic_question *q, pp_ns end);
/* Counting has begun. */
void pp_traffic_ready(const struct pp_traffic_question *q);

#endif
