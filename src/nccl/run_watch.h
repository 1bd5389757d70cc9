/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One arm on one node: the command runs, and is watched from outside while it does. Counters of
 * ports, GPUs and memory over the whole run; libraries and kernel evidence by looks that become
 * rarer. Everything that can take time happens between reads of the guard's news: a look delays
 * the deadline by 3 s at most, and never the command.
 */
#ifndef PP_NCCL_RUN_WATCH_H
#define PP_NCCL_RUN_WATCH_H

#include "nccl/run.h"
#include "nccl/run_command.h"
#include "node/source.h"
#include "trace/evidence.h"

struct pp_nccl_watch_options {
	struct pp_source *src;			/* borrowed, as all */
	struct pp_nccl_command_options command; /* its terminal is given to it */
	pp_ns timeout;				/* 0: none */
	bool (*stopped)(void);
	bool node_wide;	    /* counters and the kernel's evidence; else another process has them */
	pid_t top;	    /* the kernel's evidence is of what descends from it; 0: the command */
	bool module_absent; /* NVIDIA's module is known not to be loaded */
	const char *blind;  /* why the observer cannot see the command; NULL */
	pp_trace_registry_ask *registry; /* of the software device; NULL: none can be */
};

/*
 * 0: it ran, and @n says how it ended; libraries are in @r. -ENOENT, -EACCES...: it could not be
 * started. Anything else has a line in @err.
 */
int pp_nccl_watch(const struct pp_nccl_watch_options *o, struct pp_nccl_run *r,
		  struct pp_nccl_run_node *n, struct pp_error *err);

#endif
