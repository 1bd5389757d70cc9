/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace --log: logs read, and compared with what the kernel shows.
 */
#ifndef PP_CLI_TRACE_LOG_H
#define PP_CLI_TRACE_LOG_H

#include "base/out.h"
#include "cli/verb.h"
#include "judge/registration.h"

struct pp_trace_logs {
	struct pp_nccl_feed *feed; /* owned; NULL: no log was given */
	struct pp_log_claims claims;
};

/* 0 or an exit code after one line. */
int pp_trace_logs_read(const struct pp_args *args, struct pp_trace_logs *l);
int pp_trace_logs_judge(const struct pp_args *args, const struct pp_trace_table *t,
			struct pp_trace_logs *l);
void pp_trace_logs_done(struct pp_trace_logs *l);

bool pp_trace_logs_refuted(const struct pp_trace_logs *l);
void pp_trace_logs_show(struct pp_out *o, const struct pp_trace_logs *l);
void pp_trace_logs_write(struct pp_json *j, const char *key, const struct pp_trace_logs *l);

#endif
