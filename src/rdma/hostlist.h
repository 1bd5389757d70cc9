/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm's compressed lists of hosts: "a[1-3,07-09],b". Pure; gives what 'scontrol show hostnames'
 * of Slurm 22.05 prints, in its order for up to two brackets in a name. A name may also go on
 * behind its last bracket ("a[1-2]-x"), which that version refuses. What it lets pass as it is,
 * brackets that do not pair and blanks, is refused here.
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
