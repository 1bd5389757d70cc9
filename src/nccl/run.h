/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_nccl_run: one run of a job under observation, as all its nodes saw it. A job that is
 * examined runs several times, each an arm: first the user's own environment, unchanged but for
 * logging; then the controls (judge/control.h), which differ in the settings named and in nothing
 * else.
 *
 * What is not known is said by `known` or a why, and is never 0. Nothing here judges the arm: the
 * logs have been judged (judge.h), and the rest is counted.
 */
#ifndef PP_NCCL_RUN_H
#define PP_NCCL_RUN_H

#include <jansson.h>

#include "base/clock.h"
#include "base/error.h"
#include "nccl/judge.h"
#include "nccl/observation.h"
#include "trace/traffic.h"

enum {
	PP_NCCL_RUN_NODES = 1024,
	PP_NCCL_RUN_SETTINGS = 256,
	PP_NCCL_RUN_LOG = 64 << 20, /* bytes of logs of a node that are kept; the rest is counted */
};

/* The letters are those of the controls. */
enum pp_nccl_arm {
	PP_NCCL_ARM_UNCHANGED,
	PP_NCCL_ARM_A,	    /* GDR off by level */
	PP_NCCL_ARM_B,	    /* DMA-BUF off */
	PP_NCCL_ARM_C,	    /* GDR read off: the sending side alone */
	PP_NCCL_ARM_PINNED, /* NCCL_NET named: another job than the user's */
	PP_NCCL_ARMS
};
/* "unchanged", "A", "B", "C", "pinned" */
const char *pp_nccl_arm_name(enum pp_nccl_arm a);
/* -EINVAL */
int pp_nccl_arm_parse(const char *text, enum pp_nccl_arm *ret);
/* "the user's environment", "GDR off by level (A)", ... for a person. */
const char *pp_nccl_arm_title(enum pp_nccl_arm a);

enum pp_nccl_origin {
	PP_NCCL_FROM_USER,    /* the environment that we were started with */
	PP_NCCL_FROM_CONF,    /* ~/.nccl.conf or /etc/nccl.conf of a node */
	PP_NCCL_FROM_LOGGING, /* added so that the needed lines exist */
	PP_NCCL_FROM_ARM,     /* what makes this arm */
};

/* Is it there for the hca to use: a peer-memory client, while the job ran. */
enum pp_nccl_presence { PP_NCCL_PRESENCE_UNKNOWN, PP_NCCL_ABSENT, PP_NCCL_PRESENT };

struct pp_nccl_run_setting {
	char name[64];
	char value[256];
	char was[256];	/* what the user had; "" nothing */
	char why[200];	/* ARM, LOGGING: the observation that it answers; else "" */
	char undo[128]; /* ARM, LOGGING: how to do without: "unset NCCL_DEBUG" */
	enum pp_nccl_origin from;
	uint32_t nodes; /* that have it with this value */
};

/* A process of the job, as its node's kernel and the observer saw it; sums over a node. */
struct pp_nccl_run_registered {
	uint64_t made[PP_OBSERVED_WAYS]; /* regions by enum pp_registration */
	uint64_t gpu_unknown;		 /* GPU memory, by which way is not known */
	char why[200];			 /* nothing known: why; else "" */
};

struct pp_nccl_run_node {
	char id[64], host[256];
	uint32_t ranks; /* processes of the command that loaded NCCL; 0 not known */
	int status;	/* as waitpid(2), of the first that did not end well; else 0 */
	bool timed_out, interrupted;
	char died[200];	    /* what a person should know of its end; "" */
	double cpu_seconds; /* user and system, of all processes of the command; 0 not known */
	struct pp_traffic traffic; /* over the run; known parts only */
	/* Hcas that are a GPU's rail: "mlx5_0", "mlx5_0,mlx5_3"; "" none is known. Of the first
	 * its ACTIVE port. */
	char expected_hca[512];
	unsigned int expected_port;
	struct pp_nccl_run_registered library; /* by the observer */
	struct pp_nccl_run_registered kernel;  /* by trace, looked at while it ran */
	bool peermem_known, peermem_moved; /* its counters, or its reference count, in the run */
	enum pp_nccl_presence peermem;
	char mapped[256];	     /* the libnccl that its processes had mapped; "" not known */
	uint32_t n_mapped;	     /* different ones mapped by its processes; 0 not known */
	struct pp_observed observed; /* sums over its processes */
	bool was_observed;
	uint64_t log_bytes, log_dropped;
	bool simulated; /* any of it */
};

/* Of a table of sizes, nccl-tests' or ours. */
struct pp_nccl_run_speed {
	bool known;
	char collective[32];
	uint64_t large_bytes, small_bytes;
	double large_busbw_gbps; /* GB/s (10^9 bytes) of the largest size, out of place */
	double small_us;	 /* time of the smallest size */
	/* bytes of the size column, summed over calls: all rows, in and out of place, iterations;
	 * warm-up may lack. 0 not known. What the hcas must at least have carried follows from it
	 */
	uint64_t payload_bytes;
	uint64_t wrong, unchecked; /* rows */
};

struct pp_nccl_run {
	enum pp_nccl_arm arm;
	pp_ns started, took; /* wall clock; 0 not known */
	char command[1024];
	char library[256], library_version[32]; /* that the processes had mapped; "" not known */
	struct pp_nccl_run_setting setting[PP_NCCL_RUN_SETTINGS];
	uint32_t n_settings;
	struct pp_nccl_run_node *node; /* owned, n_nodes */
	uint32_t n_nodes, missing;     /* missing: nodes that gave no report */
	char missing_why[256];
	struct pp_nccl_judgement judgement;
	char networks[256];   /* names of what carried connections between hosts: "IB", "Socket" */
	char in_network[128]; /* COLLNET, NVLS, SHARP that the logs show; "" none */
	char root_error[400]; /* the first cause of a failed job, with what `explain` says; "" */
	struct pp_nccl_run_speed speed;
	bool simulated;
};

/* Is @hca one of those that the node's rails are? */
bool pp_nccl_run_expects(const struct pp_nccl_run_node *n, const char *hca);

/* -ENOMEM; of nodes there is room for @nodes (may be 0), n_nodes is that. */
int pp_nccl_run_new(enum pp_nccl_arm arm, uint32_t nodes, struct pp_nccl_run **ret);
void pp_nccl_run_done(struct pp_nccl_run *r);
struct pp_nccl_run *pp_nccl_run_free(struct pp_nccl_run *r); /* returns NULL */

/*
 * An object of member "runs" of "peerpath.nccl_run/1"; all of the run but the places of lines in
 * logs, which mean nothing without them. Numbers saturate where readers of JSON end.
 */
void pp_nccl_run_write(struct pp_json *j, const char *key, const struct pp_nccl_run *r);
/*
 * -EBADMSG, -ENOMEM, and one line in @err. Texts are cut to their room and cleaned; what an older
 * peerpath did not write is unknown. pp_nccl_run_free() frees.
 */
int pp_nccl_run_read(const json_t *object, struct pp_nccl_run **ret, struct pp_error *err);

/* The runs of one document, by arm; NULL: has none of it. */
struct pp_nccl_runs {
	struct pp_nccl_run *arm[PP_NCCL_ARMS]; /* owned */
};
/* As pp_nccl_run_read(); -ENOTSUP: of a schema that this version does not know. */
int pp_nccl_runs_read(const char *text, size_t len, struct pp_nccl_runs *ret, struct pp_error *err);
void pp_nccl_runs_done(struct pp_nccl_runs *r);
/* A whole document of them: what pp_nccl_runs_read() reads. */
void pp_nccl_runs_write(struct pp_json *j, const struct pp_nccl_runs *runs);

#endif
