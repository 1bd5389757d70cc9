/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coordinator: climbs the ladder on every pair of a party by telling their agents what to do,
 * and writes down what came of it.
 *
 * For each pair: look, choose ends (rails), open each rung that can be, then for every repeat all
 * rungs of one size in turn (interleaved, so that a machine that changes changes all of them),
 * then the next size. Each repeat: fill with its seed, ready, run, check. What fails fails its
 * rung only; a lost peer ends the run, and what was measured stays.
 */
#ifndef PP_BENCH_COORDINATOR_H
#define PP_BENCH_COORDINATOR_H

#include "bench/result.h"
#include "rdma/party.h"

enum { PP_BENCH_SIZES = 40 };

struct pp_bench_options {
	bool rung[PP_RUNGS]; /* asked for; `tcp`, `host`, `dmabuf`, `peermem`, `staged`... */
	bool op[PP_OPERATIONS];
	bool measure[PP_MEASURES];
	uint64_t size[PP_BENCH_SIZES];
	unsigned int n_sizes;
	unsigned int repeats;	       /* of each cell; 0 = 5 */
	pp_ns each;		       /* of one repeat of bandwidth; 0 = 200 ms */
	unsigned int latency_messages; /* of one repeat; 0 = 1000 */
	unsigned int qps, depth;       /* 0 = 1, 128 */
	enum pp_memory_kind
		gpu_memory;	  /* cuda or cuda-vmm; sim where there is no GPU and simulated */
	unsigned int segments;	  /* of cuda-vmm */
	uint64_t inside;	  /* memory begins so far inside its allocation */
	const char *device, *gpu; /* BDF or name, of every node; NULL: the rails */
	unsigned int port;	  /* 0: the first ACTIVE one */
	int gid_index;		  /* -1: chosen */
	unsigned int mtu;
	int traffic_class, sl, pkey_index;
	bool all_rails; /* each alone, then all together; else the first rail */
	enum pp_pattern pattern;
	bool negative, busy_ok, simulate, cm; /* cm: connect by librdmacm (-R) */
	bool second_witness;
	bool no_probes; /* a look at registrations puts none into the kernel */
	uint64_t seed;	/* of payload; 0: drawn */
	bool (*stopped)(void);
	/* Progress: how many of how many cells are done, and the one that runs. May be NULL. */
	void (*progress)(unsigned int done, unsigned int all, const char *what);
};

/* Seconds that a run will take at most, for saying so before it begins. */
double pp_bench_budget(const struct pp_bench_options *options, unsigned int pairs);

/*
 * 0 whatever was measured, also when it ended early (@ret->whole is false then); negative errno
 * only when nothing could begin: no hca (-ENODEV), in use (-EBUSY), no memory.
 */
int pp_bench_run(struct pp_party *party, const struct pp_bench_options *options,
		 struct pp_bench **ret, struct pp_error *err);

#endif
