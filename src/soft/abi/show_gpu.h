/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of GPUs in what `soft show` says. The engine's lock is held.
 */
#ifndef SOFT_ABI_SHOW_GPU_H
#define SOFT_ABI_SHOW_GPU_H

#include "base/json.h"
#include "soft/abi/object.h"

/* Keys of the region's object, if its memory is a GPU's. */
void soft_show_gpu_region(struct pp_json *json, const struct soft_mr_object *mr);
/* Keys of the process's object. */
void soft_show_gpus(struct pp_json *json, struct soft_engine *engine);

#endif
