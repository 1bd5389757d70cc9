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

struct side { /* a host of a communicator: does it send and receive? */
	struct {
		uint32_t comm, host;
	} key;
	uint32_t sides;
};

struct work {
	struct pp_nccl_table pairs, hosts;
	uint32_t *direct; /* by process: its ends with GDR */
};

bool pp_nccl_is_tcp(const struct pp_nccl_job *job, uint32_t network)
{
	const char *name = pp_nccl_job_name(job, network);

	return strstr(name, "Socket") ||
	       (strstr(name, "ibfabric") && job->provider_tcp.file != PP_NCCL_NONE);
}

static void count(uint32_t *n, struct pp_nccl_place *at, struct pp_nccl_place place)
{
	if (!(*n)++)
		*at = place;
}

static void classify(struct pp_nccl_case *c, const struct pp_nccl_end *e, struct work *w)
{
	const struct pp_nccl_process *p = pp_nccl_table_at(&c->job->processes, e->key.process);
	struct pp_nccl_ends *n = &c->j->ends;

	if (e->key.transport == PP_NCCL_VIA_MNNVL) {
		count(&n->nvlink, &n->nvlink_at, e->place);
	} else if (pp_nccl_is_tcp(c->job, e->key.network)) {
		count(&n->socket, &n->socket_at, e->place);
	} else if (e->key.gdr) {
		count(&n->gdr, &n->gdr_at, e->place);
		n->ll += p->ll_only;
		w->direct[e->key.process]++;
	} else {
		count(&n->staged, &n->staged_at, e->place);
	}
	n->ambiguous += e->ambiguous;
}

static int note_pair(struct pp_nccl_case *c, uint32_t comm, const struct pp_nccl_end *e,
		     struct work *w)
{
	struct pair key = {{comm, e->key.from, e->key.to, e->key.channel, e->key.connection},
			   0,
			   e->place},
		    *p;
	struct side host = {{comm, 0}, 0}, *s;
	uint32_t bits = e->key.direction == PP_NCCL_BOTH ? 3 : 1U << e->key.direction, i;
	bool is_new;

	host.key.host = pp_nccl_group_host(
		c->group, comm, e->key.direction == PP_NCCL_RECEIVE ? e->key.to : e->key.from);
	i = pp_nccl_table_put(&w->hosts, &host, NULL);
	if (i == PP_NCCL_NONE)
		return -ENOMEM;
	s = pp_nccl_table_at(&w->hosts, i);
	s->sides |= bits;
	if (e->key.transport == PP_NCCL_VIA_COLLNET || e->key.transport == PP_NCCL_VIA_MNNVL)
		return 0;
	i = pp_nccl_table_put(&w->pairs, &key, &is_new);
	if (i == PP_NCCL_NONE)
		return -ENOMEM;
	p = pp_nccl_table_at(&w->pairs, i);
	p->sides |= bits;
	if (is_new)
		p->place = e->place;
	return 0;
}

static void count_unpaired(struct pp_nccl_case *c, const struct work *w)
{
	struct pp_nccl_ends *n = &c->j->ends;
	const struct pp_nccl_comm *comm;
	const struct pair *p;
	const struct side *s;
	uint64_t whole = 0, wanted = 0;

	for (uint32_t i = 0; i < w->pairs.n; i++) {
		p = pp_nccl_table_at(&w->pairs, i);
		if (p->sides != 3)
			count(&n->unpaired, &n->unpaired_at, p->place);
	}
	for (uint32_t i = 0; i < w->hosts.n; i++) {
		s = pp_nccl_table_at(&w->hosts, i);
		whole += s->sides == 3;
	}
	for (uint32_t i = 0; i < c->group->comms.n; i++) {
		comm = pp_nccl_group_comm(c->group, i);
		if (pp_nccl_spans_hosts(comm))
			wanted += comm->hosts;
	}
	/* a host that only sends, or has no line at all: something is missing */
	if (whole < wanted && !n->unpaired)
		n->unpaired = 1;
}

static bool registers_like_ib(const struct pp_nccl_job *job, uint32_t network)
{
	const char *name = pp_nccl_job_name(job, network);

	return !strncmp(name, "IB", 2) || !strncmp(name, "NCCL RDMA Plugin", 16);
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
	bool complete = c->j->coverage == PP_NCCL_COVER_ALL && !c->j->ends.unpaired;

	for (uint32_t i = 0; i < c->job->ends.n; i++) {
		e = pp_nccl_table_at(&c->job->ends, i);
		if (!e->key.gdr)
			continue;
		p = pp_nccl_table_at(&c->job->processes, e->key.process);
		all++;
		dmabuf += p->registered_dmabuf >= w->direct[e->key.process];
		old += e->key.old;
		off += e->key.old || (p->dmabuf_off.file != PP_NCCL_NONE &&
				      registers_like_ib(c->job, e->key.network));
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
		/* NET inside a host is rare: what cannot be placed is taken to cross */
		n->unknown_hosts += crossing == PP_NCCL_CROSSING_UNKNOWN;
		classify(c, e, w);
		r = note_pair(c, c->group->comm_of_end[i], e, w);
		if (r)
			return r;
	}
	count_unpaired(c, w);
	c->j->mechanism = mechanism(c, w);
	return 0;
}

int pp_nccl_judge_ends(struct pp_nccl_case *c)
{
	struct work w = {
		.pairs = PP_NCCL_TABLE(struct pair, 20, PP_NCCL_MAX_ENDS),
		.hosts = PP_NCCL_TABLE(struct side, 8, PP_NCCL_MAX_ENDS),
		.direct = calloc(c->job->processes.n + 1, sizeof(uint32_t)),
	};
	int r = w.direct ? walk(c, &w) : -ENOMEM;

	pp_nccl_table_done(&w.pairs);
	pp_nccl_table_done(&w.hosts);
	free(w.direct);
	return r;
}
