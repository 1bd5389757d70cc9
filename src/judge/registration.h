/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What logs say of registrations, against what the kernel shows. A line that says what could be
 * (a GPU that can export, an hca that peers) is recorded and counts for nothing. One that says what
 * is done is agreed with, refuted, or left open; the kernel is believed.
 */
#ifndef PP_JUDGE_REGISTRATION_H
#define PP_JUDGE_REGISTRATION_H

#include "nccl/feed.h"
#include "trace/verdict.h"

enum pp_log_state { PP_LOG_RECORDED, PP_LOG_AGREES, PP_LOG_OPEN, PP_LOG_REFUTED };

struct pp_log_claim {
	enum pp_log_state state;
	enum pp_about about;
	pid_t pid;	/* 0: of no process of its own */
	char text[200]; /* what the log says */
	char file[200]; /* "" none */
	uint32_t line;
	char why[240];
};

enum { PP_LOG_CLAIMS = 64, PP_LOG_LINES = 16 };

struct pp_log_claims {
	struct pp_log_claim item[PP_LOG_CLAIMS];
	unsigned int n;
	uint64_t more;	    /* that found no room, none of them refuted */
	unsigned int of[8]; /* lines of each phrase so far */
};

const char *pp_log_state_name(enum pp_log_state s);

/* One line of any log: phrases that state a capability, or what a program does. */
void pp_log_line(struct pp_log_claims *c, const char *file, uint32_t number, const char *text,
		 size_t len);
/* Phrases of programs that say what they do, against the node. After the last line. */
void pp_log_judge_lines(struct pp_log_claims *c, const struct pp_trace_table *t);
/* The same of an NCCL job's processes of @host ("" any), and of the mechanism that it shows. */
void pp_log_judge_nccl(struct pp_log_claims *c, const struct pp_trace_table *t,
		       const struct pp_nccl_job *job, const struct pp_nccl_judgement *j,
		       const char *host);

bool pp_log_refuted(const struct pp_log_claims *c);
/* Array of evidence records: {"about", "witness": "log", "state", "raw", ...}. */
void pp_log_write(struct pp_json *j, const char *key, const struct pp_log_claims *c);

#endif
