/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a command has written about itself: NCCL's logs, the copies of its standard output
 * and error, what the observer saw. They lie in one private directory:
 *
 *   DIR/nccl.HOST.PID.log   DIR/std{out,err}{,.1,.2}   DIR/observed/HOST-PID.jsonl
 */
#ifndef PP_NCCL_RUN_LOGS_H
#define PP_NCCL_RUN_LOGS_H

#include "nccl/feed.h"
#include "nccl/run.h"

#define PP_NCCL_LOG_PATTERN  "nccl.%h.%p.log"
#define PP_NCCL_LOG_OBSERVED "observed"
#define PP_NCCL_LOG_STDOUT   "stdout"
#define PP_NCCL_LOG_STDERR   "stderr"

/* Takes pieces of logs. @name begins a new one; @bytes NULL then. */
typedef void pp_nccl_log_fn(void *ctx, const char *name, const char *bytes, size_t len);

struct pp_nccl_log_count {
	uint64_t bytes, dropped; /* handed on; beyond the bound */
	uint32_t files;		 /* of NCCL */
};

/*
 * Hands on what NCCL and the command wrote, at most @most bytes: of a file that is too long its
 * beginning and its end. As opendir(3); what cannot be read counts as dropped.
 */
int pp_nccl_logs_read(const char *dir, uint64_t most, pp_nccl_log_fn *fn, void *ctx,
		      struct pp_nccl_log_count *ret);

/* For pp_nccl_logs_read(): pushes into a struct pp_nccl_feed. */
void pp_nccl_log_to_feed(void *feed, const char *name, const char *bytes, size_t len);

/*
 * Copies NCCL's logs to where @pattern (the user's NCCL_DEBUG_FILE) says. How many files could not
 * be written; @err says of one of them why.
 */
unsigned int pp_nccl_logs_return(const char *dir, const char *pattern, struct pp_error *err);

/*
 * Copies all that is in @dir to @to/@arm, which is made. Negative errno, and a line in @err.
 */
int pp_nccl_logs_keep(const char *dir, const char *to, const char *arm, struct pp_error *err);

/* What the observer saw, added up: @n->observed, @n->library, @n->was_observed. */
void pp_nccl_logs_observed(const char *dir, struct pp_nccl_run_node *n);

#endif
