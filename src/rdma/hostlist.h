/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm's compressed lists of hosts: "a[1-3,07-09]-x,b". Pure; what 'scontrol show hostnames'
 * prints for the list, in its order.
 */
#ifndef PP_RDMA_HOSTLIST_H
#define PP_RDMA_HOSTLIST_H

#include <stdbool.h>

#include "base/error.h"

enum {
	PP_HOSTLIST_NAME = 255,	  /* characters of one name */
	PP_HOSTLIST_MOST = 65536, /* names */
	PP_HOSTLIST_BRACKETS = 4, /* in one name: rack[1-2]n[1-4] has two */
};

/*
 * Calls @each with one name after the other until it returns false. -EINVAL: no such list,
 * -E2BIG: more than PP_HOSTLIST_MOST names. Names before a fault have been told of by then.
 */
int pp_hostlist_expand(const char *text, bool (*each)(void *arg, const char *name), void *arg,
		       struct pp_error *err);

#endif
