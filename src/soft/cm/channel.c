/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event channels: a queue of events and a descriptor that is readable while it holds any.
 *
 * Whoever finds none sleeps in read() on a second descriptor, because read() treats signals as a
 * program expects of this call: it goes on after a handler with SA_RESTART, and fails with EINTR
 * after another.
 */
#include "soft/cm/cm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/banned.h"

static struct soft_cm_channel *channel_of(struct rdma_event_channel *channel)
{
	return (struct soft_cm_channel *)channel;
}

static void add_one(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0) {
		/* as full as it gets is readable too */
	}
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct soft_cm_channel *c;
	int r = soft_cm_begin();

	c = r ? NULL : calloc(1, sizeof(*c));
	if (!c) {
		errno = r ? r : ENOMEM;
		return NULL;
	}
	c->tail = &c->head;
	c->generation = soft_cm_generation();
	c->pub.fd = eventfd(0, EFD_CLOEXEC);
	c->wake = eventfd(0, EFD_CLOEXEC);
	if (c->pub.fd < 0 || c->wake < 0) {
		r = errno;
		if (c->pub.fd >= 0)
			(void)close(c->pub.fd);
		if (c->wake >= 0)
			(void)close(c->wake);
		free(c);
		errno = r;
		return NULL;
	}
	return &c->pub;
}

static void orphan(struct soft_cm_id *id, void *channel)
{
	if (id->channel != channel)
		return;
	soft_cm_id_end_locked(id);
	id->channel = NULL;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct soft_cm_channel *c = channel_of(channel);

	if (soft_cm_mine(c->generation)) {
		soft_cm_lock();
		/* Its ids end, as the kernel's do with the file; their memory is the program's to
		 * give back. */
		soft_cm_each_locked(orphan, c);
		soft_cm_unlock();
	}
	(void)close(c->pub.fd);
	(void)close(c->wake);
	free(c);
}

struct soft_cm_event *soft_cm_event_new(struct soft_cm_id *id, enum rdma_cm_event_type type,
					int status)
{
	struct soft_cm_event *e = calloc(1, sizeof(*e));

	if (e) {
		e->id = id;
		e->pub.id = &id->pub;
		e->pub.event = type;
		e->pub.status = status;
	}
	return e;
}

void soft_cm_push_locked(struct soft_cm_channel *channel, struct soft_cm_event *e)
{
	*channel->tail = e;
	channel->tail = &e->next;
	add_one(channel->pub.fd);
	add_one(channel->wake);
}

void soft_cm_tell_locked(struct soft_cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct soft_cm_event *e = id->channel ? soft_cm_event_new(id, type, status) : NULL;

	if (e)
		soft_cm_push_locked(id->channel, e);
}

/* Never sleeps, though the descriptor may: a program might have read it. */
static void drain(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t drained;

	if (poll(&p, 1, 0) == 1 && read(fd, &drained, sizeof(drained)) < 0) {
		/* empty is what it shall be */
	}
}

/* Unlinks *@at; an empty queue is not readable. */
static struct soft_cm_event *unlink_event(struct soft_cm_channel *c, struct soft_cm_event **at)
{
	struct soft_cm_event *e = *at;

	*at = e->next;
	if (c->tail == &e->next)
		c->tail = at;
	e->next = NULL;
	if (!c->head)
		drain(c->pub.fd);
	return e;
}

void soft_cm_purge_locked(struct soft_cm_id *id)
{
	struct soft_cm_channel *c = id->channel;

	for (struct soft_cm_event **at = &c->head; *at;) {
		struct soft_cm_event *e;

		if ((*at)->id != id) {
			at = &(*at)->next;
			continue;
		}
		e = unlink_event(c, at);
		if (e->child) {
			soft_cm_id_end_locked(e->child);
			soft_cm_id_free(e->child);
		}
		free(e);
	}
}

void soft_cm_move_locked(struct soft_cm_id *id, struct soft_cm_channel *to)
{
	struct soft_cm_channel *c = id->channel;

	for (struct soft_cm_event **at = &c->head; *at;) {
		struct soft_cm_event *e = *at;

		if (e->id != id) {
			at = &e->next;
			continue;
		}
		(void)unlink_event(c, at);
		if (e->child)
			e->child->channel = to;
		soft_cm_push_locked(to, e);
	}
}

void soft_cm_ack_locked(struct soft_cm_id *id)
{
	id->acked++;
	soft_cm_wake_locked();
}

int soft_cm_channel_take(struct rdma_event_channel *channel, struct soft_cm_event **ret)
{
	struct soft_cm_channel *c = channel_of(channel);
	uint64_t drained;
	int flags;

	for (;;) {
		if (!soft_cm_mine(c->generation))
			return EIO;
		soft_cm_lock();
		if (c->head) {
			*ret = unlink_event(c, &c->head);
			(*ret)->id->delivered++;
			if (c->head)
				add_one(c->wake); /* a sleeper may have read for several */
			soft_cm_unlock();
			return 0;
		}
		soft_cm_unlock();
		/* The program's flag, on the descriptor that it knows. */
		flags = fcntl(c->pub.fd, F_GETFL);
		if (flags < 0)
			return errno;
		if (flags & O_NONBLOCK)
			return EAGAIN;
		if (read(c->wake, &drained, sizeof(drained)) < 0)
			return errno;
	}
}
