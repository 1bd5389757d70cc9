/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 3 of `prove` over the nodes of gate 2: four runs of NCCL, one for each arm, with a rank on
 * every node, each under `nccl run`. The nodes come together anew, by the way gate 2 had: a peer's
 * `bench --listen`, or the ranks of a launcher.
 */
#ifndef PP_CLI_PROVE_RANKS_H
#define PP_CLI_PROVE_RANKS_H

#include "cli/prove_library.h"
#include "rdma/launch.h"

/*
 * Runs and judges into @l; where there was no job, l->why says why. @launch: size at most 1 for
 * peers. 0 or an exit code.
 */
int pp_prove_ranks_run(const struct pp_args *args, const struct pp_launch *launch,
		       struct pp_prove_library *l);
/* Rank 0, where there will be no job: lets the other ranks of a launcher go. */
void pp_prove_ranks_dismiss(const struct pp_args *args, const struct pp_launch *launch);
/* Any other rank: serves until rank 0 has ended. An exit code after one line. */
int pp_prove_ranks_serve(const struct pp_args *args, const struct pp_launch *launch);

#endif
