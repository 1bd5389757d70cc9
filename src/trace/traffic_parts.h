/* SPDX-License-Identifier: Apache-2.0 */
/* The two questions of a traffic window. Private to trace/traffic*.c. */
#ifndef PP_TRACE_TRAFFIC_PARTS_H
#define PP_TRACE_TRAFFIC_PARTS_H

#include "trace/traffic.h"

struct pp_traffic_question {
	struct pp_source *src; /* borrowed */
	pp_ns window;
	bool module_absent;
};

/* In a helper each; @arg is a struct pp_traffic_question. */
int pp_traffic_host_run(struct pp_json *data, const void *arg, struct pp_error *err);
int pp_traffic_gpu_run(struct pp_json *data, const void *arg, struct pp_error *err);

/* Sleeps until @end of the monotonic clock. */
void pp_traffic_until(pp_ns end);

#endif
