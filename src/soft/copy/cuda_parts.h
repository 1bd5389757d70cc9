/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a GPU's copier among themselves: cuda_device.c makes and ends it, cuda_thread.c
 * copies.
 */
#ifndef SOFT_COPY_CUDA_PARTS_H
#define SOFT_COPY_CUDA_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "soft/copy/cuda_device.h"
#include "soft/copy/cuda_driver.h"

enum {
	SOFT_CUDA_UNDER_WAY = 64, /* copies of one direction given to CUDA at a time */
	SOFT_CUDA_DIRECTIONS = 2, /* by soft_copy.to_device */
	SOFT_CUDA_STREAMS = 5,	  /* of a direction: the first, and those of direct copies */
};

struct soft_cuda_queue {
	struct soft_copy *first, *last;
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
	soft_cuda_stream streams[SOFT_CUDA_DIRECTIONS][SOFT_CUDA_STREAMS];
	struct soft_cuda_function *kernel; /* NULL: it could not be loaded */
	soft_cuda_event events[SOFT_CUDA_DIRECTIONS][SOFT_CUDA_UNDER_WAY];
	bool spins; /* enough processors for a thread that looks on */
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
	struct soft_cuda_queue under_way[SOFT_CUDA_DIRECTIONS];
	unsigned int num[SOFT_CUDA_DIRECTIONS]; /* under way; changed by the thread alone */
	unsigned int next_event[SOFT_CUDA_DIRECTIONS];
	uint64_t copies, bytes, failed;

	/* The thread's own. */
	uint32_t seen; /* of asked: nothing of it waits */
	unsigned int in[SOFT_CUDA_DIRECTIONS][SOFT_CUDA_STREAMS]; /* of num, by stream */

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
