/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an error of the log means, and which one came first: a flush error is the consequence of
 * another error, often of another rank.
 */
#ifndef PP_NCCL_ERROR_H
#define PP_NCCL_ERROR_H

#include "nccl/job.h"

enum pp_nccl_nature {
	PP_NCCL_NATURE_MEMORY,	     /* a NIC could not use the memory it was given */
	PP_NCCL_NATURE_REGISTRATION, /* memory could not be registered */
	PP_NCCL_NATURE_PROCESS,	     /* a launcher saw a process end by a signal from outside */
	PP_NCCL_NATURE_NETWORK,	     /* the peer could not be reached or did not answer */
	PP_NCCL_NATURE_SETUP,	     /* the job never got as far as a transfer */
	PP_NCCL_NATURE_CONSEQUENCE,
	PP_NCCL_NATURE_WARNING, /* may be harmless */
};

enum pp_nccl_nature pp_nccl_error_nature(const struct pp_nccl_error *e);
const char *pp_nccl_error_name(const struct pp_nccl_error *e);	/* "completion", ... */
const char *pp_nccl_error_cause(const struct pp_nccl_error *e); /* one sentence */
/* "IBV_WC_RETRY_EXC_ERR", NULL when it is no completion or unknown. */
const char *pp_nccl_error_status(const struct pp_nccl_error *e);

/* The peer did not answer, or was not ready: what both a dead one and a bad fabric look like. */
bool pp_nccl_error_is_silence(const struct pp_nccl_error *e);

/* Index of the root, PP_NCCL_NONE when no error needs a cause. */
uint32_t pp_nccl_error_root(const struct pp_nccl_job *job);

#endif
