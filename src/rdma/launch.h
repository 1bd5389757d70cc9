/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_launch: which of how many processes this one is, by what its launcher put into the
 * environment: Slurm, Open MPI, PMIx, PMI (MPICH, Intel MPI, Hydra), or peerpath's own variables.
 *
 * Pure: reads through @get only. Numbers that do not fit each other are an error that names the
 * variables, never a guess. Rank 0 is the coordinator and the others need its host:
 * SLURM_STEP_NODELIST's first name (compressed lists are understood), PMIX_SERVER_URI* and Open
 * MPI's URI carry it too, else PEERPATH_COORDINATOR must be set.
 */
#ifndef PP_RDMA_LAUNCH_H
#define PP_RDMA_LAUNCH_H

#include "base/error.h"

struct pp_launch {
	const char *by; /* "Slurm", "Open MPI", "PMIx", "PMI", "peerpath"; NULL: not launched */
	unsigned int rank, size;
	unsigned int local_rank, local_size; /* on this host; size 0: not told */
	char coordinator[256];		     /* host of rank 0 */
	char job[128]; /* tells runs of one user apart: names the port and salts the token */
};

/* @get as getenv(3). 0 also when nothing launched it. -EINVAL. */
int pp_launch_read(const char *(*get)(const char *name), struct pp_launch *ret,
		   struct pp_error *err);

#endif
