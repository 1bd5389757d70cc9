/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_nccl_looker: what looks at a job's processes have seen so far. Private to
 * nccl/run_watch.c and nccl/run_look.c.
 */
#ifndef PP_NCCL_RUN_LOOK_H
#define PP_NCCL_RUN_LOOK_H

#include "nccl/run_library.h"
#include "nccl/run_watch.h"
#include "trace/peermem.h"

struct pp_nccl_looker {
	const struct pp_nccl_watch_options *o;
	struct pp_nccl_libraries libraries;
	struct pp_peermem before;
	pp_ns next, pause; /* of looks */
	unsigned int looks;
	uint64_t most; /* regions in the look that is kept */
	bool grew;     /* the last look saw more than all before it */
	bool asked;    /* the kernel, or the software device's registry */
	bool simulated;
};

/* NULL: no memory. */
struct pp_nccl_looker *pp_nccl_looker_new(const struct pp_nccl_watch_options *o);
/* A look at what descends from @guard, when it is time; fills @n->kernel, @n->peermem_*. */
void pp_nccl_looker_look(struct pp_nccl_looker *l, pid_t guard, struct pp_nccl_run_node *n);
/* It is over. */
void pp_nccl_looker_tell(struct pp_nccl_looker *l, struct pp_nccl_run *r,
			 struct pp_nccl_run_node *n);

#endif
