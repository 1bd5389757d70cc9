/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's thread: progress for callers that do not poll, timers, and answers to `soft show`.
 *
 * It sleeps whenever nothing is under way. Beside callers that poll it looks in once a tick, and
 * watches the sockets again as soon as they stop. Signals are the application's: all are blocked
 * here.
 */
#include "soft/engine/parts.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "soft/engine/board.h"
#include "soft/engine/show.h"

#include "base/banned.h"

/* Longer than a peer needs for its reply: what lies in memory is seen without a wake-up. */
static const pp_ns LANES_GAP = 50000;
static const pp_ns STREAM_GAP = 30000; /* longer than the sender of a train needs for the next */

enum {
	TICK_NS = 1000000,
	WATCHED_ALWAYS = 3,
	LOOKS_ON = 16, /* turns between system calls, while it goes on at once */
	POLLS_OF_A_LOOP = 8,
	MISSES_MAX = 3,
	FDS_MAX = WATCHED_ALWAYS + 1 + SOFT_WIRES_MAX * SOFT_LINK_FDS_MAX,
	STACK_BYTES = 256 * 1024,
};

/*
 * Is a caller in a polling loop at this moment? One that only drains a queue now and then, or waits
 * on memory between polls, is not: its packets must not wait for a tick. @during: polls that failed
 * beside our turn.
 */
static bool callers_poll(const struct soft_engine *e, uint64_t during)
{
	return e->streak >= POLLS_OF_A_LOOP && (during || e->turned - e->polled < SOFT_POLL_GAP);
}

/* Until the earliest of what waits for time; false: nothing does. */
static bool time_left(const struct soft_engine *e, struct timespec *ret)
{
	pp_ns until = e->next_deadline, left;

	if (e->held_until && (!until || e->held_until < until))
		until = e->held_until;
	/* A caller may hold one back while we sleep, and never come again. */
	if (e->turned - e->held < SOFT_HOLDING && (!until || e->turned + TICK_NS < until))
		until = e->turned + TICK_NS;
	if (e->board_due && (!until || e->board_due < until))
		until = e->board_due;
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
		bool others = !w->link || soft_reader_has_sockets(e, w);
		unsigned int m = others ? 0 : soft_link_fds(w->link, link_fds);

		for (unsigned int i = 0; i < m && n < FDS_MAX; i++)
			fds[n++] = (struct pollfd){.fd = link_fds[i], .events = POLLIN};
	}
	return n;
}

/*
 * Is another turn due before any sleep? When somebody stopped for its budget; and for a moment
 * after a train, whose sender would else pay for a wake-up with every one.
 */
static bool goes_on(const struct soft_engine *e, bool moved)
{
	return (moved && e->ready_head && !e->held_until) || soft_reader_has(e) ||
	       e->turned - e->streamed < STREAM_GAP ||
	       (e->processors && e->turned - e->lanes.busy < LANES_GAP);
}

/*
 * Beside callers that poll, a busy lock is a good sign: who would wait for it makes every unlock of
 * theirs a system call. But not for ever: it may be busy with posts alone.
 */
static bool enter(struct soft_engine *e, unsigned int *missed)
{
	if (atomic_load(&e->mode) == SOFT_THREAD_TICK && (*missed)++ < MISSES_MAX) {
		if (pthread_mutex_trylock(&e->lock))
			return false;
	} else {
		pthread_mutex_lock(&e->lock);
	}
	*missed = 0;
	return true;
}

/* Somebody else reads sockets for us, maybe: he is told that we sleep, unless he has something. */
static bool reader_wakes(struct soft_engine *e)
{
	if (!e->bulk.reader)
		return true;
	atomic_store(&e->asleep, true);
	if (!soft_reader_has(e))
		return true;
	atomic_store(&e->asleep, false);
	return false;
}

static void write_boards(struct soft_engine *e)
{
	e->board_due = 0;
	for (struct soft_wire *w = e->wires; w; w = w->next) {
		pp_ns due = w->board
				    ? soft_board_write(w->board, w, e->turned, /* at_once= */ false)
				    : 0;

		if (due && (!e->board_due || due < e->board_due))
			e->board_due = due;
	}
}

/* One turn; then what to sleep on, and for how long: false, until something comes. */
static bool look(struct soft_engine *e, struct pollfd *fds, unsigned int *ret_n,
		 struct timespec *ret_wait)
{
	uint64_t polls = atomic_load_explicit(&e->polls, memory_order_relaxed);
	bool moved, limited;

	soft_lanes_awake(e);
	moved = soft_engine_turn(e);
	polls = atomic_load_explicit(&e->polls, memory_order_relaxed) - polls;
	write_boards(e);
	if (callers_poll(e, polls)) {
		atomic_store(&e->mode, SOFT_THREAD_TICK);
		*ret_n = WATCHED_ALWAYS;
		return true;
	}
	atomic_store(&e->mode, SOFT_THREAD_WATCH);
	*ret_n = watch_list(e, fds);
	limited = time_left(e, ret_wait);
	if (goes_on(e, moved) || !soft_lanes_sleep(e) || !reader_wakes(e)) {
		*ret_wait = (struct timespec){0};
		limited = true;
	}
	return limited;
}

/* No longer than until @deadline. Always true: it ends. */
static bool shorten(struct timespec *wait, bool limited, pp_ns deadline)
{
	pp_ns left = deadline - pp_clock_monotonic();

	if (left < 0)
		left = 0;
	if (!limited || wait->tv_sec * PP_SECOND + wait->tv_nsec > left)
		*wait = (struct timespec){.tv_sec = left / PP_SECOND, .tv_nsec = left % PP_SECOND};
	return true;
}

static void *run(void *arg)
{
	struct soft_engine *e = arg;
	struct pollfd fds[FDS_MAX];
	unsigned int missed = 0, looks = 0;
	uint64_t drained;

	fds[0] = (struct pollfd){.fd = e->wake_fd, .events = POLLIN};
	fds[2] = (struct pollfd){.fd = e->lanes.epoll_fd, .events = POLLIN};
	while (!atomic_load(&e->stop)) {
		struct timespec wait = {.tv_nsec = TICK_NS};
		pp_ns patience = soft_show_deadline(e);
		unsigned int n = WATCHED_ALWAYS;
		bool limited = true;
		int came;

		if (enter(e, &missed)) {
			limited = look(e, fds, &n, &wait);
			soft_engine_unlock(e);
		}
		if (limited && !wait.tv_sec && !wait.tv_nsec && ++looks % LOOKS_ON)
			continue;
		if (patience)
			limited = shorten(&wait, limited, patience);
		fds[1] = (struct pollfd){.fd = soft_show_fd(e), .events = POLLIN};
		came = ppoll(fds, n, limited ? &wait : NULL, NULL);
		if (atomic_load_explicit(&e->asleep, memory_order_relaxed))
			atomic_store(&e->asleep, false);
		if (came <= 0) {
			if (patience)
				soft_show_ready(e);
			continue;
		}
		if (fds[0].revents && read(e->wake_fd, &drained, sizeof(drained)) < 0 &&
		    errno != EAGAIN)
			break;
		if (fds[1].revents || patience)
			soft_show_ready(e);
		if (fds[2].revents) {
			pthread_mutex_lock(&e->lock);
			soft_lanes_events(e);
			soft_engine_unlock(e);
		}
	}
	return NULL;
}

int soft_engine_thread_make(pthread_t *ret, const char *name, const cpu_set_t *affinity,
			    void *(*start)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int rc = pthread_attr_init(&attr);

	if (rc)
		return -rc;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	/* Who makes it may be bound to one of them. */
	if (CPU_COUNT(affinity))
		pthread_attr_setaffinity_np(&attr, sizeof(*affinity), affinity);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(ret, &attr, start, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!rc)
		pthread_setname_np(*ret, name);
	return -rc;
}

int soft_engine_thread_start(struct soft_engine *e)
{
	e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->wake_fd < 0)
		return -errno;
	return soft_engine_thread_make(&e->thread, "peerpath-soft", &e->affinity, run, e);
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
