/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/copy/cuda_device.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "soft/copy/cuda_parts.h"

#include "base/banned.h"

/* The library's own way to say where its daemon listens (CUDA MPS documentation). */
static bool mps_by_pipe(void)
{
	const char *dir = getenv("CUDA_MPS_PIPE_DIRECTORY");

	return dir ? access(dir, F_OK) == 0 : access("/tmp/nvidia-mps/control", F_OK) == 0;
}

static bool processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 2;
}

static void look_up(struct soft_cuda_device *d)
{
	int value = 0;

	if (d->cuda->device_bus_id(d->bus_id, sizeof(d->bus_id), d->device))
		d->bus_id[0] = '\0';
	d->bus_id[sizeof(d->bus_id) - 1] = '\0';
	for (char *p = d->bus_id; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	d->mps = d->cuda->device_attribute(&value, SOFT_CUDA_DEVICE_MPS_ENABLED, d->device)
			 ? mps_by_pipe()
			 : value != 0;
}

int soft_cuda_device_new(int ordinal, soft_cuda_deliver *deliver, void *arg,
			 struct soft_cuda_device **ret)
{
	const struct soft_cuda_driver *cuda = soft_cuda_driver();
	struct soft_cuda_device *d;
	pthread_mutexattr_t attr;

	if (!cuda)
		return -ENODEV;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->cuda = cuda;
	d->ordinal = ordinal;
	d->deliver = deliver;
	d->arg = arg;
	d->copier = (struct soft_copier){soft_cuda_start, soft_cuda_cancel, .device = d};
	d->allocated = (struct soft_copier){soft_cuda_start_allocated, soft_cuda_cancel_allocated,
					    .device = d};
	d->spins = processors();
	if (cuda->device_get(&d->device, ordinal)) {
		free(d);
		return -ENODEV;
	}
	look_up(d);
	pthread_mutexattr_init(&attr);
	/* Held for a moment, and the engine waits for it. */
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&d->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	pthread_cond_init(&d->more, NULL);
	pthread_cond_init(&d->delivered, NULL);
	*ret = d;
	return 0;
}

/* With the context current. */
static int furnish(struct soft_cuda_device *d)
{
	int r = 0;

	for (unsigned int way = 0; way < SOFT_CUDA_DIRECTIONS && !r; way++) {
		r = d->cuda->stream_create(&d->streams[way], SOFT_CUDA_STREAM_NON_BLOCKING);
		for (unsigned int i = 0; i < SOFT_CUDA_BATCHES && !r; i++)
			r = d->cuda->event_create(&d->batches[way][i].event,
						  SOFT_CUDA_EVENT_DISABLE_TIMING);
	}
	d->kernel = soft_cuda_kernel_load(d->cuda);
	d->together = soft_cuda_together();
	return soft_cuda_errno(r);
}

static int start_thread(struct soft_cuda_device *d)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&d->thread, NULL, soft_cuda_thread, d);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return -rc;
	pthread_setname_np(d->thread, "peerpath-copy");
	pthread_mutex_lock(&d->lock);
	d->has_thread = true;
	pthread_mutex_unlock(&d->lock);
	return 0;
}

int soft_cuda_device_open(struct soft_cuda_device *d)
{
	soft_cuda_context was, made;
	int r, mode = SOFT_CUDA_CAPTURE_RELAXED;

	if (d->context)
		return 0;
	/* A stream that the caller captures is not our concern. */
	(void)d->cuda->capture_mode(&mode);
	r = soft_cuda_errno(d->cuda->ctx_create(&made, /* flags= */ 0, d->device));
	if (!r) {
		r = furnish(d);
		(void)d->cuda->ctx_pop(&was);
		d->context = made;
		if (!r)
			r = start_thread(d);
		if (r) {
			d->context = NULL;
			(void)d->cuda->ctx_destroy(made);
		}
	}
	(void)d->cuda->capture_mode(&mode);
	return r;
}

int soft_cuda_device_pin(struct soft_cuda_device *d, void *at, size_t len)
{
	soft_cuda_context was;
	int r, mode = SOFT_CUDA_CAPTURE_RELAXED;

	(void)d->cuda->capture_mode(&mode);
	r = d->cuda->ctx_push(d->context);
	if (!r) {
		r = d->cuda->host_register(at, len, SOFT_CUDA_HOSTREGISTER_PORTABLE);
		(void)d->cuda->ctx_pop(&was);
	}
	(void)d->cuda->capture_mode(&mode);
	return soft_cuda_errno(r);
}

static bool end_thread(struct soft_cuda_device *d)
{
	struct timespec until;

	pthread_mutex_lock(&d->lock);
	atomic_store(&d->stop, true);
	pthread_cond_signal(&d->more);
	pthread_mutex_unlock(&d->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 2;
	if (pthread_timedjoin_np(d->thread, NULL, &until) == 0)
		return true;
	pthread_mutex_lock(&d->lock);
	d->alone = true;
	while (d->delivers)
		pthread_cond_wait(&d->delivered, &d->lock);
	pthread_mutex_unlock(&d->lock);
	pthread_detach(d->thread);
	return false;
}

bool soft_cuda_device_end(struct soft_cuda_device *d)
{
	return !d || !d->has_thread || end_thread(d);
}

void soft_cuda_device_free(struct soft_cuda_device *d)
{
	if (!d)
		return;
	pthread_cond_destroy(&d->more);
	pthread_cond_destroy(&d->delivered);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

struct soft_copier *soft_cuda_device_copier(struct soft_cuda_device *d, bool vmm)
{
	return vmm ? &d->copier : &d->allocated;
}

/* All of a list are counted; the first of it is its oldest. */
static void look_at(struct soft_cuda_watch *w, const struct soft_copy *copy, bool begun)
{
	if (copy && (!w->oldest_since || copy->begun < w->oldest_since)) {
		w->oldest_since = copy->begun;
		w->oldest_bytes = copy->len;
		w->to_device = copy->to_device;
		w->direct = copy->from != 0;
		w->what = copy->what;
		w->begun = begun;
	}
	for (; copy; copy = copy->next)
		w->under_way++;
}

void soft_cuda_device_watch(struct soft_cuda_device *d, struct soft_cuda_watch *ret)
{
	struct soft_cuda_watch w = {
		.ordinal = d->ordinal,
		.bus_id = d->bus_id,
		.mps = d->mps,
	};

	pthread_mutex_lock(&d->lock);
	w.open = d->has_thread;
	w.kernel = d->has_thread && d->kernel;
	w.copies = d->copies;
	w.bytes = d->bytes;
	w.failed = d->failed;
	for (unsigned int way = 0; way < SOFT_CUDA_DIRECTIONS; way++) {
		look_at(&w, d->waiting[way].first, /* begun= */ false);
		for (unsigned int i = 0; i < SOFT_CUDA_BATCHES; i++)
			look_at(&w, d->batches[way][i].copies.first, /* begun= */ true);
	}
	pthread_mutex_unlock(&d->lock);
	w.inside = atomic_load(&d->inside);
	w.inside_since = atomic_load(&d->inside_since);
	*ret = w;
}
