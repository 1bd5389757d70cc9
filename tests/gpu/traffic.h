/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What two processes do with each other. @first: the one that begins.
 */
#ifndef PP_TESTS_GPU_TRAFFIC_H
#define PP_TESTS_GPU_TRAFFIC_H

#include "end.h"

struct traffic {
	enum gpu_kind source, target;
	size_t len, inside;
	unsigned int rounds;
	enum ibv_qp_type type;
	const char *call;
	bool two; /* the second process has the second GPU */
};

typedef void traffic_fn(struct end *e, bool first, const struct traffic *t);
traffic_fn traffic_bytes, traffic_speed, traffic_call, traffic_ends, traffic_rules, traffic_regions,
	traffic_lines, traffic_self;

#endif
