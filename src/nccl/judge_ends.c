/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends of connections between hosts: what carries each, whether the other end is here too, and
 * by which mechanism the direct ones registered GPU memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/judge_parts.h"
#include "base/banned.h"

struct pair { /* the two ends of one connection */
	struct {
		uint32_t comm, from, to, channel;
		int32_t connection;
	} key;
	uint32_t sides; /* bit 0 send, bit 1 receive */
	struct pp_nccl_place place;
};

struct side { /* a ring or tree channel at a host of a communicator: does it send and receive? */
	struct {
		uint32_t comm, host, channel;
	} key;
	uint32_t sides;
};

struct owned { /* direct ends of one process */
	uint32_t n;
	int32_t device;	   /* the only one, while !several */
	bool several, pxn; /* devices; some through another rank's NIC */
};

struct work {
	struct pp_nccl_table pairs, sides;
	struct owned *owned; /* by process */
};

/* What a network runs over, by its name and by what else its process said. */
enum medium { RDMA, TCP, EITHER };

static bool begins(const char *name, const char *head)
{
	return !strncmp(name, head, strlen(head));
}

bool pp_nccl_is_tcp(const struct pp_nccl_job *job, uint32_t network)
{
	const char *name = pp_nccl_job_name(job, network);

	return strstr(name, "Socket") ||
	       (strstr(name, "ibfabric") && job->provider_tcp.file != PP_NCCL_NONE);
}

static enum medium medium_of(const struct pp_nccl_case *c, const struct pp_nccl_end *e)
{
	const struct pp_nccl_process *p = pp_nccl_table_at(&c->job->processes, e->key.process);
	const char *name = pp_nccl_job_name(c->job, e->key.network);

	if (pp_nccl_is_tcp(c->job, e->key.network))
		return TCP;
	if (!strcmp(name, "IB") || begins(name, "IBext") || !strcmp(name, "gIB") ||
	    !strcmp(name, "SPCX") || !strcmp(name, "SHARP"))
		return RDMA;
	/* the name that a plug-in has before it chose: verbs, or UCX over whatever UCX finds */
	if (begins(name, "NCCL RDMA Plugin"))
		return p->ib_plugin ? RDMA : EITHER;
	if (strstr(name, "ibfabric"))
		return p->provider_rdma ? RDMA : EITHER;
	return EITHER;
}

static void count(uint32_t *n, struct pp_nccl_place *at, struct pp_nccl_place place)
{
	if (!(*n)++)
		*at = place;
}

static void note_direct(struct pp_nccl_case *c, const struct pp_nccl_end *e, struct work *w)
{
	const struct pp_nccl_process *p = pp_nccl_table_at(&c->job->processes, e->key.process);
	struct pp_nccl_ends *n = &c->j->ends;
	struct owned *o = &w->owned[e->key.process];

	count(&n->gdr, &n->gdr_at, e->place);
	n->gdr_sends += e->key.direction == PP_NCCL_SEND;
	n->ll += p->ll_only;
	if (medium_of(c, e) == EITHER)
		count(&n->unknown_net, &n->unknown_net_at, e->place);
	o->several |= o->n && o->device != e->key.device;
	o->pxn |= e->key.proxy >= 0;
	o->device = e->key.device;
	o->n++;
}

static void note_staged(struct pp_nccl_ends *n, const struct pp_nccl_end *e)
{
	count(&n->staged, &n->staged_at, e->place);
	n->staged_sends += e->key.direction == PP_NCCL_SEND;
}

static void classify(struct pp_nccl_case *c, const struct pp_nccl_end *e, struct work *w)
{
	struct pp_nccl_ends *n = &c->j->ends;

	if (e->torn)
		n->unpaired += n->unpaired == 0;
	else if (e->key.transport == PP_NCCL_VIA_MNNVL)
		count(&n->nvlink, &n->nvlink_at, e->place);
	else if (medium_of(c, e) == TCP)
		count(&n->socket, &n->socket_at, e->place);
	else if (e->key.gdr)
		note_direct(c, e, w);
	else
		note_staged(n, e);
	n->ambiguous += e->ambiguous;
}

static int note_pair(struct pp_nccl_case *c, uint32_t comm, const struct pp_nccl_end *e,
		     struct work *w)
{
	struct pair key = {{comm, e->key.from, e->key.to, e->key.channel, e->key.connection},
			   0,
			   e->place},
		    *p;
	struct side side = {{comm, 0, e->key.channel}, 0}, *s;
	uint32_t bits = e->key.direction == PP_NCCL_BOTH ? 3 : 1U << e->key.direction, i;
	bool is_new;

	if (e->key.transport == PP_NCCL_VIA_COLLNET || e->key.transport == PP_NCCL_VIA_MNNVL)
		return 0;
	i = pp_nccl_table_put(&w->pairs, &key, &is_new);
	if (i == PP_NCCL_NONE)
		return -ENOMEM;
	p = pp_nccl_table_at(&w->pairs, i);
	p->sides |= bits;
	if (is_new)
		p->place = e->place;
	if (e->key.connection > 0)
		return 0;
	side.key.host = pp_nccl_group_host(
		c->group, comm, e->key.direction == PP_NCCL_RECEIVE ? e->key.to : e->key.from);
	i = pp_nccl_table_put(&w->sides, &side, NULL);
	if (i == PP_NCCL_NONE)
		return -ENOMEM;
	s = pp_nccl_table_at(&w->sides, i);
	s->sides |= bits;
	return 0;
}

/*
 * Every ring and every tree enters and leaves every host. So whoever lost both ends of one is
 * found out by the number of channels that the library gives.
 */
static int count_narrow(struct pp_nccl_case *c, const struct work *w)
{
	struct pp_nccl_ends *n = &c->j->ends;
	const struct pp_nccl_comm *comm;
	const struct side *s;
	uint64_t *whole = calloc(c->group->comms.n + 1, sizeof(*whole));

	if (!whole)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->sides.n; i++) {
		s = pp_nccl_table_at(&w->sides, i);
		comm = pp_nccl_group_comm(c->group, s->key.comm);
		whole[s->key.comm] += s->sides == 3 && s->key.channel < comm->channels;
	}
	for (uint32_t i = 0; i < c->group->comms.n; i++) {
		comm = pp_nccl_group_comm(c->group, i);
		if (!pp_nccl_spans_hosts(comm))
			continue;
		n->unknown_width += !comm->channels;
		n->narrow += whole[i] < (uint64_t)comm->channels * comm->hosts;
	}
	free(whole);
	return 0;
}

static void count_unpaired(struct pp_nccl_case *c, const struct work *w)
{
	struct pp_nccl_ends *n = &c->j->ends;
	const struct pair *p;

	for (uint32_t i = 0; i < w->pairs.n; i++) {
		p = pp_nccl_table_at(&w->pairs, i);
		if (p->sides != 3)
			count(&n->unpaired, &n->unpaired_at, p->place);
	}
}

static bool registers_like_ib(const struct pp_nccl_job *job, uint32_t network)
{
	const char *name = pp_nccl_job_name(job, network);

	return begins(name, "IB") || begins(name, "NCCL RDMA Plugin");
}

/*
 * Never from what is possible or from what is not printed: a descriptor seen in a registration,
 * a library too old for DMA-BUF, or DMA-BUF switched off in every process.
 */
static enum pp_nccl_mechanism mechanism(struct pp_nccl_case *c, const struct work *w)
{
	uint32_t dmabuf = 0, off = 0, old = 0, all = 0;
	const struct pp_nccl_process *p;
	const struct pp_nccl_end *e;
	const struct owned *o;
	bool complete = c->j->coverage == PP_NCCL_COVER_ALL && !c->j->ends.unpaired;

	for (uint32_t i = 0; i < c->job->ends.n; i++) {
		e = pp_nccl_table_at(&c->job->ends, i);
		if (!e->key.gdr)
			continue;
		p = pp_nccl_table_at(&c->job->processes, e->key.process);
		o = &w->owned[e->key.process];
		all++;
		/* one device is registered in one way; of several the lines do not tell whose */
		dmabuf += o->n && p->registered_dmabuf >= o->n && !o->several && !o->pxn;
		if (!registers_like_ib(c->job, e->key.network))
			continue;
		old += e->key.old;
		off += e->key.old || p->dmabuf_off.file != PP_NCCL_NONE;
	}
	if (all && (old == all || (complete && off == all)))
		return PP_NCCL_MECHANISM_PEERMEM;
	return all && complete && dmabuf == all ? PP_NCCL_MECHANISM_DMABUF
						: PP_NCCL_MECHANISM_UNDETERMINED;
}

static int walk(struct pp_nccl_case *c, struct work *w)
{
	struct pp_nccl_ends *n = &c->j->ends;
	enum pp_nccl_crossing crossing;
	const struct pp_nccl_end *e;
	int r;

	for (uint32_t i = 0; i < c->job->ends.n; i++) {
		e = pp_nccl_table_at(&c->job->ends, i);
		crossing = pp_nccl_group_crossing(c->group, c->group->comm_of_end[i], e);
		if (crossing == PP_NCCL_WITHIN) {
			count(&n->within, &n->within_at, e->place);
			continue;
		}
		n->unknown_hosts += crossing != PP_NCCL_BETWEEN;
		if (crossing == PP_NCCL_CROSSING_DOUBTFUL) {
			count(&n->within, &n->within_at, e->place);
			continue;
		}
		classify(c, e, w);
		r = note_pair(c, c->group->comm_of_end[i], e, w);
		if (r)
			return r;
	}
	count_unpaired(c, w);
	c->j->mechanism = mechanism(c, w);
	return count_narrow(c, w);
}

int pp_nccl_judge_ends(struct pp_nccl_case *c)
{
	struct work w = {
		.pairs = PP_NCCL_TABLE(struct pair, 20, PP_NCCL_MAX_ENDS),
		.sides = PP_NCCL_TABLE(struct side, 12, PP_NCCL_MAX_ENDS),
		.owned = calloc(c->job->processes.n + 1, sizeof(struct owned)),
	};
	int r = w.owned ? walk(c, &w) : -ENOMEM;

	pp_nccl_table_done(&w.pairs);
	pp_nccl_table_done(&w.sides);
	free(w.owned);
	return r;
}
