/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which GPUs are joined by NVLink: from the answer "nvml" to the node's matrix and the GPUs' facts.
 */
#ifndef PP_NODE_NVLINK_H
#define PP_NODE_NVLINK_H

#include <jansson.h>

#include "node/node.h"

/*
 * @gpus: NVML's object of each GPU, in the order of the GPU objects, NULL where NVML lists none.
 * @why: for each of those, the reason. Sets n->nvlinks, n->n_gpus and the facts gpu.nvlinks*.
 */
void pp_nvlink_fill(struct pp_node *n, const json_t *const *gpus, const char *const *why,
		    unsigned int n_gpus);

#endif
