/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_perf: collectives timed and checked by every rank of a party, and what came of it.
 *
 * For each size as nccl-tests does it (2.19.6): operations back to back, out of place and then in
 * place, the time the mean of the ranks'; then one whose result every rank compares with what it
 * must be, over the whole buffer, its target poisoned before. Besides, out of place, operations one
 * at a time: how long each took at its slowest rank, and how much later than the first each rank
 * entered it. Clocks of hosts are compared by exchanges over the control channel, before and after
 * all sizes; the error that this leaves is told. Ranks of one kernel have one clock.
 */
#ifndef PP_NCCL_PERF_H
#define PP_NCCL_PERF_H

#include "base/arena.h"
#include "base/json.h"
#include "base/words.h"
#include "nccl/collective.h"
#include "rdma/party.h"

enum { PP_PERF_SIZES = 1024, PP_PERF_RANKS = 1024, PP_PERF_SAMPLES = 1000 };

struct pp_perf_options {
	enum pp_collective collective[PP_COLLECTIVES];
	unsigned int n_collectives;
	uint64_t *size; /* bytes; borrowed, n_sizes of them */
	unsigned int n_sizes;
	bool may_shrink; /* leave out the largest sizes that no GPU's memory holds */
	enum pp_element element;
	enum pp_reduction reduction;
	unsigned int warmups, iterations, aggregate;
	unsigned int checks; /* of each size and place; 0: nothing is verified */
	bool one_gpu;	     /* all ranks of a host on one GPU */
	bool apart;	     /* each rank gets a NCCL_HOSTID of its own */
	bool busy_ok;	     /* though others use a GPU */
	bool vmm;	     /* buffers by cuMemCreate */
	const char *gpu;     /* BDF: with one_gpu, or of a single rank; NULL */
	const char *library; /* NULL: what the job would load */
	pp_ns limit;	     /* of one measurement, or of making the communicator */
	pp_ns deadline;	     /* of everything, from now; 0: none */
	bool (*stopped)(void);
};

struct pp_perf_rank_info {
	char node[64], host[256];
	int64_t pid, device, mps,
		users; /* users: others' contexts before; mps, users -1: unknown */
	const char *gpu, *gpu_name, *library, *library_by, *library_other, *hostid; /* arena */
	unsigned int major, minor, patch;
	int number;
	bool same_clock;  /* one kernel's with the coordinator's */
	double offset_ns; /* of its clock to the coordinator's */
	double error_ns;  /* that this may be wrong by */
};

enum { PP_PERF_OUT_OF_PLACE, PP_PERF_IN_PLACE, PP_PERF_PLACES };

struct pp_perf_place {
	bool measured, verified;	    /* verified: right or wrong is known */
	double time_us, alg_gbps, bus_gbps; /* GB/s: 10^9 bytes */
	uint64_t wrong, checked;	    /* elements, over all ranks and checks */
	int wrong_rank;			    /* the first that found one; -1 */
	uint64_t wrong_at;		    /* element of it */
	double cpu_s_per_gb; /* processor time of all ranks for 10^9 bytes of `size` */
};

struct pp_perf_skew {
	double p50_us, max_us;
};

struct pp_perf_row {
	struct pp_collective_shape shape;
	struct pp_perf_place place[PP_PERF_PLACES];
	unsigned int samples; /* 0: none was taken */
	double p50_us, p99_us;
	struct pp_perf_skew *skew; /* of each rank; in the arena; NULL */
};

struct pp_perf_run { /* of one collective */
	enum pp_collective collective;
	struct pp_perf_row *row; /* arena */
	unsigned int n;
	uint64_t out_of_bounds; /* checks with wrong elements */
	double average_bus_gbps;
};

struct pp_perf {
	struct pp_arena arena;
	pp_ns started;			/* wall clock */
	struct pp_perf_options options; /* as they were, with what was shrunk */
	struct pp_perf_rank_info *rank;
	unsigned int n_ranks;
	struct pp_perf_run run[PP_COLLECTIVES];
	unsigned int n_runs;
	const char *launched_by; /* NULL: started here */
	const char *ended;	 /* why it ended early; NULL: it did not */
	const char *shrunk;	 /* what was left out and why; NULL */
	bool interrupted, began; /* began: ranks had their communicators, or were making them */
	bool simulated;		 /* NCCL of a rank has loaded the software RDMA device */
	enum pp_verdict verdict; /* of the results; simulated ones prove nothing */
};

/* What a run tells while it goes on; members may be NULL. */
struct pp_perf_watch {
	void (*begin)(void *arg, const struct pp_perf *p, const struct pp_perf_run *r);
	void (*row)(void *arg, const struct pp_perf *p, const struct pp_perf_row *row);
	void (*end)(void *arg, const struct pp_perf *p, const struct pp_perf_run *r);
	/* What NCCL of a rank has printed: whole lines. */
	void (*log)(void *arg, unsigned int rank, const char *text);
	void *arg;
};

/*
 * 0 whatever came of it, also when it ended early; negative errno when nothing could begin: no NCCL
 * (-ENOENT), no GPU (-ENODEV), -EBUSY, -ENOMEM...: one line in @err.
 */
int pp_perf_run(struct pp_party *party, const struct pp_perf_options *options,
		const struct pp_perf_watch *watch, struct pp_perf **ret, struct pp_error *err);
struct pp_perf *pp_perf_free(struct pp_perf *p); /* returns NULL */

/* The members of "peerpath.nccl_perf/1" behind its schema. */
void pp_perf_write(struct pp_json *j, const struct pp_perf *p);

#endif
