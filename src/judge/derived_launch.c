/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the first task of a Slurm step ended. srun tells of ends in their order, and then kills what
 * is left, often after a time: only the first end says something about a cause.
 */
#include "judge/derived_measured.h"

#include <string.h>

#include "base/compiler.h"
#include "base/find.h"
#include "base/banned.h"

static const char *const watched[] = {"srun: error:", "job step aborted", "terminating stepid"};

const char *pp_derived_launch_word(unsigned int i)
{
	return i < PP_ARRAY_LEN(watched) ? watched[i] : NULL;
}

/* "srun: error: node2: task 1: Killed", "srun: error: node2: tasks 4-7: Killed" */
void pp_derived_read_launch(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	const char *at = pp_derived_behind(text, len, "srun: "), *end = text + len;
	const char *task = at ? pp_derived_behind(at, (size_t)(end - at), ": task") : NULL;

	if (!at || d->task_ended)
		return;
	if (!task) {
		d->task_ended = pp_derived_behind(at, (size_t)(end - at), "Job step aborted") ||
				pp_derived_behind(at, (size_t)(end - at), "Terminating StepId");
		return;
	}
	d->task_ended = true;
	if (pp_derived_behind(task, (size_t)(end - task), ": Killed"))
		pp_derived_say(d, PP_DERIVED_TASK, line,
			       "peerpath: the first task that srun saw end was killed");
}
