/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_gpus: GPUs whose memory is registered in this process, and the staging through
 * which its bytes go. Their contexts are made, and staging is page-locked, when both memory is
 * registered and a queue pair is ready to receive: never later, in the middle of traffic.
 *
 * Not under the engine's lock, unless it says so: CUDA takes its time.
 */
#ifndef SOFT_ENGINE_GPUS_H
#define SOFT_ENGINE_GPUS_H

#include <pthread.h>

#include "soft/copy/cuda_device.h"
#include "soft/copy/mover.h"
#include "soft/copy/shelf.h"

struct soft_engine;

enum { SOFT_GPUS_MAX = 64 };

struct soft_gpus {
	pthread_mutex_t making;
	struct soft_cuda_device *gpus[SOFT_GPUS_MAX]; /* by ordinal; NULL: none */
	unsigned int ready; /* queue pairs that became ready to receive, at most as many as count */
	bool registered;
	struct soft_shelf shelf;	 /* staging on its way out, seen by other processes */
	struct soft_exports exports;	 /* allocations that they may be shown (direct.h) */
	struct soft_cuda_device *mapper; /* maps what they show; NULL: no GPU is open */
	/* Copies that are over, the last one first; whoever leaves the engine sees to them. */
	_Atomic(struct soft_copy *) over;
	_Atomic bool ends; /* then a GPU's thread sees to them itself, before it goes */
};

void soft_gpus_init(struct soft_gpus *gpus);
/* A process that ends its engine; never a child that inherited it. */
void soft_gpus_done(struct soft_engine *engine);

/* Memory of GPU @ordinal is to be registered. -ENODEV, -ENOMEM, -EIO. */
int soft_gpus_register(struct soft_engine *engine, int ordinal, struct soft_cuda_device **ret);
/* A queue pair is about to be ready to receive. */
int soft_gpus_ready(struct soft_engine *engine);
/* No copy of @region is begun any more; those under way are over when this returns, a peer's too of
 * what is lent. false: one hangs, and @region must stay. */
bool soft_gpus_leave(struct soft_engine *engine, struct soft_region *region);
/* Copies that are over go on in the engine: now, or when whoever has its lock leaves it. */
void soft_gpus_deliver(struct soft_engine *engine);
/* Under the engine's lock, all that follow. */
void soft_gpus_each(struct soft_engine *engine,
		    void (*each)(void *, const struct soft_cuda_watch *), void *arg);
/* What others may see; NULL: no CUDA here, or no memory for it. */
const struct soft_shelf *soft_gpus_shelf(const struct soft_engine *engine);
/* A child leaves it to its parent. */
void soft_gpus_inherited(struct soft_engine *engine);
const struct soft_mover *soft_gpus_mover(const struct soft_engine *engine);

#endif
