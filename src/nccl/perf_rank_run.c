/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rank does with its communicator: operations back to back, one at a time, and one whose
 * result is looked at.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/compiler.h"
#include "nccl/perf_rank_state.h"
#include "base/banned.h"

/* A wait spins at first, since short ones are measured; then it naps a small part of its length. */
#define SPIN  (2 * PP_MILLISECOND)
#define LOOK  (PP_MILLISECOND)
#define SHARE 256
/* Who launches into a full stream waits inside CUDA, where he notices no failure: between one and
 * two times so many operations are ahead of the GPU. */
#define AHEAD 256

static int broken(struct pp_perf_rank *r)
{
	r->broken = true;
	return -EIO;
}

static int refuse(struct pp_perf_rank *r, const char *call, int code, struct pp_error *err)
{
	(void)pp_nccl_library_fail(&r->library, r->comm, call, code, err);
	r->remote = code == PP_NCCL_REMOTE_ERROR;
	return broken(r);
}

static bool coordinator_gone(const struct pp_perf_rank *r)
{
	struct pollfd p = {.fd = pp_channel_fd(r->channel), .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

static void nap(pp_ns waited)
{
	pp_ns ns = waited / SHARE < PP_MILLISECOND ? waited / SHARE : PP_MILLISECOND;
	struct timespec t = {.tv_nsec = ns};

	if (waited < SPIN)
		(void)sched_yield();
	else
		(void)nanosleep(&t, NULL);
}

static int mark(struct pp_perf_rank *r, struct pp_error *err)
{
	int code = r->gpu.cuda->call.event_record(r->gpu.event, r->gpu.stream);

	return code ? (pp_cuda_fail(r->gpu.cuda, "cuEventRecord", code, err), broken(r)) : 0;
}

/* Until the mark; NCCL is asked meanwhile whether it has failed. */
static int wait_mark(struct pp_perf_rank *r, const struct pp_perf_task *t, struct pp_error *err)
{
	const struct pp_cuda_calls *call = &r->gpu.cuda->call;
	pp_ns begin = pp_clock_monotonic(), looked = begin, now;
	int code, failed = 0;

	while ((code = call->event_query(r->gpu.event)) == PP_CUDA_NOT_READY) {
		now = pp_clock_monotonic();
		nap(now - begin);
		if (now - looked < LOOK)
			continue;
		looked = now;
		code = r->library.call.async_error(r->comm, &failed);
		if (code || failed)
			return refuse(r, pp_collective_name(t->collective), code ? code : failed,
				      err);
		if (coordinator_gone(r))
			return pp_error_set(err, -ECONNRESET, "the coordinator is gone"), broken(r);
		if (now - begin < t->limit)
			continue;
		(void)pp_error_set(err, -ETIMEDOUT, "%s of %llu bytes did not end in %.0f s",
				   pp_collective_name(t->collective),
				   (unsigned long long)t->shape.bytes,
				   (double)t->limit / (double)PP_SECOND);
		r->broken = true;
		return -ETIMEDOUT;
	}
	return code ? (pp_cuda_fail(r->gpu.cuda, pp_collective_name(t->collective), code, err),
		       broken(r))
		    : 0;
}

/* Until all that is in the stream is done. */
static int wait_all(struct pp_perf_rank *r, const struct pp_perf_task *t, struct pp_error *err)
{
	int e = mark(r, err);

	return e ? e : wait_mark(r, t, err);
}

static int all_to_all(struct pp_perf_rank *r, const struct pp_perf_task *t)
{
	const struct pp_nccl_calls *call = &r->library.call;
	uint64_t step = t->shape.count * pp_element_size(t->element);
	int type = pp_element_code(t->element), e = call->group_start();

	for (int i = 0; i < r->size && !e; i++) {
		e = call->send((void *)(t->from + (uint64_t)i * step), t->shape.count, type, i,
			       r->comm, r->gpu.stream);
		if (!e)
			e = call->receive((void *)(t->to + (uint64_t)i * step), t->shape.count,
					  type, i, r->comm, r->gpu.stream);
	}
	return e ? e : call->group_end();
}

static int to_the_next(struct pp_perf_rank *r, const struct pp_perf_task *t)
{
	const struct pp_nccl_calls *call = &r->library.call;
	int type = pp_element_code(t->element), e = call->group_start();

	if (!e)
		e = call->send((void *)t->from, t->shape.count, type, (r->rank + 1) % r->size,
			       r->comm, r->gpu.stream);
	if (!e)
		e = call->receive((void *)t->to, t->shape.count, type,
				  (r->rank + r->size - 1) % r->size, r->comm, r->gpu.stream);
	return e ? e : call->group_end();
}

static int call_once(struct pp_perf_rank *r, const struct pp_perf_task *t)
{
	const struct pp_nccl_calls *call = &r->library.call;
	void *from = (void *)t->from, *to = (void *)t->to;
	int type = pp_element_code(t->element), op = (int)t->reduction;

	switch (t->collective) {
	case PP_NCCL_ALL_REDUCE:
		return call->all_reduce(from, to, t->shape.count, type, op, r->comm, r->gpu.stream);
	case PP_NCCL_REDUCE_SCATTER:
		return call->reduce_scatter(from, to, t->shape.count, type, op, r->comm,
					    r->gpu.stream);
	case PP_NCCL_ALL_GATHER:
		return call->all_gather(from, to, t->shape.count, type, r->comm, r->gpu.stream);
	case PP_NCCL_ALL_TO_ALL:
		return t->shape.count ? all_to_all(r, t) : 0;
	default:
		return to_the_next(r, t);
	}
}

/* One launch: as many operations as are told to go together. */
static int launch(struct pp_perf_rank *r, const struct pp_perf_task *t, struct pp_error *err)
{
	const struct pp_nccl_calls *call = &r->library.call;
	int e = t->aggregate > 1 ? call->group_start() : 0;

	for (int64_t i = 0; i < t->aggregate && !e; i++)
		e = call_once(r, t);
	if (!e && t->aggregate > 1)
		e = call->group_end();
	return e ? refuse(r, pp_collective_name(t->collective), e, err) : 0;
}

static double processor_seconds(void)
{
	struct rusage u = {0};

	(void)getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* Ranks begin together: an operation of the same kind ends on all of them at about one time. */
static int meet(struct pp_perf_rank *r, const struct pp_perf_task *t, struct pp_error *err)
{
	struct pp_perf_task once = *t;
	int e;

	once.aggregate = 1;
	pp_cuda_enter(r->gpu.cuda);
	e = launch(r, &once, err);
	return e ? e : wait_all(r, &once, err);
}

int pp_perf_rank_time(struct pp_perf_rank *r, const struct pp_perf_task *t, struct pp_json *out,
		      struct pp_error *err)
{
	double before;
	pp_ns begin;
	int e = meet(r, t, err);

	if (e)
		return e;
	before = processor_seconds();
	begin = pp_clock_monotonic();
	for (int64_t i = 0; i < t->iterations && !e; i++) {
		if (i > AHEAD && i % AHEAD == 0)
			e = wait_mark(r, t, err);
		if (i && i % AHEAD == 0 && !e)
			e = mark(r, err);
		if (!e)
			e = launch(r, t, err);
	}
	if (!e)
		e = wait_all(r, t, err);
	if (e)
		return e;
	pp_json_i64(out, "ns", pp_clock_monotonic() - begin);
	pp_json_double(out, "cpu_s", processor_seconds() - before);
	return 0;
}

static void write_all(struct pp_json *out, const char *key, const pp_ns *value, int64_t n)
{
	pp_json_array(out, key);
	for (int64_t i = 0; i < n; i++)
		pp_json_i64(out, NULL, value[i]);
	pp_json_end_array(out);
}

int pp_perf_rank_sample(struct pp_perf_rank *r, const struct pp_perf_task *t, struct pp_json *out,
			struct pp_error *err)
{
	size_t n = (size_t)t->iterations;
	pp_ns *PP_AUTO_FREE entered = calloc(n ? n : 1, sizeof(*entered));
	pp_ns *PP_AUTO_FREE took = calloc(n ? n : 1, sizeof(*took));
	int e = 0;

	if (!entered || !took || n > 10000)
		return pp_error_set(err, -ENOMEM, "too many samples");
	e = meet(r, t, err);
	for (size_t i = 0; i < n && !e; i++) {
		entered[i] = pp_clock_monotonic();
		e = launch(r, t, err);
		if (!e)
			e = wait_all(r, t, err);
		took[i] = pp_clock_monotonic() - entered[i];
	}
	if (e)
		return e;
	write_all(out, "entered_ns", entered, t->iterations);
	write_all(out, "took_ns", took, t->iterations);
	return 0;
}

static struct pp_payload_kind kind_of(const struct pp_perf_rank *r, const struct pp_perf_task *t)
{
	return (struct pp_payload_kind){.element = t->element,
					.reduced = pp_collective_reduces(t->collective),
					.reduction = t->reduction,
					.ranks = (unsigned int)r->size,
					.salt = t->salt};
}

/* Poison wherever the result comes to lie, then what this rank sends. */
static int fill(struct pp_perf_rank *r, const struct pp_perf_task *t,
		const struct pp_payload_kind *k, struct pp_error *err)
{
	unsigned int size = pp_element_size(t->element);
	struct pp_payload own = {0};
	uint64_t most = t->in_place ? t->shape.bytes / size : t->shape.receive;
	int e = pp_perf_gpu_put(&r->gpu, NULL, 0, r->gpu.receive->at, most, size, err);

	if (!e && pp_payload_of_rank(k, (unsigned int)r->rank, &own))
		e = pp_error_set(err, -ENOMEM, "no memory for the payload");
	if (!e)
		e = pp_perf_gpu_put(&r->gpu, &own, 0, t->from, t->shape.send, size, err);
	pp_payload_done(&own);
	return e;
}

/* What came from each rank, one part behind the other. */
static int compare_parts(struct pp_perf_rank *r, const struct pp_perf_task *t,
			 const struct pp_payload_kind *k, struct pp_perf_found *found,
			 struct pp_error *err)
{
	uint64_t part = t->shape.count, size = pp_element_size(t->element), first;
	struct pp_payload p = {0};
	int e = 0;

	for (unsigned int i = 0; i < (unsigned int)r->size && !e; i++) {
		if (pp_payload_of_rank(k, i, &p))
			return pp_error_set(err, -ENOMEM, "no memory for the payload");
		first = t->collective == PP_NCCL_ALL_TO_ALL ? (uint64_t)r->rank * part : 0;
		e = pp_perf_gpu_compare(&r->gpu, &p, first, t->to + i * part * size, part, found,
					err);
		pp_payload_done(&p);
	}
	return e;
}

static int compare(struct pp_perf_rank *r, const struct pp_perf_task *t,
		   const struct pp_payload_kind *k, struct pp_perf_found *found,
		   struct pp_error *err)
{
	unsigned int before = (unsigned int)((r->rank + r->size - 1) % r->size);
	struct pp_payload p = {0};
	uint64_t first;
	int e;

	if (t->collective == PP_NCCL_ALL_GATHER || t->collective == PP_NCCL_ALL_TO_ALL)
		return compare_parts(r, t, k, found, err);
	e = k->reduced ? pp_payload_reduced(k, &p) : pp_payload_of_rank(k, before, &p);
	if (e)
		return pp_error_set(err, e, "no memory for the payload");
	first = t->collective == PP_NCCL_REDUCE_SCATTER ? (uint64_t)r->rank * t->shape.count : 0;
	e = pp_perf_gpu_compare(&r->gpu, &p, first, t->to, t->shape.receive, found, err);
	pp_payload_done(&p);
	return e;
}

int pp_perf_rank_check(struct pp_perf_rank *r, const struct pp_perf_task *t, struct pp_json *out,
		       struct pp_error *err)
{
	struct pp_payload_kind k = kind_of(r, t);
	struct pp_perf_found found = {0};
	int e = pp_payload_possible(&k, err);

	pp_cuda_enter(r->gpu.cuda);
	if (!e)
		e = fill(r, t, &k, err);
	if (!e)
		e = launch(r, t, err);
	if (!e)
		e = wait_all(r, t, err);
	if (!e)
		e = compare(r, t, &k, &found, err);
	if (e)
		return e;
	pp_json_u64(out, "checked", found.checked);
	pp_json_u64(out, "wrong", found.wrong);
	if (found.wrong)
		pp_json_u64(out, "first", found.first);
	return 0;
}
