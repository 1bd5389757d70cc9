/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_cuda_device: a GPU whose memory is copied from and to: a context of our own there,
 * streams for either direction, and a thread that alone talks to CUDA while there is traffic.
 *
 * The context is never the application's: whoever waits for the GPU inside a call of CUDA holds
 * his context's lock, and the GPU may be waiting for one of our copies. The thread is the only one
 * that can be caught in a call of CUDA, and it holds no lock then: the engine goes on, and
 * `peerpath soft show` says where the thread is. It never waits for the GPU: copies are begun, and
 * their events looked at.
 *
 * One thing the own context does not cure (seen with driver 580, CUDA 13): a copy of memory that
 * cuMemAlloc() gave takes the lock of the context that owns the memory, the application's, in
 * whatever context it is begun. Memory that cuMemCreate() made has no owner. So allocated memory
 * is copied by a kernel, whose arguments nobody looks up.
 */
#ifndef SOFT_COPY_CUDA_DEVICE_H
#define SOFT_COPY_CUDA_DEVICE_H

#include "soft/copy/mover.h"

struct soft_cuda_device;

/* Copies that are over, by their next, rc set; called by the device's thread with no lock held.
 * Calls soft_copy_done() for each. */
typedef void soft_cuda_deliver(void *arg, struct soft_copy *list);

/* GPU @ordinal of the process. Makes nothing there yet. -ENODEV, -ENOMEM. */
int soft_cuda_device_new(int ordinal, soft_cuda_deliver *deliver, void *arg,
			 struct soft_cuda_device **ret);
/* The context, the streams, the thread; the caller's context is current again afterwards.
 * -ENOMEM: the GPU, or the process, has no room for it; -EIO. */
int soft_cuda_device_open(struct soft_cuda_device *device);
/* Page-locks memory for the copies of every GPU, as long as the process lives. */
int soft_cuda_device_pin(struct soft_cuda_device *device, void *at, size_t len);
/* Ends the thread: what it has not begun is done in vain, what it has it waits for, a second at
 * most. false: it is caught in a call of CUDA, and the device must stay for good. */
bool soft_cuda_device_end(struct soft_cuda_device *device); /* NULL is fine */
/* When all that may ask it for anything have ended, too. NULL is fine. */
void soft_cuda_device_free(struct soft_cuda_device *device);

/* For memory that is mapped (@vmm), or allocated. */
struct soft_copier *soft_cuda_device_copier(struct soft_cuda_device *device, bool vmm);

/* A copy that takes long is named. */
#define SOFT_CUDA_SLOW (2 * PP_SECOND)

struct soft_cuda_watch {
	int ordinal;
	const char *bus_id; /* "0000:06:00.0", or "" */
	bool open;	    /* it has a context */
	bool mps;	    /* shared with other processes by MPS */
	bool kernel;	    /* allocated memory is copied by one; else by the copy engine */
	unsigned int under_way;
	uint64_t copies, bytes, failed;
	const char *inside; /* the call that its thread is in; NULL: none */
	pp_ns inside_since;
	/* The oldest copy, if one is under way. */
	bool to_device, begun; /* given to CUDA already */
	bool direct;	       /* from a peer's memory */
	enum soft_copy_what what;
	uint64_t oldest_bytes;
	pp_ns oldest_since;
};
void soft_cuda_device_watch(struct soft_cuda_device *device, struct soft_cuda_watch *ret);

#endif
