/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers of others than queue pairs: few, and seldom set; a list.
 */
#include "soft/engine/parts.h"

#include "base/banned.h"

void soft_engine_timer_set(struct soft_engine *e, struct soft_engine_timer *t, pp_ns at)
{
	if (!t->at) {
		t->next = e->timers;
		e->timers = t;
	}
	t->at = at;
	if (!e->next_deadline || at < e->next_deadline)
		e->next_deadline = at;
}

void soft_engine_timer_cancel(struct soft_engine *e, struct soft_engine_timer *t)
{
	struct soft_engine_timer **at = &e->timers;

	if (!t->at)
		return;
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	t->at = 0;
}

static struct soft_engine_timer *take_expired(struct soft_engine *e, pp_ns now)
{
	for (struct soft_engine_timer *t = e->timers; t; t = t->next) {
		if (t->at <= now) {
			soft_engine_timer_cancel(e, t);
			return t;
		}
	}
	return NULL;
}

void soft_engine_timers_run(struct soft_engine *e, pp_ns now)
{
	struct soft_engine_timer *t;

	while ((t = take_expired(e, now)) != NULL)
		t->expired(t);
	for (t = e->timers; t; t = t->next)
		if (!e->next_deadline || t->at < e->next_deadline)
			e->next_deadline = t->at;
}
