/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_canarying: the command runs as the canary file says, one run after the other, and what
 * each showed becomes a trial: peerpath canary, and gate 4 of prove.
 */
#ifndef PP_CLI_CANARY_H
#define PP_CLI_CANARY_H

#include "cli/place.h"
#include "cli/session.h"
#include "judge/trial.h"
#include "node/node.h"

struct pp_gate_library;
struct pp_nccl_run;

struct pp_canarying {
	const struct pp_args *args;	  /* borrowed */
	const struct pp_session *session; /* borrowed; opened before the runs */
	struct pp_trial trial;
	char **argv; /* CMD; NULL-terminated, owned; its strings are borrowed */
	struct pp_place place;
	size_t repeats;
	char witness[PATH_MAX]; /* file that the software device makes when a run opens it */
};

/*
 * canary_measure.c. Reads the canary file; CMD is @before, @n_before words, then the operands.
 * @repeats: a number that stands above the file's; NULL. 0 or an exit code; done() frees either
 * way.
 */
int pp_canarying_open(struct pp_canarying *c, const struct pp_args *args, const char *file,
		      const char *repeats, const char *const *before, size_t n_before);
/* This node into the trial, and a place for what runs leave: c->session is set. */
int pp_canarying_begin(struct pp_canarying *c);
/* All runs. 0 or an exit code. */
int pp_canarying_run(struct pp_canarying *c);
void pp_canarying_done(struct pp_canarying *c);
/* A `peerpath.canary/1` document. malloc'ed; NULL: no memory. */
char *pp_canary_document(const struct pp_trial *t);

/* canary_node.c: this node as it must be in both arms. -ENOMEM. */
int pp_canary_node(struct pp_trial *t, const struct pp_node *node);

/*
 * canary_run.c: one run of CMD. 0; an exit code after one line where CMD cannot be run, or we were
 * interrupted.
 */
int pp_canary_run(struct pp_canarying *c, const char *label, struct pp_trial_run *ret);

/* canary_host.c: time that tasks of the node were kept waiting; NaN where the kernel has none. */
struct pp_host_pressure {
	double seconds[PP_HOST_WORDS]; /* CPU_SECONDS is not used */
};
void pp_host_pressure_read(struct pp_host_pressure *ret);

/*
 * canary_gpu.c: are GPUs of the node held back while a run lasts? A process of its own asks NVML:
 * one that hangs is left behind.
 */
struct pp_canary_gpus {
	size_t n;  /* GPUs to ask for */
	pid_t pid; /* 0: there is none */
	int stop, answer;
};
void pp_canary_gpus_start(struct pp_canary_gpus *ret, const struct pp_node *node);
/*
 * Why the run cannot count: a GPU was held back, or whether one was is not known. "" for neither,
 * and where the node has none.
 */
void pp_canary_gpus_end(struct pp_canary_gpus *g, char *ret, size_t size);

/* canary_kmsg.c: the kernel's log from now on; -1: it may not be read. */
int pp_canary_kmsg_open(void);
/* The first Xid since, as the kernel wrote it; "" none. Closes. */
void pp_canary_kmsg_end(int fd, char *ret, size_t size);

/* canary_evidence.c: --evidence into the trial's path. 0 or an exit code after one line. */
int pp_canary_evidence(struct pp_canarying *c);
/* What @run was, and what is proven of it, into the trial's path. */
void pp_canary_path(struct pp_trial *t, const struct pp_nccl_run *run,
		    const struct pp_gate_library *gate);

/* canary_text.c */
void pp_canary_text(struct pp_out *o, const struct pp_trial *t);

#endif
