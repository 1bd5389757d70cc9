/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_gpu_watch: what holds a GPU back while something runs, by NVML in this process: for
 * processes that may be abandoned when NVML hangs.
 */
#ifndef PP_BENCH_GPU_WATCH_H
#define PP_BENCH_GPU_WATCH_H

#include "base/json.h"

struct pp_gpu_watch;

/* NULL where there is no NVML. @gpu: BDF. */
struct pp_gpu_watch *pp_gpu_watch_new(const char *gpu);
struct pp_gpu_watch *pp_gpu_watch_free(struct pp_gpu_watch *w);
void pp_gpu_watch_reset(struct pp_gpu_watch *w);
void pp_gpu_watch_sample(struct pp_gpu_watch *w);
/* "gpu_mhz", "throttle" (absent: unknown, or none). */
void pp_gpu_watch_write(struct pp_json *j, const struct pp_gpu_watch *w);

#endif
