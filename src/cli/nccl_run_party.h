/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_nccl_ranks: `nccl run` as several processes of one launch. Each runs the command as its
 * own child; rank 0 has the others' reports and logs, and judges.
 *
 *   rank 0                         rank i
 *   party ──── channel ─────────── keeper (a child, serves the party)
 *                                    └── agent: reads DIR, which the rank's own process fills
 *
 * DIR/go: begin; says whether this process looks at the whole node. DIR/report.json: it is over.
 */
#ifndef PP_CLI_NCCL_RUN_PARTY_H
#define PP_CLI_NCCL_RUN_PARTY_H

#include "nccl/run.h"
#include "rdma/party.h"
#include "rdma/token.h"

struct pp_nccl_running;

struct pp_nccl_ranks {
	struct pp_launch launch; /* size at most 1: not launched */
	char token[PP_TOKEN_MOST + 1];
	struct pp_party *party;	     /* rank 0; owned */
	struct pp_channel **channel; /* rank 0: of each other's agent; owned */
	pid_t keeper;		     /* the others; 0: has ended */
	bool wide;		     /* this process looks at the whole node */
};

bool pp_nccl_ranks_many(const struct pp_nccl_ranks *r);
/* Reads what a launcher says, and the token. An exit code after one line. */
int pp_nccl_ranks_read(struct pp_nccl_running *c);
/* Returns when all have come, and this one may begin. An exit code after one line. */
int pp_nccl_ranks_join(struct pp_nccl_running *c, const char *dir);
/* Rank 0: the others' reports into @r, their logs into DIR/others. */
int pp_nccl_ranks_collect(struct pp_nccl_running *c, const char *dir, struct pp_nccl_run *r);
/* The others: hands over what is in @r and @dir; returns when rank 0 has it, or is gone. */
int pp_nccl_ranks_report(struct pp_nccl_running *c, const char *dir, const struct pp_nccl_run *r);
void pp_nccl_ranks_leave(struct pp_nccl_running *c);

/* nccl_run_agent.c: a struct pp_party_service's agent. */
struct pp_nccl_agent {
	const char *dir;
	pid_t owner; /* that fills it */
};
int pp_nccl_agent_serve(struct pp_channel *c, const void *arg);

#define PP_NCCL_GO     "go"
#define PP_NCCL_REPORT "report.json"
#define PP_NCCL_OTHERS "others"

#endif
