/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock, the table of ids, and the thread that watches their sockets and deadlines. The thread
 * starts with the first socket and stays: it sleeps when nothing is under way.
 *
 * fork(): the child has neither the thread nor a right to its parent's connections. The sockets
 * that it inherited are closed, so that a parent's death is seen by peers; what it opens is new.
 */
#include "soft/cm/cm.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "soft/abi/export.h"

#include "base/banned.h"

enum {
	EVENTS_AT_ONCE = 64,
	STACK_BYTES = 256 * 1024,
	TABLE_FIRST = 64,
	TABLE_MAX = 1 << 20,
	INDEX_BITS = 32,
};

static const uint64_t KEY_WAKE = UINT64_MAX;

static struct {
	pthread_mutex_t mutex, qp_mutex;
	pthread_cond_t acked;
	unsigned int generation;
	bool running;
	int epoll, wake;
	struct soft_cm_id **table;
	uint32_t size, lowest_free, serial;
	pp_ns next_deadline; /* nobody's is earlier; 0: nobody has one */
} cm = {.mutex = PTHREAD_MUTEX_INITIALIZER,
	.qp_mutex = PTHREAD_MUTEX_INITIALIZER,
	.acked = PTHREAD_COND_INITIALIZER,
	.epoll = -1,
	.wake = -1};

static pthread_once_t begin_once = PTHREAD_ONCE_INIT;

int soft_cm_fail(int err)
{
	errno = err;
	return -1;
}

bool soft_cm_mine(unsigned int generation)
{
	return generation == __atomic_load_n(&cm.generation, __ATOMIC_RELAXED);
}

unsigned int soft_cm_generation(void)
{
	return __atomic_load_n(&cm.generation, __ATOMIC_RELAXED);
}

void soft_cm_lock(void)
{
	pthread_mutex_lock(&cm.mutex);
}

void soft_cm_unlock(void)
{
	pthread_mutex_unlock(&cm.mutex);
}

void soft_cm_qp_lock(void)
{
	pthread_mutex_lock(&cm.qp_mutex);
}

void soft_cm_qp_unlock(void)
{
	pthread_mutex_unlock(&cm.qp_mutex);
}

void soft_cm_wait_locked(void)
{
	pthread_cond_wait(&cm.acked, &cm.mutex);
}

void soft_cm_wake_locked(void)
{
	pthread_cond_broadcast(&cm.acked);
}

/* ── the table ── */

struct soft_cm_id *soft_cm_find_locked(uint64_t number)
{
	uint32_t index = (uint32_t)number;
	struct soft_cm_id *id = index < cm.size ? cm.table[index] : NULL;

	return id && id->number == number ? id : NULL;
}

static int grow(void)
{
	uint32_t size = cm.size ? cm.size * 2 : TABLE_FIRST;
	struct soft_cm_id **table;

	if (size > TABLE_MAX)
		return ENOMEM;
	table = reallocarray(cm.table, size, sizeof(*table));
	if (!table)
		return ENOMEM;
	for (uint32_t i = cm.size; i < size; i++)
		table[i] = NULL;
	cm.table = table;
	cm.size = size;
	return 0;
}

int soft_cm_enter_locked(struct soft_cm_id *id)
{
	while (cm.lowest_free < cm.size && cm.table[cm.lowest_free])
		cm.lowest_free++;
	if (cm.lowest_free == cm.size && grow())
		return ENOMEM;
	/* Never 0, and never KEY_WAKE: the index is small. */
	id->number = (uint64_t)++cm.serial << INDEX_BITS | cm.lowest_free;
	if (!cm.serial)
		id->number |= (uint64_t)++cm.serial << INDEX_BITS;
	cm.table[cm.lowest_free] = id;
	return 0;
}

void soft_cm_leave_locked(struct soft_cm_id *id)
{
	uint32_t index = (uint32_t)id->number;

	if (!id->number || soft_cm_find_locked(id->number) != id)
		return;
	cm.table[index] = NULL;
	if (index < cm.lowest_free)
		cm.lowest_free = index;
	id->number = 0;
}

void soft_cm_each_locked(void (*each)(struct soft_cm_id *id, void *arg), void *arg)
{
	for (uint32_t i = 0; i < cm.size; i++)
		if (cm.table[i])
			each(cm.table[i], arg);
}

/* ── the thread ── */

static void nudge(void)
{
	uint64_t one = 1;

	if (write(cm.wake, &one, sizeof(one)) < 0) {
		/* full: it is awake already */
	}
}

static void check_deadlines(void)
{
	pp_ns now, next = 0;

	if (!cm.next_deadline)
		return;
	now = pp_clock_monotonic();
	if (now < cm.next_deadline)
		return;
	cm.next_deadline = 0;
	for (uint32_t i = 0; i < cm.size; i++) {
		struct soft_cm_id *id = cm.table[i];

		if (id && id->deadline && id->deadline <= now) {
			id->deadline = 0;
			soft_cm_late_locked(id);
			id = cm.table[i];
		}
		if (id && id->deadline && (!next || id->deadline < next))
			next = id->deadline;
	}
	if (next && (!cm.next_deadline || next < cm.next_deadline))
		cm.next_deadline = next;
}

/* Milliseconds until the next deadline, rounded up; -1: for ever. */
static int time_left(void)
{
	pp_ns left;

	if (!cm.next_deadline)
		return -1;
	left = cm.next_deadline - pp_clock_monotonic();
	if (left <= 0)
		return 0;
	left = (left + PP_MILLISECOND - 1) / PP_MILLISECOND;
	return left > 3600000 ? 3600000 : (int)left;
}

static void look(const struct epoll_event *events, int n)
{
	uint64_t drained;

	for (int i = 0; i < n; i++) {
		struct soft_cm_id *id;

		if (events[i].data.u64 == KEY_WAKE) {
			if (read(cm.wake, &drained, sizeof(drained)) < 0) {
				/* another round drained it */
			}
			continue;
		}
		id = soft_cm_find_locked(events[i].data.u64);
		if (id && id->watched)
			soft_cm_ready_locked(id, events[i].events);
	}
	check_deadlines();
}

static void *run(void *unused)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int wait = -1, epoll;

	(void)unused;
	soft_cm_lock();
	epoll = cm.epoll;
	wait = time_left();
	soft_cm_unlock();
	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS_AT_ONCE, wait);

		soft_cm_lock();
		look(events, n);
		wait = time_left();
		soft_cm_unlock();
	}
	return NULL;
}

static int start_thread(void)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int r = pthread_attr_init(&attr);

	if (r)
		return r;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	/* Signals are the application's. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, &attr, run, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	(void)pthread_attr_destroy(&attr);
	return r;
}

static void close_loop(void)
{
	if (cm.epoll >= 0)
		(void)close(cm.epoll);
	if (cm.wake >= 0)
		(void)close(cm.wake);
	cm.epoll = cm.wake = -1;
}

static int start_locked(void)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = KEY_WAKE};
	int r = 0;

	if (cm.running)
		return 0;
	cm.epoll = epoll_create1(EPOLL_CLOEXEC);
	cm.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cm.epoll < 0 || cm.wake < 0 || epoll_ctl(cm.epoll, EPOLL_CTL_ADD, cm.wake, &e))
		r = errno;
	if (!r)
		r = start_thread();
	if (r)
		close_loop();
	else
		cm.running = true;
	return r;
}

int soft_cm_watch_locked(struct soft_cm_id *id, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.u64 = id->number};
	int r = start_locked();

	if (r)
		return r;
	if (epoll_ctl(cm.epoll, id->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, id->fd, &e))
		return errno;
	id->watched = true;
	return 0;
}

void soft_cm_unwatch_locked(struct soft_cm_id *id)
{
	if (id->watched)
		(void)epoll_ctl(cm.epoll, EPOLL_CTL_DEL, id->fd, NULL);
	id->watched = false;
}

void soft_cm_deadline_locked(struct soft_cm_id *id, pp_ns after)
{
	id->deadline = after ? pp_clock_monotonic() + after : 0;
	if (after && (!cm.next_deadline || id->deadline < cm.next_deadline)) {
		cm.next_deadline = id->deadline;
		nudge();
	}
}

/* ── fork ── */

static void fork_prepare(void)
{
	soft_cm_lock();
}

static void fork_parent(void)
{
	soft_cm_unlock();
}

/* Close, and no more: to take a socket out of the epoll set would take it from the parent. */
static void fork_child(void)
{
	for (uint32_t i = 0; i < cm.size; i++) {
		struct soft_cm_id *id = cm.table[i];

		if (!id)
			continue;
		if (id->fd >= 0)
			(void)close(id->fd);
		id->fd = -1;
		id->watched = false;
		id->number = 0;
		cm.table[i] = NULL;
	}
	close_loop();
	cm.running = false;
	cm.lowest_free = 0;
	cm.next_deadline = 0;
	(void)pthread_cond_init(&cm.acked, NULL);
	(void)pthread_mutex_init(&cm.qp_mutex, NULL);
	soft_cm_device_forget();
	__atomic_add_fetch(&cm.generation, 1, __ATOMIC_RELAXED);
	soft_cm_unlock();
}

/* After libibverbs has set up its handlers: what was registered last is called first, and who holds
 * our locks may wait for theirs. */
static void begin(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (list)
		ibv_free_device_list(list);
	(void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

int soft_cm_begin(void)
{
	return pthread_once(&begin_once, begin);
}
