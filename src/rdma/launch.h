/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_launch: which of how many processes this one is, by what its launcher put into the
 * environment: Slurm, Open MPI, PMIx, PMI (MPICH, Intel MPI, Hydra), or peerpath's own variables.
 *
 * Pure: reads through @get only. Numbers that do not fit each other are an error that names the
 * variables, never a guess. Rank 0 is the coordinator and the others need its host:
 * PEERPATH_COORDINATOR, else this host where all processes are on it, else the first host of the
 * Slurm step or allocation, else mpirun's host by what Open MPI says of it. Where none of them is
 * there, PEERPATH_COORDINATOR must be set.
 */
#ifndef PP_RDMA_LAUNCH_H
#define PP_RDMA_LAUNCH_H

#include <stdint.h>

#include "base/error.h"

struct pp_launch {
	const char *by; /* "Slurm", "Open MPI", "PMIx", "PMI", "peerpath"; NULL: not launched */
	unsigned int rank, size;
	unsigned int local_rank, local_size; /* on this host; size 0: not told */
	char coordinator[256];		     /* host of rank 0, or HOST:PORT */
	const char *coordinator_by;	     /* the variable that told it; NULL: all are here */
	char job[128]; /* tells runs of one user apart: names the port and salts the token */
};

/* How many ports rank 0 may choose from: another run may have the first. */
enum { PP_LAUNCH_PORTS = 4 };

/* @get as getenv(3). 0 also when nothing launched it, or it alone. -EINVAL. */
int pp_launch_read(const char *(*get)(const char *name), struct pp_launch *ret,
		   struct pp_error *err);

/* The port at which rank 0 listens, unless told: by the job, below those that Linux hands out. */
uint16_t pp_launch_port(const struct pp_launch *launch, unsigned int attempt);

#endif
