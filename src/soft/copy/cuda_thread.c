/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of a GPU. Copies of a direction are done in the order in which they were begun, so
 * that one event is looked at: from and to staging in one stream, which suits the bus; from a
 * peer's memory in a stream for each of a few queue pairs, since such a copy is short beside what
 * surrounds it.
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
enum { FEW = 32 << 10 }; /* bytes that the driver does not leave to a copy engine */
static const uint32_t SCATTER = 2654435769; /* numbers of queue pairs come in steps */

/* A call of CUDA, and its name for as long as it lasts. */
#define CALL_BY(d, name, call) (enter(d, name), leave(d, call))
#define CALL(d, name, call)    CALL_BY(d, name, (d)->cuda->call)

static void enter(struct soft_cuda_device *d, const char *name)
{
	atomic_store_explicit(&d->inside_since, pp_clock_monotonic(), memory_order_relaxed);
	atomic_store_explicit(&d->inside, name, memory_order_release);
}

static int leave(struct soft_cuda_device *d, int result)
{
	atomic_store_explicit(&d->inside, NULL, memory_order_release);
	return result;
}

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

/* The next copy that CUDA may be given, moved to those under way; NULL: none. */
static struct soft_copy *take(struct soft_cuda_device *d, unsigned int way,
			      soft_cuda_event *ret_event)
{
	struct soft_copy *copy = NULL;

	pthread_mutex_lock(&d->lock);
	if (d->waiting[way].first && d->num[way] < SOFT_CUDA_UNDER_WAY) {
		copy = pop(&d->waiting[way]);
		copy->event = d->events[way][d->next_event[way]++ % SOFT_CUDA_UNDER_WAY];
		*ret_event = copy->event;
		copy->rc = 0;
		push(&d->under_way[way], copy);
		d->num[way]++;
	}
	pthread_mutex_unlock(&d->lock);
	return copy;
}

/* In this thread and context: the call may wait for what goes on there, which are our copies, and
 * those end by themselves. */
static int oblige(struct soft_cuda_device *d, struct soft_copy *copy)
{
	const unsigned int flags =
		SOFT_CUDA_HOSTREGISTER_PORTABLE | SOFT_CUDA_HOSTREGISTER_READ_ONLY;

	switch (copy->what) {
	case SOFT_COPY_PIN:
		return CALL(d, "cuMemHostRegister", host_register(copy->host, copy->len, flags));
	case SOFT_COPY_UNPIN:
		return CALL(d, "cuMemHostUnregister", host_unregister(copy->host));
	case SOFT_COPY_MAP:
		return CALL_BY(d, "mapping of a peer's memory", soft_cuda_map(d, copy->mapping));
	default:
		return CALL_BY(d, "unmapping of a peer's memory",
			       soft_cuda_unmap(d, copy->mapping));
	}
}

/* The stream of a copy, behind what its queue pair has in another one. */
static int choose(struct soft_cuda_device *d, struct soft_copy *copy, soft_cuda_stream *ret)
{
	const struct soft_copy *other = NULL;

	copy->stream = copy->from && copy->to_device
			       ? 1 + (copy->chain * SCATTER >> 16) % (SOFT_CUDA_STREAMS - 1)
			       : 0;
	*ret = d->streams[copy->to_device][copy->stream];
	d->in[copy->to_device][copy->stream]++;
	/* A queue pair has two streams: this one is the only one in use, as a rule. Only this
	 * thread changes what is under way; @copy is its last. */
	if (d->in[copy->to_device][copy->stream] == d->num[copy->to_device])
		return 0;
	for (const struct soft_copy *c = d->under_way[copy->to_device].first; c != copy;
	     c = c->next)
		if (c->what == SOFT_COPY && c->chain == copy->chain && c->stream != copy->stream)
			other = c;
	return other ? CALL(d, "cuStreamWaitEvent", stream_wait(*ret, other->event, 0)) : 0;
}

static int begin(struct soft_cuda_device *d, struct soft_copy *copy, soft_cuda_event event)
{
	uint64_t there = copy->from ? copy->from : (uintptr_t)copy->host;
	soft_cuda_stream stream;
	int r;

	if (copy->what != SOFT_COPY)
		return oblige(d, copy);
	r = choose(d, copy, &stream);
	if (r)
		return r;
	if (copy->by_kernel && d->kernel)
		r = CALL_BY(d, "cuLaunchKernel",
			    soft_cuda_kernel_copy(d, copy->to_device ? copy->at : there,
						  copy->to_device ? there : copy->at, copy->len,
						  stream));
	else if (copy->from)
		r = CALL_BY(d, "cuMemcpyDtoDAsync",
			    soft_cuda_peers()->copy(copy->at, copy->from, copy->len, stream));
	else if (copy->to_device && copy->len < FEW && !d->mps)
		r = CALL_BY(d, "cuMemcpy2DAsync",
			    soft_cuda_few_to_device(d, copy->at, copy->host, copy->len, stream));
	else if (copy->to_device)
		r = CALL(d, "cuMemcpyHtoDAsync",
			 to_device(copy->at, copy->host, copy->len, stream));
	else
		r = CALL(d, "cuMemcpyDtoHAsync", to_host(copy->host, copy->at, copy->len, stream));
	if (!r)
		r = CALL(d, "cuEventRecord", event_record(event, stream));
	return r;
}

static bool begin_all(struct soft_cuda_device *d)
{
	uint32_t asked = atomic_load_explicit(&d->asked, memory_order_acquire);
	struct soft_copy *copy;
	soft_cuda_event event;
	bool any = false;

	if (asked == d->seen)
		return false;
	for (unsigned int way = 0; way < SOFT_CUDA_DIRECTIONS; way++) {
		while ((copy = take(d, way, &event)) != NULL) {
			int r = begin(d, copy, event);

			/* Only this thread takes it out of its queue. */
			if (r)
				copy->rc = soft_cuda_errno(r);
			any = true;
		}
	}
	/* Of one direction more may wait than CUDA is given at a time. */
	if (d->num[0] < SOFT_CUDA_UNDER_WAY && d->num[1] < SOFT_CUDA_UNDER_WAY)
		d->seen = asked;
	return any;
}

/* Those that are over, in order. */
static struct soft_copy *reap(struct soft_cuda_device *d)
{
	struct soft_cuda_queue over = {0};

	for (unsigned int way = 0; way < SOFT_CUDA_DIRECTIONS; way++) {
		struct soft_copy *copy;

		while ((copy = d->under_way[way].first) != NULL) {
			int r = 0;

			if (!copy->rc && copy->what == SOFT_COPY)
				r = CALL(d, "cuEventQuery", event_query(copy->event));

			if (r == SOFT_CUDA_NOT_READY)
				break;
			if (r)
				copy->rc = soft_cuda_errno(r);
			if (copy->what == SOFT_COPY)
				d->in[way][copy->stream]--;
			pthread_mutex_lock(&d->lock);
			(void)pop(&d->under_way[way]);
			d->num[way]--;
			d->failed += copy->rc != 0 && copy->what == SOFT_COPY;
			pthread_mutex_unlock(&d->lock);
			push(&over, copy);
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

static bool idle_locked(const struct soft_cuda_device *d)
{
	return !d->waiting[0].first && !d->waiting[1].first && !d->num[0] && !d->num[1];
}

/* Until there is more to do. false: the end. */
static bool rest(struct soft_cuda_device *d, pp_ns active)
{
	pp_ns now = pp_clock_monotonic();
	bool idle = !d->num[0] && !d->num[1] && atomic_load(&d->asked) == d->seen;

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
				push(copy->what == SOFT_COPY_UNMAP ? &lasting : &vain, copy);
			}
		}
		pthread_mutex_unlock(&d->lock);
		/* Addresses that were reserved are the process's, and stay when the context goes.
		 */
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
	while (d->num[0] + d->num[1] && pp_clock_monotonic() < until) {
		const struct timespec nap = {.tv_nsec = NAP};
		struct soft_copy *over = reap(d);

		if (over)
			deliver(d, over);
		else
			(void)nanosleep(&nap, NULL);
	}
	give_up(d);
	if (!d->num[0] && !d->num[1])
		(void)CALL(d, "cuCtxDestroy", ctx_destroy(d->context));
}

void *soft_cuda_thread(void *arg)
{
	struct soft_cuda_device *d = arg;
	int mode = SOFT_CUDA_CAPTURE_RELAXED;
	pp_ns active = pp_clock_monotonic();

	(void)CALL(d, "cuCtxSetCurrent", ctx_set(d->context));
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
