/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's driver library, as far as it is needed here: declared by ourselves (its binary interface,
 * which does not change), found only where the application has loaded it already. A process
 * without CUDA never learns that this file exists.
 */
#ifndef SOFT_COPY_CUDA_DRIVER_H
#define SOFT_COPY_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct soft_cuda_context *soft_cuda_context; /* CUcontext */
typedef struct soft_cuda_stream *soft_cuda_stream;   /* CUstream */
typedef struct soft_cuda_event *soft_cuda_event;     /* CUevent */
struct soft_cuda_module;			     /* CUmodule is a pointer to one */
struct soft_cuda_function;			     /* as CUfunction */

enum {
	SOFT_CUDA_SUCCESS = 0,
	SOFT_CUDA_OUT_OF_MEMORY = 2,
	SOFT_CUDA_NOT_READY = 600,
	SOFT_CUDA_NOT_SUPPORTED = 801,
	SOFT_CUDA_STREAM_NON_BLOCKING = 1,
	SOFT_CUDA_EVENT_DISABLE_TIMING = 2,
	SOFT_CUDA_HOSTREGISTER_PORTABLE = 1,
	SOFT_CUDA_HOSTREGISTER_READ_ONLY = 8,
	SOFT_CUDA_CAPTURE_RELAXED = 2,
	SOFT_CUDA_MEMORYTYPE_HOST = 1,
	SOFT_CUDA_MEMORYTYPE_DEVICE = 2,
	SOFT_CUDA_POINTER_MEMORY_TYPE = 2,
	SOFT_CUDA_POINTER_BUFFER_ID = 7,
	SOFT_CUDA_POINTER_IS_MANAGED = 8,
	SOFT_CUDA_POINTER_DEVICE_ORDINAL = 9,
	SOFT_CUDA_DEVICE_MPS_ENABLED = 133,
	SOFT_CUDA_SOURCE_IN_STREAM_ORDER = 1,
	SOFT_CUDA_BESIDE_KERNELS = 1,
};

struct soft_cuda_place { /* half of a CUDA_MEMCPY2D */
	size_t x, y;
	int type;
	const void *host;
	uint64_t device;
	void *array;
	size_t pitch;
};
struct soft_cuda_rows { /* CUDA_MEMCPY2D */
	struct soft_cuda_place from, to;
	size_t width, height;
};

/* Member, name of the symbol, arguments. All return a CUresult, 0 on success. */
#define SOFT_CUDA_CALLS(X)                                                                         \
	X(device_get, "cuDeviceGet", (int *device, int ordinal))                                   \
	X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))       \
	X(device_bus_id, "cuDeviceGetPCIBusId", (char *id, int len, int device))                   \
	X(ctx_create, "cuCtxCreate_v2",                                                            \
	  (soft_cuda_context * context, unsigned int flags, int device))                           \
	X(ctx_destroy, "cuCtxDestroy_v2", (soft_cuda_context context))                             \
	X(ctx_push, "cuCtxPushCurrent_v2", (soft_cuda_context context))                            \
	X(ctx_pop, "cuCtxPopCurrent_v2", (soft_cuda_context * context))                            \
	X(ctx_set, "cuCtxSetCurrent", (soft_cuda_context context))                                 \
	X(capture_mode, "cuThreadExchangeStreamCaptureMode", (int *mode))                          \
	X(stream_create, "cuStreamCreate", (soft_cuda_stream * stream, unsigned int flags))        \
	X(event_create, "cuEventCreate", (soft_cuda_event * event, unsigned int flags))            \
	X(event_record, "cuEventRecord", (soft_cuda_event event, soft_cuda_stream stream))         \
	X(event_query, "cuEventQuery", (soft_cuda_event event))                                    \
	X(to_device, "cuMemcpyHtoDAsync_v2",                                                       \
	  (uint64_t device, const void *host, size_t len, soft_cuda_stream stream))                \
	X(rows_to_device, "cuMemcpy2DAsync_v2",                                                    \
	  (const struct soft_cuda_rows *rows, soft_cuda_stream stream))                            \
	X(to_host, "cuMemcpyDtoHAsync_v2",                                                         \
	  (void *host, uint64_t device, size_t len, soft_cuda_stream stream))                      \
	X(module_load, "cuModuleLoadData", (struct soft_cuda_module * *module, const void *image)) \
	X(module_function, "cuModuleGetFunction",                                                  \
	  (struct soft_cuda_function * *function, struct soft_cuda_module * module,                \
	   const char *name))                                                                      \
	X(launch, "cuLaunchKernel",                                                                \
	  (struct soft_cuda_function * function, unsigned int grid_x, unsigned int grid_y,         \
	   unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,  \
	   unsigned int shared, soft_cuda_stream stream, void **arguments, void **more))           \
	X(host_register, "cuMemHostRegister_v2", (void *at, size_t len, unsigned int flags))       \
	X(host_unregister, "cuMemHostUnregister", (void *at))                                      \
	X(pointer_attribute, "cuPointerGetAttribute", (void *value, int attribute, uint64_t at))   \
	X(address_range, "cuMemGetAddressRange_v2", (uint64_t * base, size_t * len, uint64_t at))  \
	X(retain_allocation, "cuMemRetainAllocationHandle", (uint64_t * handle, void *at))         \
	X(release_allocation, "cuMemRelease", (uint64_t handle))

struct soft_cuda_driver {
#define SOFT_CUDA_MEMBER(member, symbol, arguments) int(*member) arguments;
	SOFT_CUDA_CALLS(SOFT_CUDA_MEMBER)
#undef SOFT_CUDA_MEMBER
};

/* NULL: it is not loaded in this process, or too old to have all of this. */
const struct soft_cuda_driver *soft_cuda_driver(void);

/* What sharing memory between processes takes besides. */
struct soft_cuda_ipc_handle { /* CUipcMemHandle, passed by value */
	char bytes[64];
};
struct soft_cuda_access { /* CUmemAccessDesc */
	struct {
		int type, id;
	} location;
	int flags;
};

#define SOFT_CUDA_PEER_CALLS(X)                                                                   \
	X(export_handle, "cuMemExportToShareableHandle",                                          \
	  (void *to, uint64_t handle, int type, unsigned long long flags))                        \
	X(import_handle, "cuMemImportFromShareableHandle",                                        \
	  (uint64_t * handle, void *from, int type))                                              \
	X(reserve, "cuMemAddressReserve",                                                         \
	  (uint64_t * at, size_t len, size_t alignment, uint64_t hint, unsigned long long flags)) \
	X(unreserve, "cuMemAddressFree", (uint64_t at, size_t len))                               \
	X(map, "cuMemMap",                                                                        \
	  (uint64_t at, size_t len, size_t offset, uint64_t handle, unsigned long long flags))    \
	X(unmap, "cuMemUnmap", (uint64_t at, size_t len))                                         \
	X(set_access, "cuMemSetAccess",                                                           \
	  (uint64_t at, size_t len, const struct soft_cuda_access *access, size_t num))           \
	X(ipc_get, "cuIpcGetMemHandle", (struct soft_cuda_ipc_handle * handle, uint64_t at))      \
	X(ipc_open, "cuIpcOpenMemHandle_v2",                                                      \
	  (uint64_t * at, struct soft_cuda_ipc_handle handle, unsigned int flags))                \
	X(ipc_close, "cuIpcCloseMemHandle", (uint64_t at))                                        \
	X(copy, "cuMemcpyDtoDAsync_v2",                                                           \
	  (uint64_t to, uint64_t from, size_t len, soft_cuda_stream stream))

struct soft_cuda_peers {
#define SOFT_CUDA_MEMBER(member, symbol, arguments) int(*member) arguments;
	SOFT_CUDA_PEER_CALLS(SOFT_CUDA_MEMBER)
#undef SOFT_CUDA_MEMBER
};

/* NULL: as above, or it lacks one of these alone. */
const struct soft_cuda_peers *soft_cuda_peers(void);

/* Copies handed over together (CUDA 12.8; what newer headers call _v2 lacks @ret_fault). */
struct soft_cuda_together { /* CUmemcpyAttributes */
	int order;
	struct {
		int type, id;
	} from, to;
	unsigned int flags;
};
typedef int soft_cuda_copy_together(uint64_t *to, uint64_t *from, size_t *lens, size_t num,
				    struct soft_cuda_together *how, size_t *first_of_how,
				    size_t num_how, size_t *ret_fault, soft_cuda_stream stream);
/* NULL: as above, or it is older. */
soft_cuda_copy_together *soft_cuda_together(void);

/* -errno of a CUresult. */
int soft_cuda_errno(int result);

#endif
