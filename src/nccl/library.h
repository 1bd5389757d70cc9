/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_nccl_library: the libnccl that a job would load, and its calls.
 *
 * The one adapter that calls NCCL: declarations of its own (ABI of NCCL 2.7 and later; what is
 * newer may be NULL). Looked for in this order: a path that is given; what the loader finds
 * (LD_LIBRARY_PATH, its directories); the packages of Python, which load theirs by path. Results
 * are ncclResult_t; 0 is good. Only in an agent: loading runs foreign code, and NCCL may block.
 */
#ifndef PP_NCCL_LIBRARY_H
#define PP_NCCL_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
	PP_NCCL_ID = 128,    /* bytes of a unique id */
	PP_NCCL_PATH = 1024, /* longer paths are cut */
	PP_NCCL_REMOTE_ERROR = 6,
};

struct pp_nccl_id {
	char bytes[PP_NCCL_ID];
};

struct pp_nccl_calls {
	int (*version)(int *ret);
	const char *(*error_string)(int code);
	const char *(*last_error)(void *comm); /* NULL before 2.13 */
	int (*unique_id)(struct pp_nccl_id *ret);
	int (*init_rank)(void **ret_comm, int size, struct pp_nccl_id id, int rank);
	int (*destroy)(void *comm);
	int (*abort)(void *comm);
	int (*async_error)(void *comm, int *ret);
	int (*all_reduce)(const void *from, void *to, size_t count, int type, int op, void *comm,
			  void *stream);
	int (*reduce_scatter)(const void *from, void *to, size_t count, int type, int op,
			      void *comm, void *stream);
	int (*all_gather)(const void *from, void *to, size_t count, int type, void *comm,
			  void *stream);
	int (*send)(const void *from, size_t count, int type, int peer, void *comm, void *stream);
	int (*receive)(void *to, size_t count, int type, int peer, void *comm, void *stream);
	int (*group_start)(void);
	int (*group_end)(void);
};

struct pp_nccl_library {
	void *handle; /* never closed: its threads do not survive it */
	struct pp_nccl_calls call;
	int number; /* 22809; before 2.9 2708 */
	unsigned int major, minor, patch;
	char path[PP_NCCL_PATH];
	const char *by;		  /* how it was found; static */
	char other[PP_NCCL_PATH]; /* another one, of Python, which its programs load; "" none */
};

/*
 * @given NULL: searched. -ENOENT: none, in one line with what to do; -ELIBACC: it does not load;
 * -ENOSYS: too old.
 */
int pp_nccl_library_open(const char *given, struct pp_nccl_library *ret, struct pp_error *err);

/* "CALL: TEXT (code): the library's last words"; returns -EIO. */
int pp_nccl_library_fail(const struct pp_nccl_library *l, void *comm, const char *call, int code,
			 struct pp_error *err);

/* Pure: 22809, 2708, as ncclGetVersion() tells. */
void pp_nccl_version_split(int number, unsigned int *ret_major, unsigned int *ret_minor,
			   unsigned int *ret_patch);

#endif
