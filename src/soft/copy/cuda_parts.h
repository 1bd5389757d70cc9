/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a GPU's copier among themselves: cuda_device.c makes and ends it, cuda_thread.c
 * copies, a batch at a time (cuda_batch.c).
 */
#ifndef SOFT_COPY_CUDA_PARTS_H
#define SOFT_COPY_CUDA_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "soft/copy/cuda_device.h"
#include "soft/copy/cuda_driver.h"

enum {
	SOFT_CUDA_DIRECTIONS = 2, /* by soft_copy.to_device; a stream each */
	SOFT_CUDA_BATCH = 16,	  /* copies at most */
	/* Of a direction: one that the GPU carries out, and one behind it. What comes meanwhile
	 * gathers for the next. */
	SOFT_CUDA_BATCHES = 2,
};

struct soft_cuda_queue {
	struct soft_copy *first, *last;
};

/* Copies begun together. */
struct soft_cuda_batch {
	struct soft_cuda_queue copies; /* of one kind; or one that is asked for something else */
	soft_cuda_event event;	       /* behind them */
	bool told;		       /* it tells of them */
};

struct soft_cuda_device {
	struct soft_copier copier;    /* first */
	struct soft_copier allocated; /* of memory that another context owns */
	const struct soft_cuda_driver *cuda;
	int ordinal, device;
	char bus_id[32];
	bool mps;
	soft_cuda_deliver *deliver;
	void *arg;
	soft_cuda_context context;
	soft_cuda_stream streams[SOFT_CUDA_DIRECTIONS];
	struct soft_cuda_function *kernel; /* NULL: it could not be loaded */
	soft_cuda_copy_together *together; /* NULL: one by one */
	bool spins;			   /* enough processors for a thread that looks on */
	pthread_t thread;
	bool has_thread;

	/* Copies ever begun, by 2^32; told without the lock, so that a thread that looks on
	 * disturbs nobody who begins one. */
	_Atomic uint32_t asked;
	atomic_bool stop; /* set under the lock */

	pthread_mutex_t lock; /* covers what follows; never held in a call of CUDA */
	pthread_cond_t more, delivered;
	bool sleeps;
	bool delivers, alone; /* the thread is with the engine; there is none any more */
	struct soft_cuda_queue waiting[SOFT_CUDA_DIRECTIONS]; /* not given to CUDA yet */
	struct soft_cuda_batch batches[SOFT_CUDA_DIRECTIONS][SOFT_CUDA_BATCHES];
	uint64_t copies, bytes, failed;

	/* The thread's own. */
	uint32_t seen; /* of asked: nothing of it waits */
	unsigned int begun[SOFT_CUDA_DIRECTIONS], over[SOFT_CUDA_DIRECTIONS]; /* batches */

	/* The thread's whereabouts. */
	_Atomic(const char *) inside;
	_Atomic pp_ns inside_since;
};

void *soft_cuda_thread(void *device);
void soft_cuda_start(struct soft_copier *copier, struct soft_copy *copy);
void soft_cuda_start_allocated(struct soft_copier *copier, struct soft_copy *copy);
void soft_cuda_cancel(struct soft_copier *copier, struct soft_region *region);
void soft_cuda_cancel_allocated(struct soft_copier *copier, struct soft_region *region);

/* cuda_peer.c: in the device's own context; a CUresult */
int soft_cuda_map(struct soft_cuda_device *device, struct soft_mapping *mapping);
int soft_cuda_unmap(struct soft_cuda_device *device, struct soft_mapping *mapping);

/* A call of CUDA, and its name for as long as it lasts. */
#define SOFT_CUDA_CALL_BY(d, name, call) (soft_cuda_enter(d, name), soft_cuda_leave(d, call))
#define SOFT_CUDA_CALL(d, name, call)	 SOFT_CUDA_CALL_BY(d, name, (d)->cuda->call)
static inline void soft_cuda_enter(struct soft_cuda_device *d, const char *name)
{
	atomic_store_explicit(&d->inside_since, pp_clock_monotonic(), memory_order_relaxed);
	atomic_store_explicit(&d->inside, name, memory_order_release);
}
static inline int soft_cuda_leave(struct soft_cuda_device *d, int result)
{
	atomic_store_explicit(&d->inside, NULL, memory_order_release);
	return result;
}

/* cuda_batch.c */
/* May @copy be carried out together with those from @first on, in any order? */
bool soft_cuda_joins(const struct soft_cuda_device *d, const struct soft_copy *first,
		     const struct soft_copy *copy);
/* Gives them to CUDA; each gets its rc. */
void soft_cuda_batch_begin(struct soft_cuda_device *d, struct soft_cuda_batch *batch);

/* cuda_rows.c */
/* Few bytes from page-locked memory, by a copy engine. */
int soft_cuda_few_to_device(struct soft_cuda_device *device, uint64_t at, const void *host,
			    size_t len, soft_cuda_stream stream);

/* cuda_kernel.c */
/* In the current context. NULL: the driver cannot load it. */
struct soft_cuda_function *soft_cuda_kernel_load(const struct soft_cuda_driver *cuda);
int soft_cuda_kernel_copy(struct soft_cuda_device *device, uint64_t to, uint64_t from, size_t len,
			  soft_cuda_stream stream);

#endif
