/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct soft_events: a queue of events behind a descriptor that poll() and epoll see: completion
 * channels and asynchronous events.
 *
 * The descriptor is a counting eventfd: its count is the number of queued events, always changed
 * together with the queue. An event is a count in its source, so that the queue takes no memory of
 * its own and cannot grow. A thread may sleep in soft_events_get() for ever, past the close of its
 * device (NCCL's does): it holds its own reference and its own descriptor.
 */
#ifndef SOFT_ABI_EVENT_H
#define SOFT_ABI_EVENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { SOFT_EVENT_TYPES = 24 };

/* Part of what events are about. */
struct soft_event_source {
	struct soft_event_source *next;
	void *element;
	uint16_t pending[SOFT_EVENT_TYPES];
	bool queued;
	uint32_t delivered; /* events that a client took and has to acknowledge */
};

struct soft_events;

/* @ret_fd: the client's descriptor; the client's object closes it. */
int soft_events_new(struct soft_events **ret, int *ret_fd);
/* Sleepers keep what they need. NULL is fine. */
void soft_events_unref(struct soft_events *events);
/* In a child of fork(), which has no sleepers: without a look at the lock. */
void soft_events_abandon(struct soft_events *events);

void soft_events_raise(struct soft_events *events, struct soft_event_source *source,
		       unsigned int type);
/*
 * Takes the oldest event. Sleeps, unless the client's descriptor is O_NONBLOCK: -EAGAIN; -EINTR
 * after a signal.
 */
int soft_events_get(struct soft_events *events, struct soft_event_source **ret,
		    unsigned int *ret_type);
/* Is there something to get? */
bool soft_events_waiting(struct soft_events *events);
/* Drops what is queued of @source; returns how many events were delivered of it. */
uint32_t soft_events_forget(struct soft_events *events, struct soft_event_source *source);

#endif
