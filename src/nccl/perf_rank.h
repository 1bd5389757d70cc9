/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank of `nccl perf`: one GPU and one communicator in a process of its own, which does what the
 * coordinator (perf.h) says over a channel and ends with it. Nothing else calls CUDA or NCCL.
 *
 * Orders are objects {"do": WORD, ...}, each has one answer, {"ok": true, ...} or {"ok": false,
 * "error": errno, "text": one line}; both may have "log": what NCCL has printed meanwhile.
 *
 *   look     GPU                            -> who else uses it
 *   open     library, NCCL_HOSTID           -> what was found
 *   buffers  bytes, memory kind
 *   id       (rank 0)                       -> the communicator's unique id
 *   init     id, rank, size
 *   clock                                   -> this host's clock
 *   time     shape, iterations              -> time of all of them, back to back
 *   sample   shape, iterations              -> of each alone: when it was entered, how long it took
 *   check    shape, salt                    -> elements checked, wrong
 *   close    the communicator
 *
 * What takes longer than its "limit_ns", or what NCCL reports as failed meanwhile, is aborted; the
 * communicator is of no use then and the rank ends.
 */
#ifndef PP_NCCL_PERF_RANK_H
#define PP_NCCL_PERF_RANK_H

#include "rdma/channel.h"

/* struct pp_party_service's agent; @arg is unused. Exit status: 0 the channel ended. */
int pp_perf_rank_serve(struct pp_channel *c, const void *arg);

#endif
