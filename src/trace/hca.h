/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcas as the join needs them: name, function, driver, uverbs device, by /sys/class/infiniband.
 */
#ifndef PP_TRACE_HCA_H
#define PP_TRACE_HCA_H

#include "base/arena.h"
#include "node/source.h"
#include "trace/table.h"

enum { PP_TRACE_HCAS_MAX = 1024 };

struct pp_trace_hcas {
	struct pp_arena arena; /* owns all of it */
	struct pp_trace_hca *item;
	size_t n;
};

/* -ENOMEM; what cannot be read is "". */
int pp_trace_hcas_read(struct pp_source *s, struct pp_trace_hcas *ret);
void pp_trace_hcas_done(struct pp_trace_hcas *h);

#endif
