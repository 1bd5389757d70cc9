/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the judgement of gate 3, one file each: what a run's nodes add up to, the controls,
 * claims and sentences, findings.
 */
#ifndef PP_JUDGE_CONTROL_PARTS_H
#define PP_JUDGE_CONTROL_PARTS_H

#include "judge/control.h"

/* What one witness of registrations saw on all nodes. */
struct pp_sum_registered {
	uint64_t made[PP_OBSERVED_WAYS];
	uint64_t gpu;	 /* regions of GPU memory by any way */
	bool everywhere; /* some on every node */
	bool known;	 /* on every node: then none is none */
	const char *why; /* of the first node where it is not; borrowed */
};

struct pp_sum {
	struct pp_sum_registered library, kernel;
	bool bytes_known, memory_known, cpu_known;
	const char *bytes_why, *memory_why;
	double sent;		       /* bytes, by all ports of all nodes */
	double memory;		       /* bytes read and written by memory controllers */
	double cpu;		       /* seconds */
	bool gpu_everywhere;	       /* each node has GPU memory registered, by whoever saw it */
	enum pp_nccl_presence peermem; /* PRESENT: on every node; ABSENT: on every node */
	bool peermem_known, peermem_moved;
	bool ended_well;
	char ended[200]; /* why not */
};

void pp_sum_run(const struct pp_nccl_run *r, struct pp_sum *ret);
/* CPU seconds for each GB sent; memory bytes for each byte sent; false: not known. */
bool pp_sum_cpu_per_gb(const struct pp_sum *s, double *ret);
bool pp_sum_memory_per_byte(const struct pp_sum *s, double *ret);

/*
 * The least that must have left all nodes together, whatever algorithm was chosen; false: not
 * known, with why.
 */
bool pp_sum_must_send(const struct pp_nccl_run *r, double *ret, const char **ret_why);

/* Of controls A, B and C; @r NULL: not run. */
void pp_control_judge(const struct pp_nccl_run *whole, const struct pp_sum *whole_sum,
		      const struct pp_nccl_run *r, enum pp_nccl_arm arm, struct pp_control *ret);

/* Claims, verdict and texts, from runs and controls. */
void pp_control_claims(const struct pp_nccl_run *const run[PP_NCCL_ARMS], const struct pp_sum *sum,
		       struct pp_gate_library *g);

void pp_control_findings(const struct pp_nccl_run *const run[PP_NCCL_ARMS],
			 struct pp_gate_library *g);

#endif
