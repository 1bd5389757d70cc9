/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the limits collector. Private to it.
 */
#ifndef PP_NODE_COLLECT_LIMITS_H
#define PP_NODE_COLLECT_LIMITS_H

#include "node/node.h"

enum { PP_CGROUP_TEXT = 16 << 10 };

/* @cgroup: text of /proc/self/cgroup, NULL when it could not be read. */
void pp_container_collect(struct pp_node *n, const char *cgroup);
void pp_cgroup_collect(struct pp_node *n, const char *cgroup, int error);

#endif
