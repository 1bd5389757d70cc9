/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that descend from one, as /proc tells: a look, no more, since processes come and
 * go meanwhile.
 */
#ifndef PP_NCCL_RUN_TREE_H
#define PP_NCCL_RUN_TREE_H

#include <stddef.h>
#include <sys/types.h>

enum { PP_NCCL_TREE = 4096 };

/* Descendants of @top without itself; zombies are left out. How many, at most @most. */
size_t pp_nccl_tree(pid_t top, pid_t *ret, size_t most);

#endif
