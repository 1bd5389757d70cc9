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
	struct pp_nccl_seat key = {{comm, rank}, PP_NCCL_NONE, PP_NCCL_NONE, 0, false}, *s;
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
	struct pp_nccl_seat key = {{comm, rank}, 0, 0, 0, false};
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
	return pp_nccl_table_put(&g->comms, &key, NULL);
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
	if (m->rings_without_gdr && !c->failed_rings) {
		c->failed_rings = true;
		c->rings = m->rings;
	}
	if (!s)
		return;
	c->seen += is_new;
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
	return count_hosts(ret);
}

void pp_nccl_group_done(struct pp_nccl_group *g)
{
	pp_nccl_table_done(&g->comms);
	pp_nccl_table_done(&g->seats);
	free(g->comm_of_end);
	g->comm_of_end = NULL;
}

enum pp_nccl_crossing pp_nccl_group_crossing(const struct pp_nccl_group *g, uint32_t comm,
					     const struct pp_nccl_end *e)
{
	const struct pp_nccl_comm *c = pp_nccl_group_comm(g, comm);
	const struct pp_nccl_seat *from = seat_find(g, comm, e->key.from),
				  *to = seat_find(g, comm, e->key.to);

	if (e->key.transport == PP_NCCL_VIA_COLLNET || e->key.transport == PP_NCCL_VIA_MNNVL)
		return PP_NCCL_BETWEEN;
	if (e->key.transport != PP_NCCL_VIA_NET)
		return PP_NCCL_WITHIN;
	if (c && c->n_nodes == 1)
		return PP_NCCL_WITHIN;
	/* the library's own count of nodes is worth more than a host name, which two may share */
	if ((c && c->n_nodes && c->n_nodes == c->key.n_ranks) || (from && from->local_ranks == 1) ||
	    (to && to->local_ranks == 1))
		return PP_NCCL_BETWEEN;
	if (!from || !to || from->host == PP_NCCL_NONE || to->host == PP_NCCL_NONE)
		return PP_NCCL_CROSSING_UNKNOWN;
	return from->host == to->host ? PP_NCCL_WITHIN : PP_NCCL_BETWEEN;
}
