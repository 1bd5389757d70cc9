/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions on the software device, as its processes tell them: simulated rows for `trace`.
 */
#ifndef PP_CLI_TRACE_SOFT_H
#define PP_CLI_TRACE_SOFT_H

#include "base/arena.h"
#include "trace/table.h"

struct pp_trace_soft {
	struct pp_arena arena; /* owns all of it */
	struct pp_trace_software *item;
	size_t n;
	unsigned int silent; /* processes that did not answer */
	char why[96];	     /* of the last of them */
};

/* -ENOMEM. */
int pp_trace_soft_ask(struct pp_trace_soft *ret);
void pp_trace_soft_done(struct pp_trace_soft *s);

#endif
