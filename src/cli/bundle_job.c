/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bundle_job.h"

#include <errno.h>
#include <stdlib.h>

#include "judge/control.h"
#include "base/banned.h"

int pp_bundle_job_read(const char *text, size_t len, struct pp_gate_library **ret,
		       struct pp_error *err)
{
	struct pp_nccl_runs *runs = calloc(1, sizeof(*runs));
	struct pp_gate_library *g = calloc(1, sizeof(*g));
	int r = runs && g ? pp_nccl_runs_read(text, len, runs, err)
			  : pp_error_set(err, -ENOMEM, "out of memory");

	if (!r) {
		r = pp_gate_library_judge((const struct pp_nccl_run *const *)runs->arm, g, err);
		pp_nccl_runs_done(runs);
	}
	free(runs);
	if (r)
		free(g);
	else
		*ret = g;
	return r;
}

bool pp_bundle_job_simulated(const struct pp_gate_library *g)
{
	return g->simulated;
}
