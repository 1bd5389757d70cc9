/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/run_judge.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

/* Appends @name to a list in @text, once. */
static void name_once(char *text, size_t size, const char *name)
{
	size_t len = strlen(text), n = strlen(name);

	for (const char *at = text; n && (at = strstr(at, name)); at++)
		if ((at == text || at[-1] == ' ') && (!at[n] || at[n] == ','))
			return;
	if (n && len + n + 3 < size)
		(void)snprintf(text + len, size - len, "%s%s", len ? ", " : "", name);
}

/* Connections by the network, of those between hosts; a process without any connection has none. */
static void name_networks(const struct pp_nccl_job *job, const struct pp_nccl_group *g,
			  struct pp_nccl_run *r)
{
	for (uint32_t i = 0; i < job->ends.n; i++) {
		const struct pp_nccl_end *e = pp_nccl_table_at(&job->ends, i);
		enum pp_nccl_crossing crossing = pp_nccl_group_crossing(g, g->comm_of_end[i], e);
		const char *network = pp_nccl_job_name(job, e->key.network);
		bool collnet = e->key.transport == PP_NCCL_VIA_COLLNET;

		if (collnet) {
			name_once(r->in_network, sizeof(r->in_network), "COLLNET");
			if (strcasestr(network, "SHARP"))
				name_once(r->in_network, sizeof(r->in_network), "SHARP");
		}
		if (e->key.transport == PP_NCCL_VIA_MNNVL)
			name_once(r->networks, sizeof(r->networks), "MNNVL");
		if ((e->key.transport == PP_NCCL_VIA_NET || collnet) &&
		    (crossing == PP_NCCL_BETWEEN || crossing == PP_NCCL_CROSSING_UNKNOWN))
			name_once(r->networks, sizeof(r->networks), network);
	}
}

static void take_speed(const struct pp_nccl_bench *b, struct pp_nccl_run *r)
{
	struct pp_nccl_run_speed *s = &r->speed;
	const char *at = strstr(r->command, "_perf"), *from = at;

	if (!b->rows)
		return;
	s->known = b->largest && b->smallest;
	s->large_bytes = b->largest;
	s->small_bytes = b->smallest;
	s->large_busbw_gbps = b->largest_busbw_gbps;
	s->small_us = b->smallest_us;
	s->payload_bytes = b->payload_bytes;
	s->wrong = b->rows_wrong;
	s->unchecked = b->rows_unchecked;
	(void)snprintf(s->collective, sizeof(s->collective), "%s", b->collective);
	if (*s->collective)
		return;
	/* older ones do not say it; nccl-tests' programs are called by what they do */
	while (from && from > r->command &&
	       (from[-1] == '_' || (from[-1] >= 'a' && from[-1] <= 'z')))
		from--;
	if (from)
		(void)snprintf(s->collective, sizeof(s->collective), "%.*s", (int)(at - from),
			       from);
}

static void take_root(const struct pp_nccl_job *job, uint32_t root, char *ret, size_t size)
{
	const struct pp_nccl_error *e;

	*ret = '\0';
	if (root == PP_NCCL_NONE)
		return;
	e = pp_nccl_table_at(&job->errors, root);
	(void)snprintf(ret, size, "%s", e->text);
	pp_sanitize(ret, false);
}

int pp_nccl_run_judge(struct pp_nccl_feed *f, struct pp_nccl_run *r, char *ret_root, size_t size)
{
	struct pp_nccl_group group;
	int e = pp_nccl_feed_judge(f, &group, &r->judgement);

	if (e)
		return e;
	name_networks(&f->job, &group, r);
	if (f->job.nvls)
		name_once(r->in_network, sizeof(r->in_network), "NVLS");
	take_speed(&f->job.bench, r);
	take_root(&f->job, r->judgement.root, ret_root, size);
	r->simulated = r->simulated || r->judgement.simulated;
	pp_nccl_group_done(&group);
	return 0;
}
