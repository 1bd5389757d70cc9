/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job's logs -> one judgement, in the project's words.
 *
 * claim_gdr is the claim "large messages between hosts went between NIC and GPU memory". Proof
 * needs every end of every connection, and lines that only a job prints that came to its end: no
 * absence of a line counts for anything, so a job that failed stays unproven without the lines
 * that say so.
 */
#ifndef PP_NCCL_JUDGE_H
#define PP_NCCL_JUDGE_H

#include "nccl/error.h"
#include "nccl/group.h"

enum pp_nccl_path {
	PP_NCCL_PATH_UNDETERMINED,
	PP_NCCL_PATH_GDR,
	PP_NCCL_PATH_STAGED,
	PP_NCCL_PATH_SOCKET,
	PP_NCCL_PATH_NVLINK,
	PP_NCCL_PATH_MIXED,
};

enum pp_nccl_mechanism {
	PP_NCCL_MECHANISM_UNDETERMINED,
	PP_NCCL_MECHANISM_DMABUF,
	PP_NCCL_MECHANISM_PEERMEM,
	PP_NCCL_MECHANISM_FAILED,
	PP_NCCL_MECHANISM_NONE,
};

/* In order of strength. */
enum pp_nccl_claim { PP_NCCL_REFUTED, PP_NCCL_UNPROVEN, PP_NCCL_PROVEN };

enum pp_nccl_coverage {
	PP_NCCL_COVER_NONE, /* no line of NCCL at all */
	PP_NCCL_COVER_EXCERPT,
	PP_NCCL_COVER_ONE,
	PP_NCCL_COVER_SOME,
	PP_NCCL_COVER_ALL,
};

enum { PP_NCCL_MAX_WHY = 24 };

struct pp_nccl_why {
	char text[PP_NCCL_TEXT];
	struct pp_nccl_place
		place; /* of what is missing: the line that promises it; file NONE: none */
};

struct pp_nccl_ends { /* ends of connections between hosts, by what carries them */
	uint32_t gdr, staged, socket, nvlink;
	uint32_t gdr_sends, staged_sends; /* of these: at the sending side */
	uint32_t within;		  /* connections inside a host, of any kind */
	uint32_t unpaired, ambiguous, unknown_hosts;
	uint32_t ll;	      /* of gdr: owned by a process limited to the protocol LL */
	uint32_t unknown_net; /* of gdr: of networks that may run over something else than RDMA */
	/* communicators between hosts: without a number of channels; with channels of which not
	 * every host both sends and receives */
	uint32_t unknown_width, narrow;
	struct pp_nccl_place gdr_at, staged_at, socket_at, nvlink_at, unpaired_at, within_at,
		unknown_net_at;
};

struct pp_nccl_judgement {
	enum pp_nccl_path path, expected_path;
	enum pp_nccl_mechanism mechanism;
	enum pp_nccl_claim claim_gdr, claim_mechanism;
	enum pp_nccl_coverage coverage;
	uint64_t ranks, ranks_seen; /* of the communicators that span hosts, or of all */
	char missing[128];	    /* "1, 8-15", "" for none */
	char version[64];	    /* "2.28.9", ">=2.24", "2.18-2.22", "unknown" */
	bool version_by_format;	    /* the text says something else, or nothing */
	bool simulated;
	uint32_t root; /* index of the error, PP_NCCL_NONE */
	struct pp_nccl_ends ends;
	struct pp_nccl_why why[PP_NCCL_MAX_WHY];
	uint32_t n_why;
	char next[400]; /* what to run to get further, "" for nothing */
};

/* -ENOMEM, or 0. */
int pp_nccl_judge(struct pp_nccl_job *job, struct pp_nccl_group *group,
		  struct pp_nccl_judgement *ret);

bool pp_nccl_is_tcp(const struct pp_nccl_job *job, uint32_t network);

const char *pp_nccl_path_name(enum pp_nccl_path p);
const char *pp_nccl_mechanism_name(enum pp_nccl_mechanism m);
const char *pp_nccl_claim_name(enum pp_nccl_claim c);
const char *pp_nccl_coverage_name(enum pp_nccl_coverage c);

#endif
