/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper's side of a probe: opens one device, registers in one way, undoes everything, and
 * reports each verb that was called.
 */
#ifndef PP_MEM_PROBE_CALL_H
#define PP_MEM_PROBE_CALL_H

#include "node/ask.h"
#include "mem/probe.h"

struct pp_probe_call {
	const char *device; /* name as libibverbs knows it */
	enum pp_probe_method method;
};

/*
 * A question's run(): arg is a struct pp_probe_call. Data: {"device", "calls": [{"call",
 * "arguments", "errno", "took_ns"}], "decided"}: index of the deciding call, absent when it was
 * not reached. "exported": false when libibverbs lacks ibv_reg_dmabuf_mr.
 */
int pp_probe_call_run(struct pp_json *data, const void *arg, struct pp_error *err);

#endif
