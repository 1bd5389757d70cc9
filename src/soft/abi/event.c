/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/abi/event.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/banned.h"

struct soft_events {
	pthread_mutex_t lock;
	struct soft_event_source *head, *tail;
	unsigned int refs; /* owner and sleepers */
	int fd;		   /* our own; the client's is another descriptor of the same eventfd */
};

int soft_events_new(struct soft_events **ret, int *ret_fd)
{
	struct soft_events *e = calloc(1, sizeof(*e));
	int fd = -1, r;

	if (!e)
		return -ENOMEM;
	e->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (e->fd >= 0)
		fd = fcntl(e->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0) {
		r = -errno;
		if (e->fd >= 0)
			close(e->fd);
		free(e);
		return r;
	}
	pthread_mutex_init(&e->lock, NULL);
	e->refs = 1;
	*ret = e;
	*ret_fd = fd;
	return 0;
}

static void unref(struct soft_events *e)
{
	unsigned int left;

	pthread_mutex_lock(&e->lock);
	left = --e->refs;
	pthread_mutex_unlock(&e->lock);
	if (left)
		return;
	close(e->fd);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

void soft_events_unref(struct soft_events *e)
{
	if (e)
		unref(e);
}

void soft_events_abandon(struct soft_events *e)
{
	close(e->fd);
	free(e);
}

static void count_up_locked(struct soft_events *e)
{
	(void)eventfd_write(e->fd, 1);
}

/*
 * Must not sleep: the lock is held. The count is that of the queue, unless the client has read its
 * descriptor by itself, which nobody forbids; then there is nothing to take away.
 */
static void count_down_locked(struct soft_events *e)
{
	eventfd_t one;
	struct iovec iov = {&one, sizeof(one)};
	struct pollfd p = {.fd = e->fd, .events = POLLIN};

	if (preadv2(e->fd, &iov, 1, -1, RWF_NOWAIT) >= 0 || errno == EAGAIN)
		return;
	/* Kernels before 5.8 cannot be asked so; there a moment is left in which a reader wins. */
	if (poll(&p, 1, 0) == 1)
		(void)eventfd_read(e->fd, &one);
}

static bool append_locked(struct soft_events *e, struct soft_event_source *s)
{
	if (s->queued)
		return false;
	s->queued = true;
	s->next = NULL;
	if (e->tail)
		e->tail->next = s;
	else
		e->head = s;
	e->tail = s;
	return true;
}

static void remove_locked(struct soft_events *e, struct soft_event_source *s)
{
	struct soft_event_source *before = NULL;

	if (!s->queued)
		return;
	for (struct soft_event_source *at = e->head; at && at != s; at = at->next)
		before = at;
	if (before)
		before->next = s->next;
	else
		e->head = s->next;
	if (e->tail == s)
		e->tail = before;
	s->queued = false;
}

void soft_events_raise(struct soft_events *e, struct soft_event_source *s, unsigned int type)
{
	pthread_mutex_lock(&e->lock);
	/* Who never reads them loses what does not fit, as with a real device's event queue. */
	if (type < SOFT_EVENT_TYPES && s->pending[type] < UINT16_MAX) {
		s->pending[type]++;
		append_locked(e, s);
		count_up_locked(e);
	}
	pthread_mutex_unlock(&e->lock);
}

static bool any_pending(const struct soft_event_source *s)
{
	for (unsigned int i = 0; i < SOFT_EVENT_TYPES; i++)
		if (s->pending[i])
			return true;
	return false;
}

static bool take_locked(struct soft_events *e, struct soft_event_source **ret,
			unsigned int *ret_type)
{
	struct soft_event_source *s = e->head;
	unsigned int type = 0;

	if (!s)
		return false;
	while (!s->pending[type])
		type++;
	s->pending[type]--;
	s->delivered++;
	count_down_locked(e);
	/* To the end of the queue with the rest: sources take turns. */
	remove_locked(e, s);
	if (any_pending(s))
		append_locked(e, s);
	*ret = s;
	*ret_type = type;
	return true;
}

static void unref_cancelled(void *events)
{
	unref(events);
}

/* The caller's reference goes when its thread is cancelled here, where it sleeps. */
static int wait_readable(struct soft_events *e)
{
	struct pollfd p = {.fd = e->fd, .events = POLLIN};
	/* The flag belongs to the eventfd, which the client's descriptor shares. */
	int flags = fcntl(e->fd, F_GETFL);
	int n;

	if (flags >= 0 && flags & O_NONBLOCK)
		return -EAGAIN;
	pthread_cleanup_push(unref_cancelled, e);
	n = poll(&p, 1, -1);
	pthread_cleanup_pop(/* execute= */ 0);
	return n < 0 ? -errno : 0;
}

static bool take(struct soft_events *e, struct soft_event_source **ret, unsigned int *ret_type)
{
	bool got;

	pthread_mutex_lock(&e->lock);
	got = take_locked(e, ret, ret_type);
	pthread_mutex_unlock(&e->lock);
	return got;
}

int soft_events_get(struct soft_events *e, struct soft_event_source **ret, unsigned int *ret_type)
{
	int r = 0;

	pthread_mutex_lock(&e->lock);
	e->refs++;
	pthread_mutex_unlock(&e->lock);
	while (!r && !take(e, ret, ret_type))
		r = wait_readable(e);
	unref(e);
	return r;
}

bool soft_events_waiting(struct soft_events *e)
{
	bool any;

	pthread_mutex_lock(&e->lock);
	any = e->head != NULL;
	pthread_mutex_unlock(&e->lock);
	return any;
}

uint32_t soft_events_forget(struct soft_events *e, struct soft_event_source *s)
{
	uint32_t delivered;

	pthread_mutex_lock(&e->lock);
	for (unsigned int i = 0; i < SOFT_EVENT_TYPES; i++) {
		for (; s->pending[i]; s->pending[i]--)
			count_down_locked(e);
	}
	remove_locked(e, s);
	delivered = s->delivered;
	pthread_mutex_unlock(&e->lock);
	return delivered;
}
