/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_bench: what a run of `bench` was asked to do and what it measured, whole: the JSON
 * document "peerpath.bench/1" says the same and can be read back.
 *
 *   nodes ── ends ── pairs ── rungs (one way to move bytes between the ends of a pair)
 *                                └── cells (one operation, measure and size) ── samples
 *
 * A rung or cell that was not run says why; nothing is left out silently. Filled by the
 * coordinator, judged by judge/transfer.h, never changed after that. All texts are in @arena.
 *
 * In the document null is unknown; numbers have six significant digits.
 */
#ifndef PP_BENCH_RESULT_H
#define PP_BENCH_RESULT_H

#include <jansson.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/words.h"
#include "bench/traffic.h"
#include "trace/table.h"

/* The ladder, in the order in which it is climbed. */
enum pp_rung {
	PP_RUNG_TCP,	     /* a TCP socket over the rail's netdev: the classic path */
	PP_RUNG_HOST,	     /* host memory over RDMA: the network's baseline */
	PP_RUNG_DMABUF,	     /* GPU memory registered by DMA-BUF; `sim` memory in a simulation */
	PP_RUNG_PEERMEM,     /* GPU memory registered by nvidia-peermem */
	PP_RUNG_DATA_DIRECT, /* GPU memory by the NIC's data-direct function */
	PP_RUNG_STAGED,	     /* GPU memory through page-locked host memory */
	PP_RUNGS
};

enum pp_measure { PP_BANDWIDTH, PP_BIDIRECTIONAL, PP_LATENCY, PP_MEASURES };
enum pp_pattern { PP_PAIRS, PP_RING, PP_ALL_TO_ALL, PP_INCAST };

enum pp_bench_state {
	PP_BENCH_RUN,
	PP_BENCH_SKIPPED,     /* cannot be here, or was not asked for: @why */
	PP_BENCH_FAILED,      /* began and failed: @why, @error, @status */
	PP_BENCH_VOID,	      /* ran, and says nothing: a throttled GPU */
	PP_BENCH_NOT_REACHED, /* the run ended before: interrupted, or a peer was lost */
};

struct pp_bench_node {
	const char *id, *host, *address, *version;
	const char *fingerprint, *topology; /* NULL: unknown */
	const char *busy; /* who used its hca or GPU meanwhile, as --busy-ok lets; NULL nobody */
	bool simulated;
	double arrival_skew; /* us: median of how much later than the first it was ready; NaN */
};

struct pp_bench_end {
	unsigned int node;
	const char *device, *hca; /* mlx5_0; its BDF or virtual/name */
	const char *driver;	  /* the kernel's, of the hca; NULL unknown */
	unsigned int port;
	int gid_index;
	const char *gid, *gid_type, *netdev, *link_layer;
	const char *gpu, *gpu_uuid, *gpu_name; /* BDF...; NULL none */
	const char *distance, *route;	       /* gpu to hca; DESIGN's words; NULL unknown */
	int numa;			       /* of the hca; -1 unknown */
	const char *cpus;		       /* that the agent was pinned to; NULL: not pinned */
	int64_t port_mbps, pci_mbytes, gpu_pci_mbytes; /* hops, -1 unknown; Mb/s, MB/s, MB/s */
	unsigned int mtu;			       /* bytes */
	int traffic_class, priority;		       /* -1 unknown */
	bool simulated;
};

struct pp_bench_attempt { /* of a registration, as struct pp_attempt */
	unsigned int end;
	const char *how, *call, *arguments;
	int error;
	bool cuda;
	pp_ns took;
	int64_t bar1_before, bar1_after;
};

struct pp_bench_negative {
	const char *kind; /* "wrong rkey", "beyond the region", "read without the right" */
	bool run, refused;
	const char *status; /* the completion's, or why not run */
};

/*
 * What a witness outside of the agent saw of its memory, once the rung was open for the first time:
 * one a memory region, and one a process. The agent's own word is in the attempts.
 */
struct pp_bench_sighting {
	const char *surface, *registration, *raw;
	bool sufficient;
};

struct pp_bench_missing { /* a surface that would decide, and how to have it */
	const char *surface, *state, *why, *how;
};

struct pp_bench_evidence {
	unsigned int end;
	enum pp_about about; /* PP_REGISTRATION */
	enum pp_witness witness;
	enum pp_scope scope;	  /* PP_OF_MR, PP_OF_PROCESS */
	const char *registration; /* a word; NULL unknown */
	enum pp_claim state;	  /* that it is registered so */
	bool gpu_memory;
	bool other;	    /* a region with none of the measured memory's keys */
	int64_t of_regions; /* keys that the measured memory has at this end; -1 unknown */
	int64_t pid;	    /* -1 unknown, as in all that follow */
	const char *comm, *hca, *bdf;
	int64_t mrn, lkey, length;
	const char *exporter, *importer;
	int64_t inode; /* of the dma-buf */
	struct pp_bench_sighting *sightings;
	unsigned int n_sightings;
	struct pp_bench_missing *missing;
	unsigned int n_missing;
	const char *why; /* one line */
	bool simulated;
	pp_ns looked;	 /* 0 unknown */
	int64_t took_ns; /* of the look */
};

struct pp_bench_rung {
	enum pp_rung rung;
	enum pp_bench_state state;
	const char *why;  /* NULL when run */
	int error;	  /* errno of the call that failed, positive; 0 none */
	int status;	  /* IBV_WC_* of the completion that failed; 0 none */
	unsigned int end; /* where it failed */
	const char *call; /* that failed; NULL */
	enum pp_memory_kind memory;
	const char *registration, *flush; /* words; NULL: none */
	const char *offset;		  /* "honoured", "not modelled"; NULL: does not matter */
	/*
	 * By which way the software device carried what each end sent, as it was when the rung was
	 * closed: of a GPU's memory "direct", "staged" or "wire", of a host's "same-host" or
	 * "wire"; "mixed": its queue pairs differ. NULL: no software device, or it did not say.
	 */
	const char *link[2];
	bool simulated;
	struct pp_bench_attempt *attempts;
	unsigned int n_attempts;
	struct pp_bench_negative *negatives;
	unsigned int n_negatives;
	struct pp_bench_evidence *evidence;
	unsigned int n_evidence; /* 0: nobody looked */
};

/*
 * Of the expected port, read before and after a cell: each that moved, and each that counts loss
 * (pp_counter_loss()) though it did not. One that is not here could not be read: nothing grows
 * unseen.
 */
struct pp_bench_counter {
	unsigned int end;
	const char *name; /* the kernel's */
	int64_t delta;
};

/* What growth of a counter means; a pass needs each of these seen, and not grown. */
enum pp_loss { PP_LOSS_RETRANSMIT, PP_LOSS_ORDER, PP_LOSS_DISCARD, PP_LOSSES };
/* PP_LOSSES for a counter that tells of no loss (data, pauses, congestion marks). */
enum pp_loss pp_counter_loss(const char *name);
const char *pp_loss_name(enum pp_loss l); /* "retransmit", "out-of-sequence", "discard" */

struct pp_bench_cell {
	enum pp_rung rung;
	enum pp_operation op;
	enum pp_measure measure;
	uint64_t size;
	unsigned int qps, depth;
	bool together; /* all pairs at once; else the pair alone */
	enum pp_bench_state state;
	const char *why;
	int error, status;
	unsigned int end;
	/*
	 * One a repeat, in order of time: MB/s (10^6) of one direction, of both for bidirectional;
	 * latency: the median, in us. Repeats of rungs are interleaved.
	 */
	double *sample;
	unsigned int n_samples;
	double p50, p99, p999;	      /* us, of all messages of all repeats; 0: not measured */
	uint64_t bytes, messages;     /* all repeats together */
	double cpu_seconds_per_gb[2]; /* each end; NaN: not measured */
	uint64_t copies;	      /* staged: copies between GPU and host */
	uint64_t checked, wrong;      /* bytes of payload that were compared */
	uint64_t first_wrong;
	double arrival_skew; /* us between the first and this end's readiness; NaN */
	struct pp_bench_counter *counters;
	unsigned int n_counters;
	int64_t gpu_mhz[2];	 /* lowest SM clock seen; -1 unknown */
	const char *throttle[2]; /* reasons; NULL none, or unknown */
};

struct pp_bench_pair {
	const char *name; /* "a:mlx5_0 - b:mlx5_0" */
	unsigned int rail;
	struct pp_bench_end end[2];
	struct pp_bench_rung rung[PP_RUNGS];
	struct pp_bench_cell *cells;
	unsigned int n_cells;
};

struct pp_bench {
	struct pp_arena *arena; /* owned */
	const char *version;
	pp_ns started, took; /* wall clock; */
	bool simulated;	     /* all of it */
	bool whole;	     /* nothing is PP_BENCH_NOT_REACHED */
	const char *ended;   /* why not whole; NULL */
	enum pp_pattern pattern;
	unsigned int repeats;
	const char *second; /* what perftest said, where asked for; NULL */
	struct pp_bench_node *nodes;
	unsigned int n_nodes;
	struct pp_bench_pair *pairs;
	unsigned int n_pairs;
};

int pp_bench_new(struct pp_bench **ret);
struct pp_bench *pp_bench_free(struct pp_bench *b); /* returns NULL */

/* The members of the document; the caller opens it and writes schema and verdict. */
void pp_bench_write(struct pp_json *j, const struct pp_bench *b);
/*
 * Of one node all that was seen of its memory: "peerpath.evidence/1", each record with "pair" and
 * "rung" besides. How many there are.
 */
unsigned int pp_bench_write_evidence(struct pp_json *j, const struct pp_bench *b,
				     unsigned int node);
/*
 * A document of this or an older peerpath back; it may be a stranger's. -EBADMSG: @err says which
 * member. What may be unknown may be absent, and is unknown then.
 */
int pp_bench_read(const json_t *document, struct pp_bench **ret, struct pp_error *err);

/* A device of the kernel's that is no hardware and not marked: its driver (rdma_rxe); else NULL. */
const char *pp_bench_software(const struct pp_bench_end *e);

const char *pp_rung_name(enum pp_rung r); /* "tcp", "host", "dmabuf", ... */
int pp_rung_parse(const char *text, enum pp_rung *ret);
const char *pp_measure_name(enum pp_measure m); /* "bandwidth", "bidirectional", "latency" */
int pp_measure_parse(const char *text, enum pp_measure *ret);
const char *pp_pattern_name(enum pp_pattern p); /* "pairs", "ring", "all-to-all", "incast" */
int pp_pattern_parse(const char *text, enum pp_pattern *ret);
const char *pp_bench_state_name(enum pp_bench_state s);

#endif
