/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of one communicator brought together from all processes, and each connection put
 * between two hosts.
 */
#ifndef PP_NCCL_GROUP_H
#define PP_NCCL_GROUP_H

#include "nccl/job.h"

enum pp_nccl_crossing {
	PP_NCCL_WITHIN,
	PP_NCCL_BETWEEN,
	PP_NCCL_CROSSING_UNKNOWN,  /* taken to cross: NET inside a host is rare */
	PP_NCCL_CROSSING_DOUBTFUL, /* one name, which two hosts may share: taken to be within */
};

struct pp_nccl_comm {
	struct {
		uint64_t id;	  /* commId, or 0 */
		uint32_t n_ranks; /* 0: connections without any communicator */
		uint32_t ordinal; /* tells those without an id apart */
	} key;
	uint32_t n_nodes;  /* 0 unknown */
	uint32_t seen;	   /* ranks whose own lines are here */
	uint32_t hosts;	   /* of those */
	uint32_t channels; /* of rings and trees, 0 unknown */
	bool mnnvl, failed_rings;
	bool guessed; /* put together by order only, or two claim one rank */
	struct pp_nccl_place place, rings;
};

struct pp_nccl_seat { /* one rank of a communicator */
	struct {
		uint32_t comm, rank;
	} key;
	uint32_t process, host; /* PP_NCCL_NONE: not seen */
	uint64_t pointer;	/* of its communicator, 0 unknown */
	uint32_t local_ranks;
	bool connected; /* has a connection line of its own */
};

struct pp_nccl_group {
	struct pp_nccl_table comms, seats;
	uint32_t *comm_of_end; /* by index of the job's ends */
	bool failed;	       /* out of memory */
};

int pp_nccl_group_make(struct pp_nccl_job *job, struct pp_nccl_group *ret);
void pp_nccl_group_done(struct pp_nccl_group *g);

/* Host of a rank by name id, PP_NCCL_NONE when its lines are not here. */
uint32_t pp_nccl_group_host(const struct pp_nccl_group *g, uint32_t comm, uint32_t rank);
enum pp_nccl_crossing pp_nccl_group_crossing(const struct pp_nccl_group *g, uint32_t comm,
					     const struct pp_nccl_end *e);
/* It is known to span hosts / to be within one. */
bool pp_nccl_spans_hosts(const struct pp_nccl_comm *c);
bool pp_nccl_one_host(const struct pp_nccl_comm *c);
/* NULL for PP_NCCL_NONE. */
const struct pp_nccl_comm *pp_nccl_group_comm(const struct pp_nccl_group *g, uint32_t i);

#endif
