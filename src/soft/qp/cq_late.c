/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completions that are shown later than they were made: a fault. In the order in which they were
 * made, so the first is always the next that is due.
 */
#include <stdlib.h>

#include "soft/qp/cq.h"

#include "base/banned.h"

struct soft_cq_late_entry {
	struct soft_cq_late_entry *next;
	struct soft_cq *cq;
	pp_ns due;
	struct soft_cqe cqe;
};

bool soft_cq_late_add(struct soft_cq *cq, const struct soft_cqe *cqe)
{
	struct soft_cq_late *late = cq->late;
	struct soft_cq_late_entry *e;

	if (!late->delay)
		return false;
	e = malloc(sizeof(*e));
	if (!e) {
		/* Sooner than it should, but still in its order. */
		(void)soft_cq_late_release(late, INT64_MAX);
		return false;
	}
	e->cq = cq;
	e->cqe = *cqe;
	e->next = NULL;
	e->due = pp_clock_monotonic() + late->delay;
	if (late->last && e->due < late->last->due)
		e->due = late->last->due;
	if (late->last)
		late->last->next = e;
	else
		late->first = e;
	late->last = e;
	return true;
}

pp_ns soft_cq_late_release(struct soft_cq_late *late, pp_ns now)
{
	while (late->first && late->first->due <= now) {
		struct soft_cq_late_entry *e = late->first;

		late->first = e->next;
		if (!late->first)
			late->last = NULL;
		(void)soft_cq_show(e->cq, &e->cqe);
		free(e);
	}
	return late->first ? late->first->due : 0;
}

static void drop_if(struct soft_cq_late *late, const struct soft_cq *cq, uint32_t qp_num)
{
	struct soft_cq_late_entry **at = &late->first, *last = NULL;

	while (*at) {
		struct soft_cq_late_entry *e = *at;

		if (cq && (e->cq != cq || e->cqe.qp_num != qp_num)) {
			last = e;
			at = &e->next;
			continue;
		}
		*at = e->next;
		free(e);
	}
	late->last = last;
}

void soft_cq_late_forget(struct soft_cq_late *late, const struct soft_cq *cq, uint32_t qp_num)
{
	drop_if(late, cq, qp_num);
}

void soft_cq_late_drop(struct soft_cq_late *late)
{
	drop_if(late, NULL, 0);
}
