/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_derived: what only several lines together say: two ends that differ, an index that
 * moved, a counter that grew. Each becomes a sentence that rules match like any other line.
 *
 *   peerpath: active MTU differs: 1024 and 4096
 *   peerpath: NCCL version differs: 2.19.3 and 2.20.5
 *   peerpath: GID moved: ::ffff:192.0.2.5 v2 from index 3 to 8
 *   peerpath: receive in priority 0 while sending in priority 3
 *   peerpath: UCX can register this kind of memory (or: can not)
 *   peerpath: counter local_ack_timeout_err grew by 17
 *   peerpath: GPU bandwidth is 0.47 of host bandwidth
 *   peerpath: a large region was refused: 230700000 bytes
 *   peerpath: NCCL_ALGO differs between processes: Ring and Tree
 *   peerpath: the driver knows CUDA 11.0 only, NCCL was built with a later release of it: 11.7
 *   peerpath: nccl-tests ran several times side by side, each process alone
 *   peerpath: the first task that srun saw end was killed
 *   peerpath: ranks wait in different collectives: rank 0 in ALLREDUCE 12, rank 1 in BROADCAST 12
 *   peerpath: lsmod lists no nv_peer_mem
 *   peerpath: ibv_devices lists no device
 *   peerpath: 4 RDMA devices in /sys/class/infiniband and fewer uverbs nodes in /dev/infiniband
 *   peerpath: ulimit -l shows 64 KiB of locked memory
 *   peerpath: an InfiniBand port has a link and no LID
 *   peerpath: show_gids lists link-local GIDs only
 *   peerpath: device node /dev/gdrdrv is there in one place and absent in another
 */
#ifndef PP_JUDGE_DERIVED_H
#define PP_JUDGE_DERIVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PP_DERIVED_GIDS = 64, PP_DERIVED_VERSION = 24, PP_DERIVED_SENTENCE = 160 };
enum { PP_DERIVED_VALUE = 40, PP_DERIVED_PROCESS = 64, PP_DERIVED_SETTINGS = 32 };
enum { PP_DERIVED_PATHS = 8, PP_DERIVED_PATH = 48 };
enum { PP_DERIVED_SENTENCES = 21, PP_DERIVED_COUNTERS = 128, PP_DERIVED_RANKS = 4096 };

struct pp_derived_counter {
	char key[96]; /* what stands before it in its line, and its name */
	int64_t first;
};

struct pp_derived_gid {
	char key[120]; /* device, port, GID, type */
	unsigned int index;
};

/* A collective that timed out. */
struct pp_derived_step {
	char op[24];		    /* empty: none */
	int64_t sequence, elements; /* -1 not said */
};

/* A command of a pasted shell whose answer is being read, and what answers said. */
struct pp_derived_shell {
	unsigned int asks;	     /* 0: no answer is awaited */
	unsigned int listing;	     /* which program was asked */
	char word[32];		     /* that was searched for */
	uint64_t line, last;	     /* of the command; the last one that was read */
	unsigned int devices, nodes; /* in /sys/class/infiniband, in /dev/infiniband */
	unsigned int local_gids;     /* rows of show_gids: link-local, v2, Ethernet */
	char seen[PP_DERIVED_PATHS][PP_DERIVED_PATH]; /* device nodes that ls showed */
	unsigned int n_seen;
	bool listed_nodes, link_up, lid_zero; /* the last two of the port that is being read */
};

/* A variable of NCCL as the first process had it. */
struct pp_derived_setting {
	char value[PP_DERIVED_VALUE], process[PP_DERIVED_PROCESS]; /* value empty: not seen */
};

struct pp_derived {
	int64_t mtu[2];	    /* the first two that differ; 0 none */
	char device[2][32]; /* hca_id that is being read, and that of the first MTU */
	char version[2][PP_DERIVED_VERSION];
	struct pp_derived_gid gids[PP_DERIVED_GIDS];
	unsigned int n_gids;
	int64_t first[2][8], last[2][8]; /* rx, tx by priority: packets; -1 not seen */
	struct pp_derived_counter counters[PP_DERIVED_COUNTERS];
	unsigned int n_counters;
	bool gpu_test;		     /* the perftest run that is being read uses GPU memory */
	bool in_table;		     /* of its results */
	int64_t bytes[2];	     /* host, GPU: size of the last row; 0 none */
	double average[2];	     /* its average bandwidth, in whatever unit the table has */
	struct pp_derived_step step; /* of the first rank that timed out */
	int64_t step_rank;
	struct pp_derived_shell shell;
	struct pp_derived_setting settings[PP_DERIVED_SETTINGS];
	int64_t driver, built;	 /* CUDA of the driver, of NCCL: 1107 is 11.7; 0 not seen */
	unsigned int tests_open; /* headers of nccl-tests since the last results or failure */
	uint64_t tests_line;	 /* of the last */
	bool tests_listed;	 /* its ranks have been listed */
	bool task_ended;	 /* srun told of an end, or of ending the rest */
	uint64_t waiting[PP_DERIVED_RANKS / 64]; /* bits of the ranks that did */
	uint64_t line[PP_DERIVED_SENTENCES];	 /* of each: the line that completed it; 0 none */
	char sentence[PP_DERIVED_SENTENCES][PP_DERIVED_SENTENCE];
};

void pp_derived_init(struct pp_derived *d);

/* Words of which one stands in every line that matters; NULL past the last. */
const char *pp_derived_word(unsigned int i);
void pp_derived_read(struct pp_derived *d, const char *text, size_t len, uint64_t line);
/* The text is over: what only its end completes. */
void pp_derived_end(struct pp_derived *d);

/* Sentence @i of PP_DERIVED_SENTENCES and the line that completed it; NULL when it does not hold.
 */
const char *pp_derived_sentence(const struct pp_derived *d, unsigned int i, uint64_t *ret_line);

#endif
