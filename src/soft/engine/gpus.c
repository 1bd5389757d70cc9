/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/engine/gpus.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "soft/copy/cuda_driver.h"
#include "soft/engine/direct.h"
#include "soft/engine/parts.h"

#include "base/banned.h"

enum { HUGE_PAGE = 2 << 20 };

void soft_gpus_init(struct soft_gpus *gpus)
{
	pthread_mutex_init(&gpus->making, NULL);
	gpus->shelf.fd = -1;
}

void soft_gpus_done(struct soft_engine *e)
{
	const struct soft_staging *pools[] = {&e->mover.out, &e->mover.in};
	bool ended = true;

	atomic_store(&e->gpus.ends, true);
	/* What one has done may ask another for more, the first one above all, which maps. */
	for (int i = SOFT_GPUS_MAX; i-- > 0;)
		ended = soft_cuda_device_end(e->gpus.gpus[i]) && ended;
	soft_gpus_deliver(e);
	for (int i = 0; i < SOFT_GPUS_MAX && ended; i++)
		soft_cuda_device_free(e->gpus.gpus[i]);
	/* One that hangs may still read there. */
	for (unsigned int p = 0; p < 2 && ended; p++)
		for (unsigned int i = 0; i < pools[p]->num; i++)
			if (!pools[p]->segments[i].generations)
				(void)munmap(pools[p]->segments[i].memory, SOFT_STAGING_SEGMENT);
	if (ended)
		soft_shelf_done(&e->gpus.shelf);
	soft_exports_done(&e->gpus.exports);
	pthread_mutex_destroy(&e->gpus.making);
}

static struct soft_copy *reversed(struct soft_copy *list)
{
	struct soft_copy *other = NULL;

	for (struct soft_copy *next; list; list = next) {
		next = list->next;
		list->next = other;
		other = list;
	}
	return other;
}

/* What waited for them goes on, as it would in a turn. */
static void go_on(struct soft_engine *e)
{
	struct soft_copy *list = reversed(atomic_exchange(&e->gpus.over, NULL));
	pp_ns before = e->next_deadline;

	for (struct soft_copy *next; list; list = next) {
		next = list->next;
		soft_copy_done(list, list->rc);
	}
	soft_engine_hand_over(e, before, soft_engine_send_ready(e, pp_clock_monotonic()));
}

void soft_gpus_deliver(struct soft_engine *e)
{
	/* Whoever has the lock looks once more when it has left it: after what is there now. */
	atomic_thread_fence(memory_order_seq_cst);
	while (atomic_load(&e->gpus.over) && !pthread_mutex_trylock(&e->lock)) {
		go_on(e);
		pthread_mutex_unlock(&e->lock);
		atomic_thread_fence(memory_order_seq_cst);
	}
}

/* From a GPU's thread, which does not wait: a caller that polls has the lock most of the time. */
static void over(void *arg, struct soft_copy *list)
{
	struct soft_engine *e = arg;
	struct soft_copy *last = list, *before = atomic_load(&e->gpus.over);

	list = reversed(list);
	do
		last->next = before;
	while (!atomic_compare_exchange_weak(&e->gpus.over, &before, list));
	if (atomic_load(&e->gpus.ends)) {
		pthread_mutex_lock(&e->lock);
		go_on(e);
		pthread_mutex_unlock(&e->lock);
	} else {
		soft_gpus_deliver(e);
	}
}

/* Of huge pages, where there are any: a peer that reads it looks each page up. NULL: none. */
static void *segment_new(void)
{
	size_t more = SOFT_STAGING_SEGMENT + HUGE_PAGE;
	uint8_t *at = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (at == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)at % HUGE_PAGE;
	if (before)
		(void)munmap(at, before);
	(void)munmap(at + before + SOFT_STAGING_SEGMENT, more - before - SOFT_STAGING_SEGMENT);
	at += before;
	(void)madvise(at, SOFT_STAGING_SEGMENT, MADV_HUGEPAGE);
	/* Now, not in the middle of traffic. */
	memset(at, 0, SOFT_STAGING_SEGMENT);
	return at;
}

const struct soft_shelf *soft_gpus_shelf(const struct soft_engine *e)
{
	return e->gpus.shelf.bytes ? &e->gpus.shelf : NULL;
}

/* Lanes show it when they are made, which may be before memory is registered: so it is made for
 * any process with CUDA, and takes no room until it is used. Without it staging is private. */
static void make_shelf(struct soft_engine *e)
{
	struct soft_shelf shelf;

	if (e->gpus.shelf.bytes || !soft_cuda_driver() || soft_shelf_make(&shelf) < 0)
		return;
	soft_engine_lock(e);
	e->gpus.shelf = shelf;
	e->mover.shelf = &e->gpus.shelf;
	soft_engine_unlock(e);
}

void soft_gpus_inherited(struct soft_engine *e)
{
	atomic_store(&e->gpus.over, NULL);
	if (e->gpus.shelf.bytes)
		(void)close(e->gpus.shelf.fd);
	/* Its mapping stayed with the parent. */
	e->gpus.shelf = (struct soft_shelf){.fd = -1};
	e->mover.shelf = NULL;
	soft_exports_done(&e->gpus.exports);
}

/* The next segment of bytes on their way out, on the shelf if there is one. */
static void *segment_out(struct soft_engine *e, _Atomic uint32_t **ret_generations)
{
	const struct soft_shelf *shelf = &e->gpus.shelf;
	unsigned int i = e->mover.out.num;
	uint8_t *at;

	if (!shelf->bytes)
		return segment_new();
	at = shelf->bytes + (size_t)i * SOFT_STAGING_SEGMENT;
	memset(at, 0, SOFT_STAGING_SEGMENT);
	*ret_generations = shelf->generations + i * (SOFT_SHELF_UNITS / SOFT_STAGING_SEGMENTS);
	return at;
}

/* A segment of either direction for each queue pair, as far as there are any. */
static int stage(struct soft_engine *e, struct soft_cuda_device *gpu)
{
	struct soft_staging *pools[] = {&e->mover.out, &e->mover.in};
	unsigned int wanted =
		e->gpus.ready < SOFT_STAGING_SEGMENTS ? e->gpus.ready : SOFT_STAGING_SEGMENTS;

	for (unsigned int i = 0; i < 2; i++) {
		while (pools[i]->num < wanted) {
			_Atomic uint32_t *generations = NULL;
			void *at = i ? segment_new() : segment_out(e, &generations);
			int rc;

			if (!at)
				return -ENOMEM;
			/* A child's copy of a page would take the GPU's place for it away. */
			(void)madvise(at, SOFT_STAGING_SEGMENT, MADV_DONTFORK);
			rc = soft_cuda_device_pin(gpu, at, SOFT_STAGING_SEGMENT);
			if (rc) {
				if (!generations)
					(void)munmap(at, SOFT_STAGING_SEGMENT);
				return rc;
			}
			soft_engine_lock(e);
			(void)soft_staging_add(pools[i], at, generations);
			soft_engine_unlock(e);
		}
	}
	return 0;
}

/* All that is registered, for all that are ready. */
static int prepare(struct soft_engine *e)
{
	struct soft_cuda_device *any = NULL;

	if (!e->gpus.ready || !e->gpus.registered)
		return 0;
	for (int i = 0; i < SOFT_GPUS_MAX; i++) {
		int rc = e->gpus.gpus[i] ? soft_cuda_device_open(e->gpus.gpus[i]) : 0;

		if (rc)
			return rc;
		if (!any)
			any = e->gpus.gpus[i];
	}
	if (any && !e->gpus.mapper) {
		soft_engine_lock(e);
		e->gpus.mapper = any;
		soft_engine_unlock(e);
	}
	return any ? stage(e, any) : 0;
}

int soft_gpus_register(struct soft_engine *e, int ordinal, struct soft_cuda_device **ret)
{
	struct soft_gpus *d = &e->gpus;
	int rc = 0;

	if (ordinal < 0 || ordinal >= SOFT_GPUS_MAX)
		return -ENODEV;
	pthread_mutex_lock(&d->making);
	if (!d->gpus[ordinal])
		rc = soft_cuda_device_new(ordinal, over, e, &d->gpus[ordinal]);
	if (!rc) {
		d->registered = true;
		rc = prepare(e);
	}
	if (!rc)
		*ret = d->gpus[ordinal];
	pthread_mutex_unlock(&d->making);
	return rc;
}

int soft_gpus_ready(struct soft_engine *e)
{
	struct soft_gpus *d = &e->gpus;
	int rc;

	pthread_mutex_lock(&d->making);
	if (d->ready < SOFT_STAGING_SEGMENTS)
		d->ready++;
	make_shelf(e);
	rc = prepare(e);
	pthread_mutex_unlock(&d->making);
	return rc;
}

bool soft_gpus_leave(struct soft_engine *e, struct soft_region *region)
{
	const struct timespec nap = {.tv_nsec = 50000};
	pp_ns until = pp_clock_monotonic() + SOFT_CUDA_SLOW;
	uint32_t left;

	soft_engine_lock(e);
	region->copier->cancel(region->copier, region);
	for (;;) {
		left = region->copies;
		soft_engine_unlock(e);
		if (!left)
			return true;
		if (pp_clock_monotonic() > until)
			break;
		(void)nanosleep(&nap, NULL);
		soft_engine_lock(e);
	}
	/* A peer that does not run may go on at any time, but not with these bytes. */
	soft_engine_lock(e);
	soft_direct_revoke(e, region);
	left = region->copies;
	soft_engine_unlock(e);
	return !left;
}

void soft_gpus_each(struct soft_engine *e, void (*each)(void *, const struct soft_cuda_watch *),
		    void *arg)
{
	for (int i = 0; i < SOFT_GPUS_MAX; i++) {
		struct soft_cuda_watch watch;

		if (!e->gpus.gpus[i])
			continue;
		soft_cuda_device_watch(e->gpus.gpus[i], &watch);
		each(arg, &watch);
	}
}

const struct soft_mover *soft_gpus_mover(const struct soft_engine *e)
{
	return &e->mover;
}
