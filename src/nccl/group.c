/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/group.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"

static const struct pp_nccl_process *process_at(const struct pp_nccl_job *job, uint32_t i)
{
	return pp_nccl_table_at(&job->processes, i);
}

const struct pp_nccl_comm *pp_nccl_group_comm(const struct pp_nccl_group *g, uint32_t i)
{
	return i < g->comms.n ? pp_nccl_table_at(&g->comms, i) : NULL;
}

static struct pp_nccl_seat *seat_put(struct pp_nccl_group *g, uint32_t comm, uint32_t rank,
				     bool *ret_new)
{
	struct pp_nccl_seat key = {.key = {comm, rank}}, *s;
	uint32_t i = pp_nccl_table_put(&g->seats, &key, ret_new);

	if (i == PP_NCCL_NONE) {
		g->failed = true;
		return NULL;
	}
	s = pp_nccl_table_at(&g->seats, i);
	if (*ret_new)
		s->process = s->host = PP_NCCL_NONE;
	return s;
}

static const struct pp_nccl_seat *seat_find(const struct pp_nccl_group *g, uint32_t comm,
					    uint32_t rank)
{
	struct pp_nccl_seat key = {.key = {comm, rank}};
	uint32_t i = pp_nccl_table_find(&g->seats, &key);

	return i == PP_NCCL_NONE ? NULL : pp_nccl_table_at(&g->seats, i);
}

uint32_t pp_nccl_group_host(const struct pp_nccl_group *g, uint32_t comm, uint32_t rank)
{
	const struct pp_nccl_seat *s = seat_find(g, comm, rank);

	return s ? s->host : PP_NCCL_NONE;
}

/*
 * Before 2.16 nothing names a communicator across processes: the k-th one of this size in which
 * a rank takes part is taken for the k-th one of the other ranks.
 */
static uint32_t comm_of(struct pp_nccl_group *g, const struct pp_nccl_member *m)
{
	struct pp_nccl_comm key = {0};
	const struct pp_nccl_seat *s;
	uint32_t i;

	key.key.id = m->id;
	key.key.n_ranks = m->n_ranks;
	for (; !m->id && key.key.ordinal < 64; key.key.ordinal++) {
		i = pp_nccl_table_find(&g->comms, &key);
		s = i == PP_NCCL_NONE ? NULL : seat_find(g, i, m->rank);
		if (!s || s->process == PP_NCCL_NONE)
			break;
	}
	i = pp_nccl_table_put(&g->comms, &key, NULL);
	if (i != PP_NCCL_NONE && key.key.ordinal) {
		struct pp_nccl_comm *c = pp_nccl_table_at(&g->comms, i);

		c->guessed = true;
	}
	return i;
}

static void seat_member(struct pp_nccl_group *g, const struct pp_nccl_job *job,
			struct pp_nccl_member *m)
{
	struct pp_nccl_comm *c;
	struct pp_nccl_seat *s;
	bool is_new;

	m->comm = comm_of(g, m);
	if (m->comm == PP_NCCL_NONE) {
		g->failed = true;
		return;
	}
	s = seat_put(g, m->comm, m->rank, &is_new);
	c = pp_nccl_table_at(&g->comms, m->comm);
	if (!c->seen)
		c->place = m->place;
	if (m->n_nodes > c->n_nodes)
		c->n_nodes = m->n_nodes;
	c->mnnvl |= m->mnnvl;
	if (m->channels > c->channels)
		c->channels = m->channels;
	if (m->rings_without_gdr && !c->failed_rings) {
		c->failed_rings = true;
		c->rings = m->rings;
	}
	if (!s)
		return;
	c->seen += is_new;
	if (!is_new && (s->process != m->key.process || s->pointer != m->key.pointer))
		c->guessed = true;
	s->pointer = m->key.pointer;
	s->process = m->key.process;
	s->host = process_at(job, m->key.process)->key.host;
	if (m->local_ranks)
		s->local_ranks = m->local_ranks;
}

/* A connection whose process shows no communicator: the only one there is, or none. */
static uint32_t lone_comm(struct pp_nccl_group *g, const struct pp_nccl_end *e)
{
	struct pp_nccl_comm key = {0};
	const struct pp_nccl_comm *c = pp_nccl_group_comm(g, 0);
	uint32_t peer = e->key.from > e->key.to ? e->key.from : e->key.to;

	if (g->comms.n == 1 && (!c->key.n_ranks || peer < c->key.n_ranks))
		return 0;
	return pp_nccl_table_put(&g->comms, &key, NULL);
}

static void seat_end(struct pp_nccl_group *g, const struct pp_nccl_job *job, uint32_t i)
{
	const struct pp_nccl_end *e = pp_nccl_table_at(&job->ends, i);
	uint32_t owner = e->key.direction == PP_NCCL_RECEIVE ? e->key.to : e->key.from;
	const struct pp_nccl_member *m;
	struct pp_nccl_seat *s;
	bool is_new;

	if (e->key.member != PP_NCCL_NONE) {
		m = pp_nccl_table_at(&job->members, e->key.member);
		g->comm_of_end[i] = m->comm;
	} else {
		g->comm_of_end[i] = lone_comm(g, e);
	}
	if (g->comm_of_end[i] == PP_NCCL_NONE) {
		g->failed = true;
		return;
	}
	s = seat_put(g, g->comm_of_end[i], owner, &is_new);
	if (!s)
		return;
	if (is_new) {
		struct pp_nccl_comm *c = pp_nccl_table_at(&g->comms, g->comm_of_end[i]);

		if (!c->seen++)
			c->place = e->place;
		s->process = e->key.process;
		s->host = process_at(job, e->key.process)->key.host;
	}
	s->connected = true;
}

static int compare_seats(const void *a, const void *b)
{
	const struct pp_nccl_seat *const *x = a, *const *y = b;

	if ((*x)->key.comm != (*y)->key.comm)
		return (*x)->key.comm < (*y)->key.comm ? -1 : 1;
	return (*x)->host < (*y)->host ? -1 : (*x)->host > (*y)->host;
}

/* Distinct hosts of each communicator, by sorting its seats. */
static int count_hosts(struct pp_nccl_group *g)
{
	const struct pp_nccl_seat **seats, *last = NULL;
	struct pp_nccl_comm *c;

	if (!g->seats.n)
		return 0;
	seats = calloc(g->seats.n, sizeof(*seats));
	if (!seats)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->seats.n; i++)
		seats[i] = pp_nccl_table_at(&g->seats, i);
	qsort(seats, g->seats.n, sizeof(const void *), compare_seats);
	for (uint32_t i = 0; i < g->seats.n; last = seats[i++]) {
		c = pp_nccl_table_at(&g->comms, seats[i]->key.comm);
		c->hosts += !last || last->key.comm != seats[i]->key.comm ||
			    last->host != seats[i]->host;
	}
	free(seats);
	return 0;
}

bool pp_nccl_spans_hosts(const struct pp_nccl_comm *c)
{
	return c->n_nodes > 1 || c->hosts > 1;
}

bool pp_nccl_one_host(const struct pp_nccl_comm *c)
{
	if (!c->key.n_ranks || c->hosts > 1 || c->mnnvl)
		return false;
	return c->n_nodes ? c->n_nodes == 1 : c->hosts == 1 && c->seen == c->key.n_ranks;
}

static struct pp_nccl_process *real_process(const struct pp_nccl_job *job, uint32_t i)
{
	struct pp_nccl_process *p = pp_nccl_table_at(&job->processes, i);

	return p->same_as ? pp_nccl_table_at(&job->processes, p->same_as - 1) : p;
}

/* What each process has to do with traffic between hosts, and with nccl-tests. */
static void count_processes(const struct pp_nccl_group *g, const struct pp_nccl_job *job)
{
	struct pp_nccl_process key = {0}, *p;
	const struct pp_nccl_listed *l;
	const struct pp_nccl_seat *s;
	uint32_t i;

	for (i = 0; i < g->seats.n; i++) {
		s = pp_nccl_table_at(&g->seats, i);
		if (s->process == PP_NCCL_NONE ||
		    !pp_nccl_spans_hosts(pp_nccl_table_at(&g->comms, s->key.comm)))
			continue;
		p = pp_nccl_table_at(&job->processes, s->process);
		p->several |= p->seats && p->comm != s->key.comm;
		p->comm = s->key.comm;
		p->seats++;
	}
	for (uint32_t k = 0; k < job->listed.n; k++) {
		l = pp_nccl_table_at(&job->listed, k);
		key.key.host = l->key.host;
		key.key.pid = l->key.pid;
		i = pp_nccl_table_find(&job->processes, &key);
		if (i != PP_NCCL_NONE)
			real_process(job, i)->listed += l->ranks;
	}
}

int pp_nccl_group_make(struct pp_nccl_job *job, struct pp_nccl_group *ret)
{
	*ret = (struct pp_nccl_group){
		.comms = PP_NCCL_TABLE(struct pp_nccl_comm, 16, 16384),
		.seats = PP_NCCL_TABLE(struct pp_nccl_seat, 8, 131072),
	};
	ret->comm_of_end = calloc(job->ends.n ? job->ends.n : 1, sizeof(uint32_t));
	if (!ret->comm_of_end)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->members.n; i++)
		seat_member(ret, job, pp_nccl_table_at(&job->members, i));
	for (uint32_t i = 0; i < job->ends.n; i++)
		seat_end(ret, job, i);
	if (ret->comms.starved || ret->seats.starved)
		return -ENOMEM;
	if (count_hosts(ret))
		return -ENOMEM;
	count_processes(ret, job);
	return 0;
}

void pp_nccl_group_done(struct pp_nccl_group *g)
{
	pp_nccl_table_done(&g->comms);
	pp_nccl_table_done(&g->seats);
	free(g->comm_of_end);
	g->comm_of_end = NULL;
}

/* Two ranks whose hosts have one name. */
static enum pp_nccl_crossing by_one_name(const struct pp_nccl_comm *c)
{
	if (!c || !c->n_nodes)
		return PP_NCCL_CROSSING_DOUBTFUL;
	/* fewer names than nodes: some nodes share one */
	return c->seen == c->key.n_ranks && c->hosts != c->n_nodes ? PP_NCCL_CROSSING_UNKNOWN
								   : PP_NCCL_WITHIN;
}

enum pp_nccl_crossing pp_nccl_group_crossing(const struct pp_nccl_group *g, uint32_t comm,
					     const struct pp_nccl_end *e)
{
	const struct pp_nccl_comm *c = pp_nccl_group_comm(g, comm);
	const struct pp_nccl_seat *from = seat_find(g, comm, e->key.from),
				  *to = seat_find(g, comm, e->key.to);
	bool placed = from && to && from->host != PP_NCCL_NONE && to->host != PP_NCCL_NONE;

	if (e->key.transport == PP_NCCL_VIA_COLLNET || e->key.transport == PP_NCCL_VIA_MNNVL)
		return PP_NCCL_BETWEEN;
	if (e->key.transport != PP_NCCL_VIA_NET)
		return PP_NCCL_WITHIN;
	/* with NVLink between hosts the library counts them as one node */
	if (placed && from->host != to->host)
		return PP_NCCL_BETWEEN;
	if (c && c->n_nodes == 1)
		return PP_NCCL_WITHIN;
	/* the library's own count of nodes is worth more than a host name, which two may share */
	if ((c && c->n_nodes && c->n_nodes == c->key.n_ranks) || (from && from->local_ranks == 1) ||
	    (to && to->local_ranks == 1))
		return PP_NCCL_BETWEEN;
	return placed ? by_one_name(c) : PP_NCCL_CROSSING_UNKNOWN;
}
