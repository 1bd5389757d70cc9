/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions on the software device, as its processes tell them: simulated rows for `trace`.
 */
#ifndef PP_CLI_TRACE_SOFT_H
#define PP_CLI_TRACE_SOFT_H

#include "trace/evidence.h"

/* -ENOMEM. */
int pp_trace_soft_ask(struct pp_trace_registry *ret);
/* As struct pp_agent_options' link. */
const char *pp_trace_soft_link(pid_t pid);
void pp_trace_soft_done(struct pp_trace_registry *s);

#endif
