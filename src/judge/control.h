/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate 3: what one run of a job shows, and what its negative controls say to it. Pure.
 *
 * Every proof has a control that must fail in a way known beforehand:
 *   A  GDR off by level     the marker and registrations of GPU memory are gone, bytes of the hca
 *                           the same within 5 % (else it fell to TCP), host CPU and memory traffic
 *                           up
 *   B  DMA-BUF off          with peermem the marker stays and peermem's counters move; without it
 *                           as A
 *   C  GDR read off         the sending side alone loses the marker
 * A control that does not do what it should makes the proof of the unchanged run weaker, whatever
 * that one shows. What could not be looked at is unknown and says what is missing; it counts as
 * neither.
 */
#ifndef PP_JUDGE_CONTROL_H
#define PP_JUDGE_CONTROL_H

#include "base/json.h"
#include "nccl/run.h"

enum { PP_CONTROL_CHECKS = 12, PP_CONTROL_FINDINGS = 64 };

enum pp_control_state {
	PP_CONTROL_NOT_RUN,
	PP_CONTROL_AS_EXPECTED,
	PP_CONTROL_OTHER,
	PP_CONTROL_UNKNOWN,
	PP_CONTROL_NOT_APPLICABLE, /* what it takes away is not what the run used */
};
/* "not run", "expected", "other", "unknown", "n/a" */
const char *pp_control_state_name(enum pp_control_state s);

struct pp_control_check {
	const char *what; /* "hca bytes", "marker", ...; static */
	char expected[120], seen[200];
	enum pp_control_state state;
};

struct pp_control {
	enum pp_nccl_arm arm;
	/*
	 * Of its checks: OTHER beats UNKNOWN beats AS_EXPECTED. Host CPU and host memory are one:
	 * either may show the staging, and neither need (a cache may hold it, a core may poll
	 * anyway).
	 */
	enum pp_control_state state;
	struct pp_control_check check[PP_CONTROL_CHECKS];
	unsigned int n_checks;
	char says[240]; /* one sentence */
};

/*
 * Of the environment: a forced level, LOC in an image or nccl.conf, values that differ. They say
 * what was meant, not what was done: pass is advice, and none of them moves the gate.
 */
struct pp_control_finding {
	char id[48]; /* "gdr-level-forced" */
	char text[240], fix[200], undo[200];
	enum pp_verdict verdict;
};

/* Against arm A: what the direct path is worth. known: both arms have it. */
struct pp_control_gain {
	bool bandwidth_known, latency_known, cpu_known;
	double bandwidth_ratio;		 /* unchanged / A, of the largest size */
	double latency_ratio;		 /* of the smallest */
	double cpu_per_gb, cpu_per_gb_a; /* CPU seconds for each GB (10^9 bytes) the hcas sent */
};

struct pp_gate_library {
	enum pp_verdict verdict;  /* of gate 3 */
	enum pp_nccl_claim claim; /* "large messages between hosts went by GDR" */
	enum pp_nccl_claim mechanism_claim;
	/* "dmabuf", "peermem", "data-direct", "efa-p2p", "mixed", "undetermined", "n/a": by
	 * witnesses of registrations, the kernel first; static */
	const char *mechanism;
	char evidence[240]; /* the strongest, and what is beside it */
	char sentence[240]; /* what may be said; simulated: "chain exercised in simulation" */
	char raise[240];    /* what would raise it; "" for pass */
	char next[200];	    /* one command; "" for pass */
	struct pp_control control[PP_NCCL_ARMS]; /* by arm; UNCHANGED is not used */
	struct pp_control_finding finding[PP_CONTROL_FINDINGS];
	unsigned int n_findings;
	struct pp_control_gain gain;
	bool simulated;
	bool passed; /* simulated: the chain did all it should */
};

/*
 * What claims need, beside the logs (`claim_gdr` of the unchanged run):
 *   claim      registrations of GPU memory on every node, by observer or kernel; control A as
 *              expected; hcas that sent at least what the collective must move between nodes
 *   mechanism  the claim; witnesses that agree on one; control B as expected, or not applicable
 *   pass       both; control C as expected
 * Taking a run, a witness or a member away makes none of them stronger, and refutes nothing.
 *
 * @run[PP_NCCL_ARM_UNCHANGED] is needed, any other may be NULL: not run. The runs are of one job:
 * -EXDEV, and one line in @err, when commands, nodes or libraries differ.
 */
int pp_gate_library_judge(const struct pp_nccl_run *const run[PP_NCCL_ARMS],
			  struct pp_gate_library *ret, struct pp_error *err);

/* {"verdict", "claim", "mechanism_claim", ..., "controls": [...], "findings": [...], "gain"} */
void pp_gate_library_write(struct pp_json *j, const char *key, const struct pp_gate_library *g);
/* "pass", "simulation: passed", ...: the word that a person reads. */
const char *pp_gate_library_word(const struct pp_gate_library *g);
/* Of one run: regions of GPU memory, by kernel or observer, whoever saw more; what the hcas sent
 * and CPU seconds for each GB of it. NaN, or false: not known. */
bool pp_control_gpu_regions(const struct pp_nccl_run *r, uint64_t *ret);
double pp_control_sent_gb(const struct pp_nccl_run *r);
double pp_control_cpu_per_gb(const struct pp_nccl_run *r);
/* "dmabuf", ... as pp_gate_library has it; static. */
const char *pp_control_mechanism(const struct pp_nccl_run *r);

#endif
