/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_cuda: the CUDA driver, and one GPU of it with its primary context.
 *
 * The one adapter that calls CUDA for memory: declarations of its own (CUDA 13.0; what is newer
 * than CUDA 10.2 may be NULL), everything by dlopen of libcuda.so.1. Its results are CUresults;
 * 0 is good. Only in an agent or a helper process: CUDA may block or crash, and it makes a context.
 */
#ifndef PP_MEM_CUDA_H
#define PP_MEM_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bdf.h"
#include "base/error.h"
#include "mem/bar1.h"

enum {
	PP_CUDA_TEXT = 96,
	/* CUresult */
	PP_CUDA_INVALID_VALUE = 1,
	PP_CUDA_OUT_OF_MEMORY = 2,
	PP_CUDA_UNAVAILABLE = 46,
	PP_CUDA_NO_DEVICE = 100,
	PP_CUDA_INVALID_DEVICE = 101,
	PP_CUDA_NOT_READY = 600,
	PP_CUDA_NOT_PERMITTED = 800,
	PP_CUDA_NOT_SUPPORTED = 801,
	/* CUpointer_attribute */
	PP_CUDA_SYNC_MEMOPS = 6,
	PP_CUDA_DEVICE_ORDINAL = 9,
	PP_CUDA_GDR_CAPABLE = 15,
	/* CUmemRangeHandleType */
	PP_CUDA_DMABUF_FD = 1,
	/* Flags of streams, events, page-locked memory */
	PP_CUDA_NON_BLOCKING = 1,
	PP_CUDA_NO_TIMING = 2,
	PP_CUDA_PORTABLE = 1,
};

/* CUmemLocation, CUmemAllocationProp, CUmemAccessDesc. */
struct pp_cuda_place {
	int type, id;
};

struct pp_cuda_property {
	int type, handle_types;
	struct pp_cuda_place place;
	void *win32;
	unsigned char compression, gdr_capable;
	unsigned short usage;
	unsigned char reserved[4];
};

struct pp_cuda_access {
	struct pp_cuda_place place;
	int flags;
};

struct pp_cuda_calls {
	int (*error_name)(int code, const char **ret);
	int (*init)(unsigned int flags);
	int (*by_bdf)(int *ret, const char *bdf);
	int (*attribute)(int *ret, int attribute, int device);
	int (*total_memory)(size_t *ret, int device);
	int (*retain)(void **ret_context, int device);
	int (*release)(int device);
	int (*set_current)(void *context);
	int (*synchronize)(void);
	int (*alloc)(uint64_t *ret, size_t size);
	int (*free)(uint64_t at);
	int (*address_range)(uint64_t *ret_base, size_t *ret_size, uint64_t at);
	int (*pointer_get)(void *ret, int attribute, uint64_t at);
	int (*pointer_set)(const void *value, int attribute, uint64_t at);
	int (*host_register)(void *at, size_t size, unsigned int flags);
	int (*host_unregister)(void *at);
	int (*stream_create)(void **ret, unsigned int flags);
	int (*stream_destroy)(void *stream);
	int (*event_create)(void **ret, unsigned int flags);
	int (*event_destroy)(void *event);
	int (*event_record)(void *event, void *stream);
	int (*event_query)(void *event);
	int (*event_wait)(void *event);
	int (*copy_in)(uint64_t to, const void *from, size_t len, void *stream);
	int (*copy_out)(void *to, uint64_t from, size_t len, void *stream);
	/* NULL where the driver is older. */
	int (*handle_for_range)(void *ret, uint64_t at, size_t size, int type,
				unsigned long long flags);
	int (*flush)(int target, int scope);
	int (*create)(uint64_t *ret_handle, size_t size, const struct pp_cuda_property *p,
		      unsigned long long flags);
	int (*destroy)(uint64_t handle);
	int (*reserve)(uint64_t *ret, size_t size, size_t alignment, uint64_t at,
		       unsigned long long flags);
	int (*unreserve)(uint64_t at, size_t size);
	int (*map)(uint64_t at, size_t size, size_t offset, uint64_t handle,
		   unsigned long long flags);
	int (*unmap)(uint64_t at, size_t size);
	int (*set_access)(uint64_t at, size_t size, const struct pp_cuda_access *access,
			  size_t count);
	int (*granularity)(size_t *ret, const struct pp_cuda_property *p, int option);
};

struct pp_cuda {
	void *library; /* never closed: a driver does not survive it */
	struct pp_cuda_calls call;
	struct pp_bdf bdf;
	char name[PP_BDF_TEXT]; /* "0000:3b:00.0" */
	int device;
	void *context;
	void *in, *out;	 /* streams: to the GPU, from it */
	uint64_t memory; /* bytes of the GPU; 0 unknown */
	/* Attributes of the device; -1 unknown. */
	int dmabuf, gdr, gdr_vmm, posix_fd, flush_options, writes_ordering, compute_mode;
	struct pp_bar1 bar1;
};

/*
 * Opens the GPU at @bdf and retains its primary context. -ENODEV, -EBUSY (exclusive mode), -ENOSYS
 * (an older driver), -EIO: one line in @err.
 */
int pp_cuda_open(const char *bdf, struct pp_cuda **ret, struct pp_error *err);
struct pp_cuda *pp_cuda_close(struct pp_cuda *c); /* returns NULL */

/* Makes the context the thread's own; before every call that works in one. */
void pp_cuda_enter(const struct pp_cuda *c);

/* "CUDA_ERROR_NOT_SUPPORTED (801)"; returns @text. */
const char *pp_cuda_error(const struct pp_cuda_calls *call, int code, char text[PP_CUDA_TEXT]);
/* The errno that stands for a CUresult, positive; 0 for 0. */
int pp_cuda_errno(int code);
/* Fills @err with "CALL: NAME (code)" and what it is about; returns the negative errno. */
int pp_cuda_fail(const struct pp_cuda *c, const char *call, int code, struct pp_error *err);

#endif
