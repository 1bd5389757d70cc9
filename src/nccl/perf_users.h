/* SPDX-License-Identifier: Apache-2.0 */
/* Who else uses a GPU, by NVML: asked before this process has a context there. */
#ifndef PP_NCCL_PERF_USERS_H
#define PP_NCCL_PERF_USERS_H

/*
 * Processes with a context on the GPU at @bdf, the server of MPS not among them, which is there for
 * its clients. -1: not known (no NVML, or it does not tell).
 */
int pp_perf_users(const char *bdf);

#endif
