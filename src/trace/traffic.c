/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both questions run at the same time, each in its helper; their answers become one struct, which a
 * recording gives again.
 */
#include "trace/traffic.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "trace/traffic_parts.h"
#include "base/banned.h"

/* On top of the window: NVML's start alone takes seconds on a large machine. */
static const pp_ns GRACE = 5 * PP_SECOND;

/* What an open end can last: read_host() takes no longer window for a measured one. */
static const pp_ns LONGEST = 23 * 3600 * PP_SECOND;
/* NVML's start may take seconds; a job is not held up for longer. */
static const pp_ns START = 3 * PP_SECOND;

bool pp_traffic_until(const struct pp_traffic_question *q, pp_ns end)
{
	struct pollfd p = {.fd = q->open_end ? q->stop : -1, .events = POLLIN};
	pp_ns left;

	/* Once at least: whose looks are slow is late each time, and is to be stopped, too. */
	do {
		left = end - pp_clock_monotonic();
		left = left > 0 ? left : 0;
		const struct timespec time = {left / PP_SECOND, left % PP_SECOND};

		if (ppoll(&p, 1, &time, NULL) > 0)
			return true;
	} while (left > 0);
	return false;
}

void pp_traffic_ready(const struct pp_traffic_question *q)
{
	if (q->open_end)
		(void)!write(q->ready, "r", 1);
}

static double bytes_of(const json_t *object, const char *key, bool *ret_known)
{
	const json_t *v = json_object_get(object, key);
	double bytes = json_is_number(v) ? json_number_value(v) : -1;

	*ret_known = *ret_known && bytes >= 0;
	return bytes >= 0 ? bytes : 0;
}

static void read_ports(const struct pp_answer *a, struct pp_traffic *t)
{
	const json_t *list = json_object_get(a->data, "ports"), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		struct pp_traffic_port *p = &t->port[t->n_ports];
		const char *hca = pp_answer_str(one, "hca");
		int64_t port, sent, received;

		if (t->n_ports == PP_TRAFFIC_PORTS)
			break;
		if (!hca || pp_answer_i64(one, "port", &port) || port < 1 || port > 255 ||
		    pp_answer_i64(one, "sent_bytes", &sent) || sent < 0 ||
		    pp_answer_i64(one, "received_bytes", &received) || received < 0)
			continue;
		(void)snprintf(p->hca, sizeof(p->hca), "%s", hca);
		pp_sanitize(p->hca, false);
		p->port = (unsigned int)port;
		p->simulated = json_is_true(json_object_get(one, "simulated"));
		p->sent = (uint64_t)sent;
		p->received = (uint64_t)received;
		t->n_ports++;
	}
	if (!t->n_ports)
		(void)snprintf(t->why_ports, sizeof(t->why_ports), "%s",
			       a->answered ? "no port of an RDMA device shows byte counters"
					   : a->detail);
}

static void read_host(const struct pp_answer *a, struct pp_traffic *t)
{
	const char *error = pp_answer_str(a->data, "uncore_error");
	int64_t us;

	if (!pp_answer_i64(a->data, "window_us", &us) && us > 0 && us < 86400LL * 1000000)
		t->window = us * 1000;
	t->host.known = t->host.io_known = a->answered && !error;
	t->host.read = bytes_of(a->data, "memory_read_bytes", &t->host.known);
	t->host.written = bytes_of(a->data, "memory_written_bytes", &t->host.known);
	t->host.io_in = bytes_of(a->data, "io_in_bytes", &t->host.io_known);
	t->host.io_out = bytes_of(a->data, "io_out_bytes", &t->host.io_known);
	if (!t->host.known)
		(void)snprintf(t->host.why, sizeof(t->host.why), "%s",
			       error	     ? error
			       : a->answered ? "the kernel counts no bytes of memory controllers"
					     : a->detail);
	pp_sanitize(t->host.why, false);
}

static void read_gpus(const struct pp_answer *a, struct pp_traffic *t)
{
	const json_t *list = json_object_get(a->data, "gpus"), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		struct pp_traffic_gpu *g = &t->gpu[t->n_gpus];
		const char *bdf = pp_answer_str(one, "bdf"), *error = pp_answer_str(one, "error");

		if (t->n_gpus == PP_TRAFFIC_GPUS)
			break;
		if (!bdf)
			continue;
		(void)snprintf(g->bdf, sizeof(g->bdf), "%s", bdf);
		pp_sanitize(g->bdf, false);
		g->known = !error;
		g->sent = bytes_of(one, "sent_bytes", &g->known);
		g->received = bytes_of(one, "received_bytes", &g->known);
		g->sampled = json_is_true(json_object_get(one, "sampled"));
		if (!g->known)
			(void)snprintf(g->why, sizeof(g->why), "%s",
				       error ? error : "not answered");
		pp_sanitize(g->why, false);
		t->n_gpus++;
	}
	if (!t->n_gpus)
		(void)snprintf(t->why_gpus, sizeof(t->why_gpus), "%s",
			       a->answered ? "NVML lists no GPU" : a->detail);
}

/* The answers of both, which end at the same time. */
static int take(struct pp_source *s, const struct pp_question *host, const struct pp_question *gpu,
		pp_ns window, struct pp_traffic *ret)
{
	struct pp_answer from_host, from_gpu;
	int r = pp_ask(s, host, &from_host);

	if (r)
		return r;
	r = pp_ask(s, gpu, &from_gpu);
	if (r) {
		pp_answer_done(&from_host);
		return r;
	}
	*ret = (struct pp_traffic){.window = window};
	read_ports(&from_host, ret);
	read_host(&from_host, ret);
	read_gpus(&from_gpu, ret);
	pp_answer_done(&from_host);
	pp_answer_done(&from_gpu);
	return 0;
}

int pp_traffic_watch(struct pp_source *s, pp_ns window, bool module_absent, struct pp_traffic *ret)
{
	const struct pp_traffic_question arg = {
		.src = s, .window = window, .module_absent = module_absent};
	const struct pp_question host = {.name = "traffic-host",
					 .run = pp_traffic_host_run,
					 .arg = &arg,
					 .deadline = window + GRACE};
	const struct pp_question gpu = {.name = "traffic-gpu",
					.run = pp_traffic_gpu_run,
					.arg = &arg,
					.deadline = window + GRACE};

	pp_ask_ahead(s, &gpu);
	return take(s, &host, &gpu, window, ret);
}

struct pp_traffic_span {
	int stop[2], ready[2]; /* pipes */
	struct pp_traffic_question arg;
	struct pp_question host, gpu;
	pp_ns began;
};

static void close_span(struct pp_traffic_span *p)
{
	for (int i = 0; i < 2; i++) {
		pp_cleanup_close(&p->stop[i]);
		pp_cleanup_close(&p->ready[i]);
	}
	free(p);
}

/* Both have begun, or one does not within the time; it then counts from when it has. */
static void await(struct pp_traffic_span *p)
{
	struct pollfd watched = {.fd = p->ready[0], .events = POLLIN};
	pp_ns end = p->began + START, left;
	char byte;

	pp_cleanup_close(&p->ready[1]);
	p->ready[1] = -1;
	for (int n = 0; n < 2 && (left = end - pp_clock_monotonic()) > 0;) {
		if (poll(&watched, 1, (int)(left / PP_MILLISECOND) + 1) <= 0)
			continue;
		if (read(p->ready[0], &byte, 1) != 1)
			return; /* both have ended */
		n++;
	}
}

int pp_traffic_begin(struct pp_source *s, bool module_absent, struct pp_traffic_span **ret)
{
	struct pp_traffic_span *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->stop[0] = p->stop[1] = p->ready[0] = p->ready[1] = -1;
	if (pipe2(p->stop, O_CLOEXEC) || pipe2(p->ready, O_CLOEXEC)) {
		int r = -errno;

		close_span(p);
		return r;
	}
	p->arg = (struct pp_traffic_question){.src = s,
					      .window = LONGEST,
					      .module_absent = module_absent,
					      .open_end = true,
					      .stop = p->stop[0],
					      .ready = p->ready[1]};
	p->host = (struct pp_question){.name = "traffic-host",
				       .run = pp_traffic_host_run,
				       .arg = &p->arg,
				       .deadline = GRACE};
	p->gpu = (struct pp_question){.name = "traffic-gpu",
				      .run = pp_traffic_gpu_run,
				      .arg = &p->arg,
				      .deadline = GRACE};
	p->began = pp_clock_monotonic();
	pp_ask_ahead(s, &p->host);
	pp_ask_ahead(s, &p->gpu);
	await(p);
	*ret = p;
	return 0;
}

int pp_traffic_end(struct pp_source *s, struct pp_traffic_span *span, struct pp_traffic *ret)
{
	int r;

	(void)!write(span->stop[1], "s", 1);
	r = take(s, &span->host, &span->gpu, pp_clock_monotonic() - span->began, ret);
	close_span(span);
	return r;
}
