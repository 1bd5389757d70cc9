/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of the job is here, which version wrote it, and what its capability lines allow.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/judge_parts.h"
#include "base/banned.h"

static int compare_ranks(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The ranks of a communicator that have a seat, in order. */
static int seated(const struct pp_nccl_group *g, uint32_t comm, uint32_t **ret, uint32_t *ret_n)
{
	uint32_t *ranks = malloc((g->seats.n + 1) * sizeof(*ranks)), n = 0;
	const struct pp_nccl_seat *s;

	if (!ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->seats.n; i++) {
		s = pp_nccl_table_at(&g->seats, i);
		if (s->key.comm == comm)
			ranks[n++] = s->key.rank;
	}
	qsort(ranks, n, sizeof(*ranks), compare_ranks);
	*ret = ranks;
	*ret_n = n;
	return 0;
}

/* The gaps between the ranks that are here: a log may claim any number of ranks. */
static int list_missing(struct pp_nccl_case *c, uint32_t comm, uint32_t n_ranks)
{
	char *out = c->j->missing;
	size_t len = 0, size = sizeof(c->j->missing);
	uint32_t *here, n_here, from = 0, to;
	int r = seated(c->group, comm, &here, &n_here), n;

	if (r)
		return r;
	for (uint32_t i = 0; i <= n_here && len + 28 < size; i++) {
		to = i < n_here ? here[i] : n_ranks;
		if (from < to) {
			n = to - from == 1
				    ? snprintf(out + len, size - len, "%s%u", len ? ", " : "", from)
				    : snprintf(out + len, size - len, "%s%u-%u", len ? ", " : "",
					       from, to - 1);
			len += n > 0 ? (size_t)n : 0;
			if (len + 28 >= size)
				(void)snprintf(out + len, size - len, ", ...");
		}
		from = to + 1;
	}
	free(here);
	return 0;
}

int pp_nccl_judge_coverage(struct pp_nccl_case *c)
{
	struct pp_nccl_judgement *j = c->j;
	const struct pp_nccl_comm *comm;
	bool spans = false, headless = false;
	int r;

	for (uint32_t i = 0; i < c->group->comms.n; i++)
		spans |= pp_nccl_spans_hosts(pp_nccl_group_comm(c->group, i));
	for (uint32_t i = 0; i < c->group->comms.n; i++) {
		comm = pp_nccl_group_comm(c->group, i);
		headless |= !comm->key.n_ranks;
		if (spans && pp_nccl_one_host(comm))
			continue;
		j->ranks += comm->key.n_ranks;
		j->ranks_seen += comm->key.n_ranks ? comm->seen : 0;
		r = comm->key.n_ranks > comm->seen && !*j->missing
			    ? list_missing(c, i, comm->key.n_ranks)
			    : 0;
		if (r)
			return r;
	}
	if (!c->job->lines)
		j->coverage = PP_NCCL_COVER_NONE;
	else if (!j->ranks || headless)
		j->coverage = PP_NCCL_COVER_EXCERPT;
	else if (j->ranks_seen >= j->ranks)
		j->coverage = PP_NCCL_COVER_ALL;
	else
		j->coverage = j->ranks_seen == 1 ? PP_NCCL_COVER_ONE : PP_NCCL_COVER_SOME;
	return 0;
}

static void put_version(char *out, size_t size, int v)
{
	if (v % 100 == 0 || v % 100 == 99)
		(void)snprintf(out, size, "%d.%d", v / 10000, v / 100 % 100);
	else
		(void)snprintf(out, size, "%d.%d.%d", v / 10000, v / 100 % 100, v % 100);
}

static void range_text(const struct pp_nccl_job *job, char *out, size_t size)
{
	char from[24], to[24];

	put_version(from, sizeof(from), job->oldest);
	put_version(to, sizeof(to), job->newest);
	if (job->oldest == PP_NCCL_OLDEST && job->newest == PP_NCCL_NEWEST)
		(void)snprintf(out, size, "unknown");
	else if (job->newest == PP_NCCL_NEWEST)
		(void)snprintf(out, size, ">=%s", from);
	else if (job->oldest == PP_NCCL_OLDEST)
		(void)snprintf(out, size, "<=%s", to);
	else if (!strcmp(from, to))
		(void)snprintf(out, size, "%s", from);
	else
		(void)snprintf(out, size, "%s-%s", from, to);
}

static void join_versions(const struct pp_nccl_job *job, char *out, size_t size)
{
	size_t len = 0;

	for (uint32_t i = 0; i < job->n_versions && len + 16 < size; i++) {
		put_version(out + len, size - len, (int)job->versions[i].value);
		/* 2.12.0 prints as itself here */
		(void)snprintf(out + len, size - len, "%s%u.%u.%u", i ? ", " : "",
			       job->versions[i].value / 10000, job->versions[i].value / 100 % 100,
			       job->versions[i].value % 100);
		len += strlen(out + len);
	}
}

static void two_in_one(struct pp_nccl_case *c)
{
	const struct pp_nccl_version *v = c->job->versions;

	for (uint32_t i = 1; i < c->job->n_versions; i++) {
		if (v[i].process == v[i - 1].process && v[i].process != PP_NCCL_NONE)
			pp_nccl_because(c, v[i].place,
					"two NCCL libraries in one process: %s and %s",
					v[i - 1].text, v[i].text);
	}
}

void pp_nccl_judge_version(struct pp_nccl_case *c)
{
	const struct pp_nccl_job *job = c->job;
	struct pp_nccl_judgement *j = c->j;
	int v = job->n_versions ? (int)job->versions[0].value : 0;
	char range[48];

	range_text(job, range, sizeof(range));
	if (job->oldest > job->newest) {
		pp_nccl_because(c, job->oldest_at,
				"lines of more than one NCCL version: this form came later than "
				"the form at another line");
		two_in_one(c);
		join_versions(job, j->version, sizeof(j->version));
		if (!job->n_versions)
			(void)snprintf(j->version, sizeof(j->version), "unknown");
		return;
	}
	if (job->n_versions > 1 || (v && v >= job->oldest && v <= job->newest)) {
		two_in_one(c);
		join_versions(job, j->version, sizeof(j->version));
		return;
	}
	j->version_by_format = true;
	(void)snprintf(j->version, sizeof(j->version), "%s", range);
	if (v)
		pp_nccl_because(c, v < job->oldest ? job->oldest_at : job->newest_at,
				"the log calls itself NCCL %s, but this line's form belongs to %s",
				job->versions[0].text, range);
}

/* Over all processes: what was the network, as far as they said? */
static void chosen(const struct pp_nccl_job *job, uint32_t *ret_tcp, uint32_t *ret_rdma)
{
	const struct pp_nccl_choice *k;

	*ret_tcp = *ret_rdma = 0;
	for (uint32_t i = 0; i < job->choices.n; i++) {
		k = pp_nccl_table_at(&job->choices, i);
		if (k->key.kind != PP_NCCL_USING_NETWORK)
			continue;
		if (pp_nccl_is_tcp(job, k->key.network))
			++*ret_tcp;
		else
			++*ret_rdma;
	}
}

/*
 * A process none of whose NICs can do it stages all that it sends and receives; one that has some
 * NIC that can, may use that.
 */
static enum pp_nccl_path by_capability(const struct pp_nccl_job *job)
{
	uint32_t able = 0, unable = 0, near = 0, far = 0;
	const struct pp_nccl_process *p;
	const struct pp_nccl_gpu *g;

	for (uint32_t i = 0; i < job->processes.n; i++) {
		p = pp_nccl_table_at(&job->processes, i);
		able += p->hca_able;
		unable += p->hca_unable && !p->hca_able;
	}
	for (uint32_t i = 0; i < job->gpus.n; i++) {
		g = pp_nccl_table_at(&job->gpus, i);
		near += g->near > 0;
		far += !g->near && g->far;
	}
	if ((unable && !able) || (far && !near))
		return PP_NCCL_PATH_STAGED;
	if (unable || far)
		return PP_NCCL_PATH_MIXED;
	return near || able ? PP_NCCL_PATH_GDR : PP_NCCL_PATH_UNDETERMINED;
}

void pp_nccl_judge_expected(struct pp_nccl_case *c)
{
	uint32_t tcp, rdma;

	chosen(c->job, &tcp, &rdma);
	if (tcp)
		c->j->expected_path = rdma ? PP_NCCL_PATH_MIXED : PP_NCCL_PATH_SOCKET;
	else
		c->j->expected_path = by_capability(c->job);
}
