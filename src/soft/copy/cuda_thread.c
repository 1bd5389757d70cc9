/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of a GPU. Copies of a direction are done in the order in which they were begun: in one
 * stream, so that one event is looked at.
 */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "soft/copy/cuda_parts.h"

#include "base/banned.h"

/* After the last copy, for the next. Small collectives of NCCL that a program waits for one by one
 * take 65 to 93 us each (docs/results/nccl-h200.md), and none of them is to wait until this thread
 * has been woken. */
static const pp_ns LOOKS_ON = 200000;
static const pp_ns IMPATIENT = PP_MILLISECOND; /* a copy that takes so long may take longer */
static const pp_ns NAP = 20000;
static const pp_ns LAST_WORDS = PP_SECOND;

static void push(struct soft_cuda_queue *q, struct soft_copy *copy)
{
	copy->next = NULL;
	if (q->last)
		q->last->next = copy;
	else
		q->first = copy;
	q->last = copy;
}

static struct soft_copy *pop(struct soft_cuda_queue *q)
{
	struct soft_copy *copy = q->first;

	if (!copy)
		return NULL;
	q->first = copy->next;
	if (!q->first)
		q->last = NULL;
	return copy;
}

static struct soft_cuda_device *device_of(struct soft_copier *allocated)
{
	return (struct soft_cuda_device *)((char *)allocated -
					   offsetof(struct soft_cuda_device, allocated));
}

void soft_cuda_start_allocated(struct soft_copier *copier, struct soft_copy *copy)
{
	copy->by_kernel = true;
	soft_cuda_start(&device_of(copier)->copier, copy);
}

void soft_cuda_cancel_allocated(struct soft_copier *copier, struct soft_region *region)
{
	soft_cuda_cancel(&device_of(copier)->copier, region);
}

void soft_cuda_start(struct soft_copier *copier, struct soft_copy *copy)
{
	struct soft_cuda_device *d = (struct soft_cuda_device *)copier;

	copy->begun = pp_clock_monotonic();
	pthread_mutex_lock(&d->lock);
	d->copies += copy->what == SOFT_COPY;
	d->bytes += copy->what == SOFT_COPY ? copy->len : 0;
	push(&d->waiting[copy->to_device], copy);
	atomic_fetch_add_explicit(&d->asked, 1, memory_order_release);
	if (d->sleeps)
		pthread_cond_signal(&d->more);
	d->sleeps = false;
	pthread_mutex_unlock(&d->lock);
}

void soft_cuda_cancel(struct soft_copier *copier, struct soft_region *region)
{
	struct soft_cuda_device *d = (struct soft_cuda_device *)copier;
	struct soft_cuda_queue mine = {0};
	struct soft_copy *copy;

	pthread_mutex_lock(&d->lock);
	for (unsigned int way = 0; way < SOFT_CUDA_DIRECTIONS; way++) {
		struct soft_cuda_queue all = d->waiting[way];

		d->waiting[way] = (struct soft_cuda_queue){0};
		while ((copy = pop(&all)) != NULL)
			push(copy->region == region ? &mine : &d->waiting[way], copy);
	}
	pthread_mutex_unlock(&d->lock);
	while ((copy = pop(&mine)) != NULL)
		soft_copy_done(copy, -ECANCELED);
}

/* What CUDA may be given next; NULL: nothing. */
static struct soft_cuda_batch *take(struct soft_cuda_device *d, unsigned int way)
{
	struct soft_cuda_batch *batch = &d->batches[way][d->begun[way] % SOFT_CUDA_BATCHES];
	struct soft_cuda_queue *from = &d->waiting[way], *to = &batch->copies;
	struct soft_copy *next;

	if (d->begun[way] - d->over[way] == SOFT_CUDA_BATCHES)
		return NULL;
	pthread_mutex_lock(&d->lock);
	while ((next = from->first) != NULL &&
	       (!to->first || soft_cuda_joins(d, to->first, next))) {
		(void)pop(from);
		push(to, next);
	}
	pthread_mutex_unlock(&d->lock);
	if (!to->first)
		return NULL;
	d->begun[way]++;
	return batch;
}

/* In this thread and context: the call may wait for what goes on there, which are our copies, and
 * those end by themselves. */
static int oblige(struct soft_cuda_device *d, struct soft_copy *copy)
{
	const unsigned int flags =
		SOFT_CUDA_HOSTREGISTER_PORTABLE | SOFT_CUDA_HOSTREGISTER_READ_ONLY;

	switch (copy->what) {
	case SOFT_COPY_PIN:
		return SOFT_CUDA_CALL(d, "cuMemHostRegister",
				      host_register(copy->host, copy->len, flags));
	case SOFT_COPY_UNPIN:
		return SOFT_CUDA_CALL(d, "cuMemHostUnregister", host_unregister(copy->host));
	case SOFT_COPY_MAP:
		return SOFT_CUDA_CALL_BY(d, "mapping of a peer's memory",
					 soft_cuda_map(d, copy->mapping));
	default:
		return SOFT_CUDA_CALL_BY(d, "unmapping of a peer's memory",
					 soft_cuda_unmap(d, copy->mapping));
	}
}

static bool begin_all(struct soft_cuda_device *d)
{
	uint32_t asked = atomic_load_explicit(&d->asked, memory_order_acquire);
	struct soft_cuda_batch *batch;
	bool any = false;

	if (asked == d->seen)
		return false;
	for (unsigned int way = 0; way < SOFT_CUDA_DIRECTIONS; way++) {
		while ((batch = take(d, way)) != NULL) {
			struct soft_copy *first = batch->copies.first;

			batch->told = false;
			if (first->what == SOFT_COPY)
				soft_cuda_batch_begin(d, batch);
			else
				first->rc = soft_cuda_errno(oblige(d, first));
			any = true;
		}
	}
	/* Else more of one direction may wait. */
	if (d->begun[0] - d->over[0] < SOFT_CUDA_BATCHES &&
	    d->begun[1] - d->over[1] < SOFT_CUDA_BATCHES)
		d->seen = asked;
	return any;
}

/* Those that are over, in order. */
static struct soft_copy *reap(struct soft_cuda_device *d)
{
	struct soft_cuda_queue over = {0};

	for (unsigned int way = 0; way < SOFT_CUDA_DIRECTIONS; way++) {
		while (d->over[way] != d->begun[way]) {
			struct soft_cuda_batch *batch =
				&d->batches[way][d->over[way] % SOFT_CUDA_BATCHES];
			struct soft_cuda_queue done;
			struct soft_copy *copy;
			int r = 0;

			if (batch->told)
				r = SOFT_CUDA_CALL(d, "cuEventQuery", event_query(batch->event));
			if (r == SOFT_CUDA_NOT_READY)
				break;
			pthread_mutex_lock(&d->lock);
			done = batch->copies;
			batch->copies = (struct soft_cuda_queue){0};
			for (copy = done.first; copy; copy = copy->next) {
				if (r)
					copy->rc = soft_cuda_errno(r);
				d->failed += copy->rc != 0 && copy->what == SOFT_COPY;
			}
			pthread_mutex_unlock(&d->lock);
			while ((copy = pop(&done)) != NULL)
				push(&over, copy);
			d->over[way]++;
		}
	}
	return over.first;
}

static void deliver(struct soft_cuda_device *d, struct soft_copy *list)
{
	bool alone;

	pthread_mutex_lock(&d->lock);
	alone = d->alone;
	d->delivers = !alone;
	pthread_mutex_unlock(&d->lock);
	/* Whoever waited for them has gone, with their memory. */
	if (alone)
		return;
	d->deliver(d->arg, list);
	pthread_mutex_lock(&d->lock);
	d->delivers = false;
	pthread_cond_signal(&d->delivered);
	pthread_mutex_unlock(&d->lock);
}

static bool any_under_way(const struct soft_cuda_device *d)
{
	return d->begun[0] != d->over[0] || d->begun[1] != d->over[1];
}

static bool idle_locked(const struct soft_cuda_device *d)
{
	return !d->waiting[0].first && !d->waiting[1].first && !any_under_way(d);
}

/* Until there is more to do. false: the end. */
static bool rest(struct soft_cuda_device *d, pp_ns active)
{
	pp_ns now = pp_clock_monotonic();
	bool idle = !any_under_way(d) && atomic_load(&d->asked) == d->seen;

	if (idle && !(d->spins && now - active < LOOKS_ON)) {
		pthread_mutex_lock(&d->lock);
		while (!atomic_load(&d->stop) && idle_locked(d)) {
			d->sleeps = true;
			pthread_cond_wait(&d->more, &d->lock);
		}
		d->sleeps = false;
		pthread_mutex_unlock(&d->lock);
	}
	if (!idle && now - active > IMPATIENT) {
		const struct timespec nap = {.tv_nsec = NAP};

		(void)nanosleep(&nap, NULL);
	} else if (!d->spins) {
		(void)sched_yield();
	}
	return !atomic_load(&d->stop);
}

static bool lets_go(const struct soft_copy *copy)
{
	return copy->what == SOFT_COPY_UNMAP || copy->what == SOFT_COPY_UNPIN;
}

/* What CUDA has not been given is in vain; until nobody asks for more in return. */
static void give_up(struct soft_cuda_device *d)
{
	struct soft_cuda_queue vain, lasting;
	struct soft_copy *copy;

	do {
		vain = lasting = (struct soft_cuda_queue){0};
		pthread_mutex_lock(&d->lock);
		for (unsigned int way = 0; way < SOFT_CUDA_DIRECTIONS; way++) {
			while ((copy = pop(&d->waiting[way])) != NULL) {
				copy->rc = -ECANCELED;
				push(lets_go(copy) ? &lasting : &vain, copy);
			}
		}
		pthread_mutex_unlock(&d->lock);
		/* Addresses that were reserved are the process's, and stay when the context goes;
		 * page-locked memory is about to be unmapped. */
		while ((copy = pop(&lasting)) != NULL) {
			copy->rc = soft_cuda_errno(oblige(d, copy));
			push(&vain, copy);
		}
		if (vain.first)
			deliver(d, vain.first);
	} while (vain.first);
}

/* What CUDA has is waited for, a moment. Page-locks go with the context. */
static void end(struct soft_cuda_device *d)
{
	pp_ns until = pp_clock_monotonic() + LAST_WORDS;

	give_up(d);
	while (any_under_way(d) && pp_clock_monotonic() < until) {
		const struct timespec nap = {.tv_nsec = NAP};
		struct soft_copy *over = reap(d);

		if (over)
			deliver(d, over);
		else
			(void)nanosleep(&nap, NULL);
	}
	give_up(d);
	if (!any_under_way(d))
		(void)SOFT_CUDA_CALL(d, "cuCtxDestroy", ctx_destroy(d->context));
}

void *soft_cuda_thread(void *arg)
{
	struct soft_cuda_device *d = arg;
	int mode = SOFT_CUDA_CAPTURE_RELAXED;
	pp_ns active = pp_clock_monotonic();

	(void)SOFT_CUDA_CALL(d, "cuCtxSetCurrent", ctx_set(d->context));
	(void)d->cuda->capture_mode(&mode);
	do {
		bool any = begin_all(d);
		struct soft_copy *over = reap(d);

		if (over)
			deliver(d, over);
		if (any || over)
			active = pp_clock_monotonic();
	} while (rest(d, active));
	end(d);
	return NULL;
}
