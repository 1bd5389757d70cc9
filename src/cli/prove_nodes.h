/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The captures of the nodes of a run, from the directory that `bench --keep` filled into the bundle
 * of `prove`. One that should be there and is not is said: in the document, on the terminal, in
 * nodes.errors, and by a manifest that is not complete. A replay's bundle has what it replays.
 */
#ifndef PP_CLI_PROVE_NODES_H
#define PP_CLI_PROVE_NODES_H

#include "cli/prove_memory.h"

/* After the run; adds to m->file and m->lost. */
void pp_prove_nodes_take(struct pp_prove_memory *m);
/* Of a bundle that is replayed: the same files and the same that is missing; borrows from @b. */
void pp_prove_nodes_keep(const struct pp_bundle *b, struct pp_prove_memory *m);
/* One line each of those that are missing; nothing when none is. */
void pp_prove_nodes_emit(struct pp_out *o, const struct pp_prove_memory *m);

#endif
