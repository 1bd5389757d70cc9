/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look at every memory region now: collects, joins, judges. What `peerpath trace`, `bench`,
 * `prove` and `nccl run` call.
 *
 * Read-only but for what the caller's prober has put into the kernel.
 */
#ifndef PP_TRACE_TRACE_H
#define PP_TRACE_TRACE_H

#include "trace/hca.h"
#include "trace/prober.h"
#include "trace/verdict.h"

struct pp_trace_options {
	pid_t pid;		  /* 0 all */
	bool only_software;	  /* nothing of the kernel is asked: what @software says alone */
	struct pp_prober *prober; /* running: B is done, A's events so far count; borrowed */
	/* Of probes when there is no prober: why; NULL: nobody wanted them. */
	const struct pp_surface_report *no_prober;
	const struct pp_trace_software *software; /* borrowed, as long as the look */
	size_t n_software;
};

struct pp_trace {
	struct pp_trace_hcas hcas;
	struct pp_resources resources;
	struct pp_processes processes;
	struct pp_buffers buffers;
	struct pp_peermem peermem;
	enum pp_tristate efa_logged;
	const char *why_efa; /* static; NULL not asked */
	struct pp_events events;
	struct pp_trace_table table;
};

/* -ENOMEM only: what cannot be seen is in the table's surfaces. A replay asks nothing live. */
int pp_trace_look(struct pp_source *s, const struct pp_trace_options *options,
		  struct pp_trace *ret);
void pp_trace_done(struct pp_trace *t);

#endif
