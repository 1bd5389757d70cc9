/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper's side of the probe of a GPU: one piece of its memory, registered with each device by
 * each way, and undone.
 */
#ifndef PP_MEM_PROBE_GPU_H
#define PP_MEM_PROBE_GPU_H

#include "base/error.h"
#include "base/json.h"

enum { PP_PROBE_GPU_BYTES = 65536 };

struct pp_probe_gpu {
	const char *gpu;	    /* BDF */
	const char *const *devices; /* names as libibverbs knows them; borrowed */
	size_t n;
};

/*
 * A question's run(): arg is a struct pp_probe_gpu. Data: {"gpu", "pairs": [{"device", "ways":
 * [{"registration", "errno", "took_ns", "refused"?, "simulated", "attempts": [...]}]} or {"device",
 * "failure"}]}: errno 0 is a registration that was made and undone, and "refused" says why not.
 */
int pp_probe_gpu_run(struct pp_json *data, const void *arg, struct pp_error *err);

#endif
