/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_trial: what one `peerpath canary` found: one workload, run several times on one set of
 * nodes in one state. Two of them, or two sets, make a comparison (judge/comparison.h).
 *
 * A run that throttled, failed, lacked a metric or saw its clock jump is void: it is kept, shown,
 * and counts for nothing.
 */
#ifndef PP_JUDGE_TRIAL_H
#define PP_JUDGE_TRIAL_H

#include "base/json.h"
#include "judge/canary.h"
#include "judge/metric.h"

enum {
	PP_TRIAL_NODES = 1024,
	PP_TRIAL_FACTS = 32,
	PP_TRIAL_RUNS = PP_CANARY_REPEATS,
	PP_TRIAL_BYTES = 32 << 20, /* of its document */
};

/* What must be alike, or be declared. value NULL: not known. */
struct pp_trial_fact {
	const char *key, *value; /* "kernel.release", "6.1.0-18-amd64"; firmware: all of a node's */
};

struct pp_trial_node {
	const char *id;		    /* the host's short name */
	const char *topology_class; /* NULL: not known */
	bool simulated;
	struct pp_trial_fact fact[PP_TRIAL_FACTS];
	size_t n_facts;
};

/* Which way the bytes went, in the project's words, and how far that is proven. */
struct pp_trial_path {
	const char *path;      /* "gdr", "host-staged", "socket", ...; NULL: not looked at */
	const char *mechanism; /* "dmabuf", ... */
	const char *claim;     /* "proven", "unproven", "refuted" */
	const char *claim_mechanism;
	const char *why; /* NULL, or what is missing */
};

struct pp_trial_run {
	pp_ns started, took;		 /* wall clock; monotonic */
	const char *void_why;		 /* NULL: it counts */
	double value[PP_CANARY_METRICS]; /* NaN: none */
};

struct pp_trial {
	const char *file; /* where it was read from; NULL */
	bool simulated;
	struct pp_canary canary; /* as declared; its strings are the trial's when read */
	struct pp_trial_node *node;
	size_t n_nodes;
	struct pp_trial_path path;
	struct pp_trial_run *run;
	size_t n_runs;
	struct pp_arena arena; /* node, run and strings */
};

/* How many runs count. */
size_t pp_trial_valid(const struct pp_trial *t);

/* Members of `peerpath.canary/1`, inside an object that is open. */
void pp_trial_write(struct pp_json *j, const struct pp_trial *t);
/*
 * One document. @name is used in messages and kept. -EBADMSG: no such document; -EPROTONOSUPPORT:
 * a newer one; -EFBIG, -ENOMEM. pp_trial_done().
 */
int pp_trial_read(const char *name, const char *text, size_t len, struct pp_trial *ret,
		  struct pp_error *err);
void pp_trial_done(struct pp_trial *t);

#endif
