/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's thread: progress for callers that do not poll, timers, and answers to `soft show`.
 *
 * It never spins. Beside callers that poll it looks in once a tick, and watches the sockets again
 * as soon as they stop. Signals are the application's: all are blocked here.
 */
#include "soft/engine/parts.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "soft/engine/show.h"

#include "base/banned.h"

static const pp_ns POLL_GAP = 20000; /* longer than any polling loop's round */

enum {
	TICK_NS = 1000000,
	WATCHED_ALWAYS = 2,
	/* Fewer polls in a tick are somebody draining a queue before sleeping, not a polling loop.
	 */
	POLLS_OF_A_LOOP = 32,
	FDS_MAX = 2 + 1 + 64,
	STACK_BYTES = 256 * 1024,
};

/*
 * Is a caller in a polling loop at this moment? One that only drains a queue now and then, or waits
 * on memory between polls, is not: its packets must not wait for a tick. @during: polls that failed
 * beside our turn.
 */
static bool callers_poll(struct soft_engine *e, uint64_t during)
{
	uint64_t polls = atomic_load_explicit(&e->polls, memory_order_relaxed);
	uint64_t seen = atomic_exchange_explicit(&e->polls_seen, polls, memory_order_relaxed);

	return polls > seen && polls - seen > POLLS_OF_A_LOOP &&
	       (during || pp_clock_monotonic() - e->polled < POLL_GAP);
}

/* Until the earliest of what waits for time; false: nothing does. */
static bool time_left(const struct soft_engine *e, struct timespec *ret)
{
	pp_ns until = e->next_deadline, left;

	if (e->held_until && (!until || e->held_until < until))
		until = e->held_until;
	if (!until)
		return false;
	left = until - pp_clock_monotonic();
	if (left < 0)
		left = 0;
	*ret = (struct timespec){.tv_sec = left / PP_SECOND, .tv_nsec = left % PP_SECOND};
	return true;
}

/* Sockets of all wires behind the descriptors that are always watched. */
static unsigned int watch_list(struct soft_engine *e, struct pollfd *fds)
{
	unsigned int n = WATCHED_ALWAYS;
	int link_fds[SOFT_LINK_FDS_MAX];

	fds[n++] = (struct pollfd){.fd = soft_slot_fd(e->slot), .events = POLLIN};
	for (struct soft_wire *w = e->wires; w; w = w->next) {
		unsigned int m = w->link ? soft_link_fds(w->link, link_fds) : 0;

		for (unsigned int i = 0; i < m && n < FDS_MAX; i++)
			fds[n++] = (struct pollfd){.fd = link_fds[i], .events = POLLIN};
	}
	return n;
}

static void *run(void *arg)
{
	struct soft_engine *e = arg;
	struct pollfd fds[FDS_MAX];
	uint64_t drained, polls;

	fds[0] = (struct pollfd){.fd = e->wake_fd, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = e->show_fd, .events = POLLIN}; /* -1 is ignored */
	while (!atomic_load(&e->stop)) {
		struct timespec wait = {.tv_nsec = TICK_NS};
		bool tick, limited, moved;
		unsigned int n;

		pthread_mutex_lock(&e->lock);
		polls = atomic_load_explicit(&e->polls, memory_order_relaxed);
		moved = soft_engine_turn(e);
		tick = callers_poll(e,
				    atomic_load_explicit(&e->polls, memory_order_relaxed) - polls);
		atomic_store(&e->mode, tick ? SOFT_THREAD_TICK : SOFT_THREAD_WATCH);
		n = tick ? WATCHED_ALWAYS : watch_list(e, fds);
		limited = tick || time_left(e, &wait);
		/* Who stopped for its budget goes on at once; what came in meanwhile ends the wait.
		 */
		if (!tick && moved && e->ready_head && !e->held_until)
			wait = (struct timespec){0}, limited = true;
		pthread_mutex_unlock(&e->lock);

		if (ppoll(fds, n, limited ? &wait : NULL, NULL) <= 0)
			continue;
		if (fds[0].revents && read(e->wake_fd, &drained, sizeof(drained)) < 0 &&
		    errno != EAGAIN)
			break;
		if (fds[1].revents)
			soft_show_answer(e);
	}
	return NULL;
}

int soft_engine_thread_start(struct soft_engine *e)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int rc;

	e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->wake_fd < 0)
		return -errno;
	rc = pthread_attr_init(&attr);
	if (rc)
		return -rc;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&e->thread, &attr, run, e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!rc)
		pthread_setname_np(e->thread, "peerpath-soft");
	return -rc;
}

void soft_engine_thread_wake(struct soft_engine *e)
{
	uint64_t one = 1;

	/* A full counter is a wake-up already. */
	if (write(e->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void soft_engine_thread_stop(struct soft_engine *e)
{
	atomic_store(&e->stop, true);
	soft_engine_thread_wake(e);
	pthread_join(e->thread, NULL);
}
