/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is seen of some processes' memory now, as evidence records: for `bench` (and so gate 2 of
 * `prove`) and `nccl run`, whose own word for how memory is registered is a program's.
 *
 * One look at the whole machine, of which the rows of these processes are kept: witnesses that
 * count (bufinfo, peer memory) need the others too. It never fails for what cannot be seen: a
 * record says `unknown` then, names the surface, and the surface says why and how to get it. It
 * judges nothing but the registration; that what it finds may only weaken a program's claim is the
 * caller's to keep.
 *
 * The caller is a process with no memory registered (questions run in forked helpers) that calls
 * no driver. Processes on the software device are told by its registry, which lies above this
 * layer: the caller brings the rows. The kernel knows none of them and is not asked, since a made
 * /sys would have netlink's socket load a module.
 */
#ifndef PP_TRACE_EVIDENCE_H
#define PP_TRACE_EVIDENCE_H

#include "base/clock.h"
#include "trace/trace.h"

enum { PP_EVIDENCE_PIDS = 1024, PP_EVIDENCE_REGIONS = 1024 };

/* What processes on the software device say of their regions. */
struct pp_trace_registry {
	struct pp_arena arena; /* owns all of it */
	struct pp_trace_software *item;
	size_t n;
	unsigned int silent; /* processes that did not answer */
	char why[96];	     /* of the last of them */
};

/* Asks them. -ENOMEM. Given from above: this layer does not know the software device. */
typedef int pp_trace_registry_ask(struct pp_trace_registry *ret);

struct pp_evidence_options {
	const pid_t *pid; /* in any order, as our PID namespace counts; borrowed */
	size_t n_pids;	  /* more than PP_EVIDENCE_PIDS: the first of them */
	/* Self-triggered probes for the time of the look, where they can be had (root). */
	bool probe;
	struct pp_prober *prober; /* in place of them: one that runs; borrowed */
	pp_ns deadline;		  /* for all questions together; 0 = 10 s */
	/* They are on the software device: its registry alone is asked. As long as the result. */
	const struct pp_trace_registry *registry;
};

struct pp_evidence {
	/* Rows of these processes; one that shows no region has a row of `process`, with why. */
	struct pp_trace look;
	size_t left_out; /* regions of theirs beyond PP_EVIDENCE_REGIONS */
	pp_ns at, took;	 /* wall clock when it began; how long */
};

/* -ENOMEM only. On a recording nothing live is asked. */
int pp_evidence_look(struct pp_source *s, const struct pp_evidence_options *options,
		     struct pp_evidence *ret);
void pp_evidence_done(struct pp_evidence *e);

/*
 * Members of an object that the caller has opened: "evidence" (pp_trace_write()), "surfaces"
 * (pp_trace_write_surfaces()), "left_out", "looked", "took_ns".
 */
void pp_evidence_write(struct pp_json *j, const struct pp_evidence *e);

/* Keeps the rows of @pid; *ret_left_out those that are too many. The look's part that is pure. */
int pp_evidence_keep(struct pp_trace_table *t, const pid_t *pid, size_t n_pids, bool software,
		     size_t *ret_left_out);

#endif
