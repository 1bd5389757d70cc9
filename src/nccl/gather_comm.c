/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators as each rank prints them, and whose the lines are that name none: by the thread
 * that printed them, else by what is the only candidate.
 */
#include <stdio.h>
#include <string.h>

#include "nccl/gather.h"
#include "base/banned.h"

/*
 * A process with more communicators than this is not searched to the end: the answer is a guess.
 * So it is when none of the newest ones fits and only dead ones are left.
 */
enum { MAX_LOOKED = 128, MAX_DEAD = 16 };

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

static bool starts(enum pp_nccl_kind kind)
{
	return kind == PP_NCCL_INIT_START || kind == PP_NCCL_INIT_COMPLETE ||
	       kind == PP_NCCL_COMM_NODES;
}

static struct pp_nccl_pointer *pointer_find(const struct pp_nccl_said *s, uint64_t pointer)
{
	struct pp_nccl_pointer key = {{s->process, 0, pointer}, 0};
	uint32_t i = pp_nccl_table_find(&s->job->pointers, &key);

	return i == PP_NCCL_NONE ? NULL : pp_nccl_table_at(&s->job->pointers, i);
}

/* A process without the bit has no member of this rank. */
static uint64_t rank_bit(uint32_t rank)
{
	return 1ULL << rank % 64;
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
		    !(m->over && starts(s->event->kind)))
			return p->member;
		fresh.key.generation = m->key.generation + 1;
	}
	i = pp_nccl_table_put(&job->members, &fresh, NULL);
	p->member = i;
	if (i == PP_NCCL_NONE)
		return i;
	job->changes++;
	m = member_at(job, i);
	m->rank = (uint32_t)rank;
	m->n_ranks = (uint32_t)n_ranks;
	m->place = pp_nccl_job_here(job);
	m->previous = process_at(s)->members;
	process_at(s)->members = i + 1;
	process_at(s)->living++;
	process_at(s)->ranks |= rank_bit(m->rank);
	return i;
}

static uint64_t mix(uint64_t h, uint64_t value)
{
	h = (h ^ value) * 0x9e3779b97f4a7c15ULL;
	return h ^ (h >> 29);
}

/*
 * The name of a communicator across processes. Since 2.23 a split prints none, but the number of
 * the split and the colour under its parent are one.
 */
static uint64_t id_of(const struct pp_nccl_said *s, struct pp_nccl_span tail)
{
	const struct pp_nccl_pointer *p;
	uint64_t id, parent, nth = 0, color;

	if (pp_nccl_span_number(tail, "commId ", true, &id) && id)
		return id;
	if (!pp_nccl_span_number(tail, "parent ", true, &parent) ||
	    !pp_nccl_span_number(tail, "color ", false, &color))
		return 0;
	p = pointer_find(s, parent);
	if (!p || p->member == PP_NCCL_NONE || !member_at(s->job, p->member)->id)
		return 0;
	if (!pp_nccl_span_number(tail, "splitCount ", false, &nth))
		(void)pp_nccl_span_number(tail, "childCount ", false, &nth);
	id = mix(mix(member_at(s->job, p->member)->id, nth + 1), color + 1);
	return id ? id : 1;
}

static void remember_thread(const struct pp_nccl_said *s, uint32_t member)
{
	struct pp_nccl_thread key = {{s->process, s->line->tid}, 0}, *t;
	uint32_t i = pp_nccl_table_put(&s->job->threads, &key, NULL);

	if (i == PP_NCCL_NONE)
		return;
	t = pp_nccl_table_at(&s->job->threads, i);
	t->member = member;
}

static void complete(struct pp_nccl_said *s, struct pp_nccl_member *m)
{
	m->complete = true;
	if (m->channels)
		return;
	/* up to 2.17 nothing names the communicator before */
	m->channels = process_at(s)->channels;
	process_at(s)->channels = 0;
}

void pp_nccl_gather_member(struct pp_nccl_said *s)
{
	const struct pp_nccl_field *f = s->event->field;
	struct pp_nccl_member *m;
	uint64_t value;
	uint32_t i;

	if (f[2].value > INT32_MAX || f[1].value >= f[2].value)
		return;
	i = member_of(s, f[0].value, f[1].value, f[2].value);
	if (i == PP_NCCL_NONE)
		return;
	m = member_at(s->job, i);
	remember_thread(s, i);
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
		s->job->changes++;
		process_at(s)->living -= !m->over;
		m->over = true;
		break;
	default:
		if (!m->id)
			m->id = id_of(s, f[4].text);
		if (s->event->kind == PP_NCCL_INIT_COMPLETE)
			complete(s, m);
	}
}

/* The member that this thread spoke of last, else the only one of the process that lives. */
static uint32_t speaker(const struct pp_nccl_said *s)
{
	struct pp_nccl_thread key = {{s->process, s->line->tid}, 0}, *t;
	uint32_t at = pp_nccl_table_find(&s->job->threads, &key), found = PP_NCCL_NONE;
	uint32_t looked = 0;
	const struct pp_nccl_member *m;

	if (at != PP_NCCL_NONE) {
		t = pp_nccl_table_at(&s->job->threads, at);
		m = member_at(s->job, t->member);
		if (!m->complete)
			return t->member;
	}
	for (uint32_t i = process_at(s)->members; i; i = m->previous) {
		m = member_at(s->job, i - 1);
		if (looked++ == MAX_LOOKED)
			return PP_NCCL_NONE;
		if (m->over)
			continue;
		if (found != PP_NCCL_NONE)
			return PP_NCCL_NONE;
		found = i - 1;
	}
	return found;
}

/* "2 coll channels, ...": how many rings and trees there are. */
/* "2 coll channels, 2 collnet channels, 16 nvls channels, ...": 0 where the switch does not add. */
static bool has_nvls(struct pp_nccl_span text)
{
	const char *at = pp_nccl_span_find(text, " nvls channels");

	return at && at > text.at + 1 && at[-1] >= '0' && at[-1] <= '9' &&
	       !(at[-1] == '0' && at[-2] == ' ');
}

void pp_nccl_gather_width(struct pp_nccl_said *s)
{
	uint64_t n = s->event->field[0].value;
	uint32_t i = speaker(s);
	struct pp_nccl_member *m = i == PP_NCCL_NONE ? NULL : member_at(s->job, i);

	s->job->nvls |= has_nvls(s->line->message);
	if (!n || n > PP_NCCL_MAX_CHANNELS)
		return;
	if (m && !m->complete)
		m->channels = (uint32_t)n;
	else
		process_at(s)->channels = (uint32_t)n;
}

void pp_nccl_gather_rings(struct pp_nccl_said *s)
{
	struct pp_nccl_member *m;
	uint32_t i;

	/* GDR 1 is also printed where no network is used: only 0 says something */
	if (s->event->kind != PP_NCCL_RINGS_GDR || s->event->field[1].value)
		return;
	i = speaker(s);
	if (i == PP_NCCL_NONE) {
		if (process_at(s)->rings_unclear.file == PP_NCCL_NONE)
			process_at(s)->rings_unclear = pp_nccl_job_here(s->job);
		return;
	}
	m = member_at(s->job, i);
	m->rings_without_gdr = true;
	m->rings = pp_nccl_job_here(s->job);
}

/*
 * The newest living communicator of the process with that rank; more than one makes the answer a
 * guess. @o: its process and rank are set, and peers of which the answer is asked.
 */
static void find_owner(const struct pp_nccl_said *s, uint32_t peer, struct pp_nccl_owner *o)
{
	uint32_t found = PP_NCCL_NONE, living = 0, looked = 0, i;
	uint32_t left = process_at(s)->living; /* further on in the chain */
	const struct pp_nccl_member *m;

	o->from = 0;
	o->to = UINT32_MAX;
	for (i = process_at(s)->members; i && looked < MAX_LOOKED; i = m->previous, looked++) {
		if (!left && found != PP_NCCL_NONE)
			i = 0; /* dead ones behind the newest one that fits change nothing */
		if (!i || (!left && looked >= MAX_DEAD))
			break;
		m = member_at(s->job, i - 1);
		left -= !m->over;
		if (m->rank != o->rank)
			continue;
		if (peer >= m->n_ranks) {
			o->from = m->n_ranks > o->from ? m->n_ranks : o->from;
			continue;
		}
		o->to = m->n_ranks < o->to ? m->n_ranks : o->to;
		if (found == PP_NCCL_NONE || (!living && !m->over))
			found = i - 1;
		living += !m->over;
	}
	o->member = found;
	o->ambiguous = living > 1 || i;
}

/* Whose connection is it? The line names ranks, not the communicator. */
uint32_t pp_nccl_gather_owner(struct pp_nccl_said *s, const struct pp_nccl_channel *c,
			      bool *ret_ambiguous)
{
	uint32_t rank = pp_nccl_channel_owner(c), peer = c->from > c->to ? c->from : c->to;
	uint64_t changes = s->job->changes;
	struct pp_nccl_owner *o;

	*ret_ambiguous = false;
	if (!(process_at(s)->ranks & rank_bit(rank)))
		return PP_NCCL_NONE;
	o = &s->job->owners[mix(s->process, rank) % PP_NCCL_OWNERS];
	if (o->changes != changes || o->process != s->process || o->rank != rank ||
	    peer < o->from || peer >= o->to) {
		*o = (struct pp_nccl_owner){
			.changes = changes, .process = s->process, .rank = rank};
		find_owner(s, peer, o);
	}
	*ret_ambiguous = o->ambiguous;
	return o->member;
}
