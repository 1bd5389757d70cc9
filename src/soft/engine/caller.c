/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress made by the application's own threads, and how they leave it to the engine's.
 */
#include "soft/engine/parts.h"

#include <sched.h>

#include "base/banned.h"

static const pp_ns REPLY_SOON = 100000;

/*
 * A caller leaves, and may not come again. The thread sleeps by the deadline that it knew, which
 * was @deadline, and on the sockets; what stopped for its budget (@more) waits for neither.
 */
void soft_engine_hand_over(struct soft_engine *e, pp_ns deadline, bool more)
{
	bool earlier = e->next_deadline && (!deadline || e->next_deadline < deadline);

	if ((more || earlier) && atomic_load(&e->mode) == SOFT_THREAD_WATCH)
		soft_engine_thread_wake(e);
}

/* A caller was here from @from to @to: is it in a loop? */
static void note_caller(struct soft_engine *e, pp_ns from, pp_ns to)
{
	e->streak = from - e->polled < SOFT_POLL_GAP ? e->streak + 1 : 0;
	e->polled = to;
}

void soft_engine_kick(struct soft_engine *e, struct soft_qp *qp)
{
	pp_ns before = e->next_deadline, now = pp_clock_monotonic();
	bool more;

	if (qp->asked && now - qp->asked < REPLY_SOON && qp->replies < SOFT_REPLIES)
		qp->replies++;
	qp->asked = 0;
	soft_engine_ready(e, qp);
	e->called = true;
	more = soft_engine_send_ready(e, now);
	e->called = false;
	note_caller(e, now, pp_clock_monotonic());
	soft_engine_hand_over(e, before, more);
}

/*
 * Where processors are few, whom a caller waits for may be waiting for this one: in vain he would
 * poll until his slice is over. The time away is no gap between his polls.
 */
static bool give_way(struct soft_engine *e)
{
	if (e->processors ||
	    atomic_load_explicit(&e->vain, memory_order_relaxed) < SOFT_POLLS_IN_VAIN)
		return false;
	(void)sched_yield();
	return true;
}

void soft_engine_poll(struct soft_engine *e)
{
	pp_ns before;
	bool moved, away;

	atomic_fetch_add_explicit(&e->polls, 1, memory_order_relaxed);
	if (e->inherited)
		return;
	away = give_way(e);
	if (pthread_mutex_trylock(&e->lock)) {
		/* Who has it may be waiting for this processor, too. */
		if (!e->processors)
			atomic_fetch_add_explicit(&e->vain, 1, memory_order_relaxed);
		return;
	}
	if (away)
		e->polled = pp_clock_monotonic();
	before = e->next_deadline;
	e->called = true;
	moved = soft_engine_turn(e);
	e->called = false;
	atomic_store_explicit(&e->vain,
			      moved ? 0 : atomic_load_explicit(&e->vain, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	soft_reader_note(e);
	/* A turn that moved much ends long after it began. */
	note_caller(e, e->turned, moved ? pp_clock_monotonic() : e->turned);
	soft_engine_hand_over(e, before, moved && e->ready_head && !e->held_until);
	soft_engine_unlock(e);
}

void soft_engine_sleep(struct soft_engine *e)
{
	if (e->inherited)
		return;
	pthread_mutex_lock(&e->lock);
	e->streak = 0;
	soft_engine_unlock(e);
	if (atomic_load(&e->mode) == SOFT_THREAD_TICK)
		soft_engine_thread_wake(e);
}
