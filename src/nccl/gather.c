/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/gather.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

static struct pp_nccl_process *process_at(const struct pp_nccl_said *s)
{
	return pp_nccl_table_at(&s->job->processes, s->process);
}

static struct pp_nccl_member *member_at(const struct pp_nccl_job *job, uint32_t i)
{
	return pp_nccl_table_at(&job->members, i);
}

void pp_nccl_gather_version(struct pp_nccl_said *s)
{
	const struct pp_nccl_field *f = s->event->field;
	struct pp_nccl_job *job = s->job;
	struct pp_nccl_version v = {.process = s->process, .place = pp_nccl_job_here(job)};
	size_t n = 0;

	if (f[0].value > 99 || f[1].value > 99 || f[2].value > 99)
		return;
	v.value = (uint32_t)PP_NCCL_V(f[0].value, f[1].value, f[2].value);
	while (n < f[3].text.len && f[3].text.at[n] != ' ')
		n++;
	(void)snprintf(v.text, sizeof(v.text), "%u.%u.%u%.*s", (unsigned int)f[0].value,
		       (unsigned int)f[1].value, (unsigned int)f[2].value, n < 30 ? (int)n : 30,
		       n ? f[3].text.at : "");
	for (uint32_t i = 0; i < job->n_versions; i++)
		if (!strcmp(job->versions[i].text, v.text))
			return;
	if (job->n_versions < PP_NCCL_MAX_VERSIONS)
		job->versions[job->n_versions++] = v;
}

/* The member behind a pointer of this process; a new one when the pointer was used again. */
static uint32_t member_of(struct pp_nccl_said *s, uint64_t pointer, uint64_t rank, uint64_t n_ranks)
{
	struct pp_nccl_job *job = s->job;
	struct pp_nccl_pointer key = {{s->process, 0, pointer}, 0}, *p;
	struct pp_nccl_member fresh = {.key = {s->process, 0, pointer}}, *m;
	bool is_new;
	uint32_t at = pp_nccl_table_put(&job->pointers, &key, &is_new), i;

	if (at == PP_NCCL_NONE)
		return at;
	p = pp_nccl_table_at(&job->pointers, at);
	if (!is_new && p->member != PP_NCCL_NONE) {
		m = member_at(job, p->member);
		if (m->rank == rank && m->n_ranks == n_ranks &&
		    !(m->over && s->event->kind == PP_NCCL_INIT_START))
			return p->member;
		fresh.key.generation = m->key.generation + 1;
	}
	i = pp_nccl_table_put(&job->members, &fresh, NULL);
	p->member = i;
	if (i == PP_NCCL_NONE)
		return i;
	m = member_at(job, i);
	m->rank = (uint32_t)rank;
	m->n_ranks = (uint32_t)n_ranks;
	m->place = pp_nccl_job_here(job);
	m->previous = process_at(s)->members;
	process_at(s)->members = i + 1;
	return i;
}

void pp_nccl_gather_member(struct pp_nccl_said *s)
{
	const struct pp_nccl_field *f = s->event->field;
	struct pp_nccl_member *m;
	uint64_t id, value;
	uint32_t i;

	if (f[2].value > INT32_MAX || f[1].value >= f[2].value)
		return;
	i = member_of(s, f[0].value, f[1].value, f[2].value);
	if (i == PP_NCCL_NONE)
		return;
	m = member_at(s->job, i);
	process_at(s)->last_member = i + 1;
	switch (s->event->kind) {
	case PP_NCCL_COMM_NODES:
		if (f[3].value > f[2].value || f[4].value > f[2].value)
			break;
		m->n_nodes = (uint32_t)f[3].value;
		m->local_ranks = (uint32_t)f[4].value;
		if (pp_nccl_span_number(f[5].text, "MNNVL ", false, &value))
			m->mnnvl = value != 0;
		break;
	case PP_NCCL_COMM_DESTROY:
	case PP_NCCL_COMM_ABORT:
		m->over = true;
		break;
	default:
		m->complete |= s->event->kind == PP_NCCL_INIT_COMPLETE;
		if (pp_nccl_span_number(f[4].text, "commId ", true, &id))
			m->id = id;
	}
}

/*
 * Whose connection is it? The line names ranks, not the communicator. The newest living
 * communicator of the process with that rank; more than one makes the answer a guess.
 */
static uint32_t owner_of(struct pp_nccl_said *s, const struct pp_nccl_channel *c,
			 bool *ret_ambiguous)
{
	uint32_t owner = pp_nccl_channel_owner(c), found = PP_NCCL_NONE, living = 0;
	uint32_t peer = c->from > c->to ? c->from : c->to, looked = 0;
	const struct pp_nccl_member *m;

	for (uint32_t i = process_at(s)->members; i && looked < 1024; i = m->previous, looked++) {
		m = member_at(s->job, i - 1);
		if (m->rank != owner || peer >= m->n_ranks)
			continue;
		if (found == PP_NCCL_NONE || (!living && !m->over))
			found = i - 1;
		living += !m->over;
	}
	*ret_ambiguous = living > 1;
	return found;
}

void pp_nccl_gather_channel(struct pp_nccl_said *s)
{
	struct pp_nccl_job *job = s->job;
	struct pp_nccl_channel c;
	struct pp_nccl_end key = {0}, *e;
	bool ambiguous, is_new;
	uint32_t i;

	if (!pp_nccl_channel_read(s->line->message, &c))
		return;
	pp_nccl_gather_range(job, c.oldest, c.newest);
	key.key.process = s->process;
	key.key.member = owner_of(s, &c, &ambiguous);
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
	if (is_new)
		e->place = pp_nccl_job_here(job);
}

void pp_nccl_gather_rings(struct pp_nccl_said *s)
{
	struct pp_nccl_process *p = process_at(s);
	struct pp_nccl_member *m;

	/* GDR 1 is also printed where no network is used: only 0 says something */
	if (s->event->kind != PP_NCCL_RINGS_GDR || s->event->field[1].value || !p->last_member)
		return;
	m = member_at(s->job, p->last_member - 1);
	m->rings_without_gdr = true;
	m->rings = pp_nccl_job_here(s->job);
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

/* The library's own functions that give up on a communicator or a collective. */
static bool gives_up(struct pp_nccl_span file, uint64_t code)
{
	static const char *const files[] = {"init.cc", "group.cc", "enqueue.cc", "proxy.cc"};

	if (code < 1 || code > 6)
		return false;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (file.len >= strlen(files[i]) &&
		    !memcmp(file.at + file.len - strlen(files[i]), files[i], strlen(files[i])))
			return true;
	return false;
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
	case PP_NCCL_RETURN:
		if (gives_up(f[0].text, f[2].value) && process_at(s)->returned.file == PP_NCCL_NONE)
			process_at(s)->returned = pp_nccl_job_here(job);
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

static void add_row(struct pp_nccl_said *s)
{
	const struct pp_nccl_field *f = s->event->field;
	struct pp_nccl_bench *b = &s->job->bench;
	bool out = right(f[1].text), in = right(f[2].text);

	b->rows++;
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

void pp_nccl_gather_bench(struct pp_nccl_said *s)
{
	const struct pp_nccl_field *f = s->event->field;
	struct pp_nccl_bench *b = &s->job->bench;

	switch (s->event->kind) {
	case PP_NCCL_TEST_RANK:
		b->rank_lines++;
		break;
	case PP_NCCL_TEST_ROW:
		if (b->heads)
			add_row(s);
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
	default:
		b->heads++;
	}
}
