/* SPDX-License-Identifier: Apache-2.0 */
#include "base/compiler.h"
#include "nccl/gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

static struct pp_nccl_process *process_at(const struct pp_nccl_said *s)
{
	return pp_nccl_table_at(&s->job->processes, s->process);
}

void pp_nccl_gather_channel(struct pp_nccl_said *s)
{
	struct pp_nccl_job *job = s->job;
	struct pp_nccl_channel c = s->event->channel;
	struct pp_nccl_end key = {0}, *e;
	bool ambiguous, is_new;
	uint32_t i;

	if (!s->event->has_channel && !pp_nccl_channel_read(s->line->message, &c))
		return;
	pp_nccl_gather_range(job, c.oldest, c.newest);
	key.key.process = s->process;
	key.key.member = pp_nccl_gather_owner(s, &c, &ambiguous);
	key.key.from = c.from;
	key.key.to = c.to;
	key.key.channel = c.channel;
	key.key.network = pp_nccl_job_intern(job, c.network);
	key.key.connection = c.connection;
	key.key.device = c.device;
	key.key.proxy = c.proxy;
	key.key.transport = (uint8_t)c.transport;
	key.key.direction = (uint8_t)c.direction;
	key.key.gdr = c.gdr;
	key.key.pci = c.pci;
	key.key.shared = c.shared;
	key.key.old = c.newest <= PP_NCCL_V(2, 11, 99);
	i = pp_nccl_table_put(&job->ends, &key, &is_new);
	if (i == PP_NCCL_NONE)
		return;
	e = pp_nccl_table_at(&job->ends, i);
	e->count++;
	e->ambiguous |= ambiguous;
	job->last_end = i + 1;
	job->last_end_at = pp_nccl_job_here(job);
	if (is_new)
		e->place = pp_nccl_job_here(job);
}

/* "/GDRDMA" alone in a line: the connection line before it was broken in two. */
void pp_nccl_gather_torn(struct pp_nccl_said *s)
{
	struct pp_nccl_job *job = s->job;
	struct pp_nccl_place here = pp_nccl_job_here(job);
	struct pp_nccl_end *e;

	if (!job->unfinished++)
		job->unfinished_at = here;
	if (!job->last_end || job->last_end_at.file != here.file ||
	    job->last_end_at.line + 1 != here.line)
		return;
	e = pp_nccl_table_at(&job->ends, job->last_end - 1);
	e->torn |= !e->key.gdr;
}

static void mark(struct pp_nccl_job *job, struct pp_nccl_place *place)
{
	if (place->file == PP_NCCL_NONE)
		*place = pp_nccl_job_here(job);
}

static void error_text(struct pp_nccl_said *s, struct pp_nccl_error *e)
{
	struct pp_nccl_span m = s->line->message, t = s->line->stamp;

	e->place = pp_nccl_job_here(s->job);
	(void)snprintf(e->text, sizeof(e->text), "%.*s",
		       m.len < PP_NCCL_TEXT ? (int)m.len : PP_NCCL_TEXT - 1, m.at);
	if (t.len)
		(void)snprintf(e->stamp, sizeof(e->stamp), "%.*s", (int)t.len, t.at);
}

static void add_error(struct pp_nccl_said *s, uint64_t status, uint64_t vendor)
{
	struct pp_nccl_job *job = s->job;
	struct pp_nccl_error key = {0}, *e;
	bool is_new, flush = status == 5;
	uint32_t i;

	key.key.process = s->process;
	key.key.kind = s->event->kind;
	if (key.key.kind == PP_NCCL_COMPLETION_NAMED)
		key.key.kind = PP_NCCL_COMPLETION;
	key.key.status = status < UINT32_MAX ? (uint32_t)status : UINT32_MAX;
	key.key.vendor = vendor < UINT32_MAX ? (uint32_t)vendor : UINT32_MAX;
	if (flush && job->flushes >= PP_NCCL_MAX_FLUSHES &&
	    pp_nccl_table_find(&job->errors, &key) == PP_NCCL_NONE)
		return;
	i = pp_nccl_table_put(&job->errors, &key, &is_new);
	if (i == PP_NCCL_NONE)
		return;
	e = pp_nccl_table_at(&job->errors, i);
	e->count++;
	if (!is_new)
		return;
	job->flushes += flush;
	error_text(s, e);
}

static bool ends_with(struct pp_nccl_span s, const char *tail)
{
	size_t n = strlen(tail);

	return s.len >= n && !memcmp(s.at + s.len - n, tail, n);
}

/*
 * The library's own functions that give up on a communicator, a collective or a connection. A
 * network's init is none: another network may take over (plugin/net.cc).
 */
static void add_return(struct pp_nccl_said *s, struct pp_nccl_span file, uint64_t code)
{
	static const char *const files[] = {
		"init.cc",     "group.cc",	   "enqueue.cc",
		"proxy.cc",    "transport.cc",	   "transport/net.cc",
		"coll_net.cc", "transport/p2p.cc", "transport/generic.cc"};
	struct pp_nccl_process *p = process_at(s);

	if (code < 1 || code > 6)
		return;
	for (size_t i = 0; i < PP_ARRAY_LEN(files); i++) {
		if (!ends_with(file, files[i]))
			continue;
		mark(s->job, &p->returned);
		/* without lines of its start the text may be the end of a long log */
		if (!i || p->members)
			mark(s->job, &p->start_failed);
		return;
	}
}

/* "exited on signal 9 (Killed)", "failed (exitcode: -9)" */
static uint64_t signal_of(struct pp_nccl_span text)
{
	uint64_t n = 0;

	if (!pp_nccl_span_number(text, "(exitcode: -", false, &n))
		(void)pp_nccl_span_number(text, " signal ", false, &n);
	return n;
}

void pp_nccl_gather_error(struct pp_nccl_said *s)
{
	const struct pp_nccl_field *f = s->event->field;
	struct pp_nccl_job *job = s->job;

	switch (s->event->kind) {
	case PP_NCCL_REGISTERED:
		/* host memory has no descriptor either: only a real one says something */
		if ((int64_t)f[4].value >= 0) {
			process_at(s)->registered_dmabuf++;
			mark(job, &job->registered);
		}
		break;
	case PP_NCCL_USER_BUFFER:
		mark(job, &job->user_buffer);
		break;
	case PP_NCCL_USER_BUFFER_FAILED:
		mark(job, &job->user_buffer_failed);
		break;
	case PP_NCCL_COMPLETION:
		add_error(s, f[1].value, f[4].value);
		break;
	case PP_NCCL_COMPLETION_NAMED:
		add_error(s, f[3].value, f[7].value);
		break;
	case PP_NCCL_PROCESS_ENDED:
		add_error(s, signal_of(s->line->message), 0);
		break;
	case PP_NCCL_RETURN:
		add_return(s, f[0].text, f[2].value);
		break;
	case PP_NCCL_APPLICATION_FAILED:
		mark(job, &job->application_failed);
		break;
	default:
		add_error(s, 0, 0);
	}
}

static bool right(struct pp_nccl_span wrong)
{
	uint64_t n;

	if (pp_nccl_digits(wrong, false, &n) == wrong.len)
		return n == 0;
	/* up to 2.12 a rounding error stands here; the footer judges it */
	return !pp_nccl_span_is(wrong, "N/A") && memchr(wrong.at, 'e', wrong.len);
}

/* -1: no number. */
static double decimal(struct pp_nccl_span text)
{
	char copy[32], *end;
	double value;

	if (!text.len || text.len >= sizeof(copy))
		return -1;
	memcpy(copy, text.at, text.len);
	copy[text.len] = '\0';
	value = strtod(copy, &end);
	return *end || !(value >= 0) || value > 1e15 ? -1 : value;
}

static void add_figures(const struct pp_nccl_field *f, struct pp_nccl_bench *b)
{
	double us = decimal(f[3].text), busbw = decimal(f[4].text);
	uint64_t size = f[0].value, bytes;

	if (!size)
		return;
	if (us > 0 && (!b->smallest || size <= b->smallest)) {
		b->smallest = size;
		b->smallest_us = us;
	}
	if (busbw >= 0 && size >= b->largest) {
		b->largest = size;
		b->largest_busbw_gbps = busbw;
	}
	/* Both halves of a row are timed. */
	if (!__builtin_mul_overflow(size, 2 * b->iterations, &bytes) &&
	    bytes <= INT64_MAX - b->payload_bytes)
		b->payload_bytes += bytes;
}

/* "# nThread 1 nGpus 1 ... warmup iters: 5 iters: 20 agg iters: 1 ...": calls of each row */
static void add_parameters(struct pp_nccl_said *s)
{
	struct pp_nccl_span text = s->line->message, rest;
	const char *at = pp_nccl_span_find(text, "warmup iters:");
	uint64_t iterations = 0, together = 0;

	if (!at)
		return;
	rest = (struct pp_nccl_span){at + 13, (size_t)(text.at + text.len - at) - 13};
	(void)pp_nccl_span_number(rest, " iters: ", false, &iterations);
	if (!pp_nccl_span_number(rest, "agg iters: ", false, &together))
		together = 1;
	if (iterations < 1 << 20 && together < 1 << 20)
		s->job->bench.iterations = iterations * together;
}

/* "all_reduce_perf" */
static void name_collective(struct pp_nccl_span word, struct pp_nccl_bench *b)
{
	static const char tail[] = "_perf";
	size_t n = sizeof(tail) - 1, len = word.len;

	if (len > n && !memcmp(word.at + len - n, tail, n))
		len -= n;
	(void)snprintf(b->collective, sizeof(b->collective), "%.*s", (int)len, word.at);
}

static void add_row(struct pp_nccl_said *s)
{
	const struct pp_nccl_field *f = s->event->field;
	struct pp_nccl_bench *b = &s->job->bench;
	bool out = right(f[1].text), in = right(f[2].text);

	b->rows++;
	if (out || pp_nccl_span_is(f[1].text, "N/A"))
		add_figures(f, b);
	if (pp_nccl_span_is(f[1].text, "N/A")) {
		b->rows_unchecked++;
	} else if (!out || (!in && !pp_nccl_span_is(f[2].text, "N/A"))) {
		b->rows_wrong++;
		mark(s->job, &b->wrong);
	} else if (f[0].value > b->largest_right) {
		b->largest_right = f[0].value;
		b->row = pp_nccl_job_here(s->job);
	}
}

/* "#  Rank  3 Group  0 Pid    945 on      node0 device  2 ...": older ones have no group. */
static void add_listed(struct pp_nccl_said *s)
{
	const struct pp_nccl_field *f = s->event->field;
	bool group = pp_nccl_span_find(s->line->message, " Group ") != NULL;
	struct pp_nccl_listed key = {0}, *l;
	uint64_t pid = group ? f[2].value : f[1].value;
	uint32_t i;

	if (pid > UINT32_MAX)
		return;
	key.key.host = pp_nccl_job_intern(s->job, group ? f[3].text : f[2].text);
	key.key.pid = (uint32_t)pid;
	i = pp_nccl_table_put(&s->job->listed, &key, NULL);
	if (i == PP_NCCL_NONE)
		return;
	l = pp_nccl_table_at(&s->job->listed, i);
	l->ranks++;
}

void pp_nccl_gather_protocol(struct pp_nccl_said *s)
{
	const struct pp_nccl_field *f = s->event->field;
	struct pp_nccl_protocols *p = &s->job->protocols;
	bool named = s->event->kind == PP_NCCL_PROTOCOL, ll;
	/* up to 2.22 the function is not named */
	bool shifted = named || s->event->oldest >= PP_NCCL_V(2, 23, 0);
	uint64_t bytes = f[shifted].value;

	ll = named ? pp_nccl_span_is(f[3].text, "LL") : !f[shifted + 2].value;
	if (ll && bytes > p->ll_bytes)
		p->ll_bytes = bytes;
	if (!ll && bytes > p->other_bytes)
		p->other_bytes = bytes;
}

void pp_nccl_gather_bench(struct pp_nccl_said *s)
{
	const struct pp_nccl_field *f = s->event->field;
	struct pp_nccl_bench *b = &s->job->bench;

	switch (s->event->kind) {
	case PP_NCCL_TEST_RANK:
		add_listed(s);
		break;
	case PP_NCCL_TEST_ROW:
		if (b->heads)
			add_row(s);
		break;
	case PP_NCCL_TEST_COLLECTIVE:
		/* it stands above the table's head, and is no part of it */
		name_collective(f[0].text, b);
		break;
	case PP_NCCL_TEST_BOUNDS:
		if (!f[0].value && pp_nccl_span_is(f[1].text, "OK")) {
			b->bounds_ok++;
			mark(s->job, &b->bounds);
		} else {
			b->bounds_failed++;
			mark(s->job, &b->wrong);
		}
		break;
	case PP_NCCL_TEST_PARAMETERS:
		add_parameters(s);
		b->parameters++;
		b->heads++;
		break;
	case PP_NCCL_TEST_DEVICES:
		b->device_lists++;
		break;
	case PP_NCCL_TEST_COLUMNS:
		b->columns++;
		b->heads++;
		break;
	default:
		b->heads++;
	}
}
