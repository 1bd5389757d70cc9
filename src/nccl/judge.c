/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/judge_parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

/* Below this a message may have gone by the LL protocols, whose send side is host memory. */
static const uint64_t LARGE_BYTES = 1 << 20;

static const struct pp_nccl_place NOWHERE = {PP_NCCL_NONE, 0};

void pp_nccl_because(struct pp_nccl_case *c, struct pp_nccl_place at, const char *fmt, ...)
{
	struct pp_nccl_why *w;
	va_list ap;

	if (c->j->n_why >= PP_NCCL_MAX_WHY)
		return;
	w = &c->j->why[c->j->n_why++];
	w->place = at;
	va_start(ap, fmt);
	(void)vsnprintf(w->text, sizeof(w->text), fmt, ap);
	va_end(ap);
}

static bool crossed_nothing(const struct pp_nccl_case *c)
{
	const struct pp_nccl_ends *n = &c->j->ends;
	bool any = false;

	if (n->gdr || n->staged || n->socket || n->nvlink)
		return false;
	for (uint32_t i = 0; i < c->group->comms.n; i++) {
		if (!pp_nccl_one_host(pp_nccl_group_comm(c->group, i)))
			return false;
		any = true;
	}
	return any;
}

static enum pp_nccl_path path_within(const struct pp_nccl_case *c)
{
	const struct pp_nccl_end *e;

	if (c->job->nvlink.file == PP_NCCL_NONE || !c->job->ends.n)
		return PP_NCCL_PATH_UNDETERMINED;
	for (uint32_t i = 0; i < c->job->ends.n; i++) {
		e = pp_nccl_table_at(&c->job->ends, i);
		if (e->key.transport != PP_NCCL_VIA_P2P)
			return PP_NCCL_PATH_UNDETERMINED;
	}
	return PP_NCCL_PATH_NVLINK;
}

static enum pp_nccl_path path_between(const struct pp_nccl_ends *n)
{
	uint32_t kinds = !!n->gdr + !!n->staged + !!n->socket + !!n->nvlink;

	if (kinds > 1 || n->ll)
		return PP_NCCL_PATH_MIXED;
	if (n->gdr)
		return PP_NCCL_PATH_GDR;
	if (n->staged)
		return PP_NCCL_PATH_STAGED;
	if (n->socket)
		return PP_NCCL_PATH_SOCKET;
	return n->nvlink ? PP_NCCL_PATH_NVLINK : PP_NCCL_PATH_UNDETERMINED;
}

static bool every_rank_connected(const struct pp_nccl_case *c)
{
	const struct pp_nccl_seat *s;

	for (uint32_t i = 0; i < c->group->seats.n; i++) {
		s = pp_nccl_table_at(&c->group->seats, i);
		if (!s->connected && pp_nccl_spans_hosts(pp_nccl_group_comm(c->group, s->key.comm)))
			return false;
	}
	return true;
}

static uint32_t widest(const struct pp_nccl_case *c)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < c->group->comms.n; i++) {
		const struct pp_nccl_comm *comm = pp_nccl_group_comm(c->group, i);

		most = comm->key.n_ranks > most ? comm->key.n_ranks : most;
	}
	return most;
}

/* Every end of every connection is here and direct. Says what is missing, and returns false. */
static bool all_direct(struct pp_nccl_case *c)
{
	const struct pp_nccl_ends *n = &c->j->ends;

	if (!n->gdr)
		pp_nccl_because(c, NOWHERE, "no connection line between hosts");
	else if (c->j->coverage != PP_NCCL_COVER_ALL)
		pp_nccl_because(c, NOWHERE, "lines of %" PRIu64 " of %" PRIu64 " ranks only",
				c->j->ranks_seen, c->j->ranks);
	else if (n->unknown_hosts || n->ambiguous)
		pp_nccl_because(c, n->gdr_at,
				"connections that cannot be given to one communicator or host");
	else if (n->unpaired)
		pp_nccl_because(c, n->unpaired_at.line ? n->unpaired_at : NOWHERE,
				"connections of which one end only is here");
	else if (!every_rank_connected(c))
		pp_nccl_because(c, NOWHERE, "a rank without any connection line");
	else if (pp_nccl_job_full(c->job) || c->group->failed || c->job->cut)
		pp_nccl_because(c, NOWHERE, "lines were left out: too many, or too long");
	else
		return true;
	return false;
}

/* The program or the library gave up. */
static bool gave_up(struct pp_nccl_case *c)
{
	const struct pp_nccl_process *p;

	if (c->job->application_failed.file != PP_NCCL_NONE) {
		pp_nccl_because(c, c->job->application_failed, "the program reports a failure");
		return true;
	}
	for (uint32_t i = 0; i < c->job->processes.n; i++) {
		p = pp_nccl_table_at(&c->job->processes, i);
		if (p->returned.file == PP_NCCL_NONE)
			continue;
		pp_nccl_because(c, p->returned, "the library returned an error");
		return true;
	}
	return false;
}

/* Checked results of large messages, from all ranks, and no error. */
static bool traffic_finished(struct pp_nccl_case *c)
{
	const struct pp_nccl_bench *b = &c->job->bench;

	if (c->j->root != PP_NCCL_NONE || gave_up(c))
		return false;
	if (b->rows_wrong || b->bounds_failed) {
		pp_nccl_because(c, b->wrong, "nccl-tests found wrong data");
		return false;
	}
	if (!b->bounds_ok || b->largest_right < LARGE_BYTES || b->rank_lines < widest(c)) {
		pp_nccl_because(c, NOWHERE,
				"no proof that large messages arrived: nccl-tests with checked "
				"results of 1 MiB and more, for all ranks");
		return false;
	}
	pp_nccl_because(c, b->row, "%" PRIu64 " bytes checked right by nccl-tests",
			b->largest_right);
	return true;
}

/* Connection lines come before registration: a failed one takes back what they said. */
static void void_path(struct pp_nccl_case *c)
{
	const struct pp_nccl_error *e;

	for (uint32_t i = 0; i < c->job->errors.n; i++) {
		e = pp_nccl_table_at(&c->job->errors, i);
		if (pp_nccl_error_nature(e) != PP_NCCL_NATURE_REGISTRATION ||
		    c->j->path != PP_NCCL_PATH_GDR)
			continue;
		c->j->path = PP_NCCL_PATH_UNDETERMINED;
		c->j->mechanism = PP_NCCL_MECHANISM_FAILED;
	}
}

static enum pp_nccl_claim claim(struct pp_nccl_case *c)
{
	struct pp_nccl_judgement *j = c->j;
	const struct pp_nccl_error *root = pp_nccl_root(c);

	if (crossed_nothing(c)) {
		pp_nccl_because(c, j->ends.within ? j->ends.within_at : NOWHERE,
				"nothing crossed hosts: one node");
		return PP_NCCL_REFUTED;
	}
	if (pp_nccl_refuted_by_ends(c))
		return PP_NCCL_REFUTED;
	if (pp_nccl_failed_before_moving(c)) {
		if (j->path == PP_NCCL_PATH_GDR) {
			j->path = PP_NCCL_PATH_UNDETERMINED;
			j->mechanism = PP_NCCL_MECHANISM_FAILED;
		}
		return PP_NCCL_REFUTED;
	}
	if (pp_nccl_refuted_by_capability(c))
		return PP_NCCL_REFUTED;
	if (j->ends.gdr)
		pp_nccl_because(c, j->ends.gdr_at, "%" PRIu32 " ends between hosts, all GDRDMA",
				j->ends.gdr);
	if (root)
		pp_nccl_because(c, root->place, "the job failed: %s", pp_nccl_error_cause(root));
	if (!all_direct(c) || !traffic_finished(c))
		return PP_NCCL_UNPROVEN;
	if (!j->simulated)
		return PP_NCCL_PROVEN;
	pp_nccl_because(c, c->job->simulated,
			"a software RDMA device: the chain was exercised in simulation only");
	return PP_NCCL_UNPROVEN;
}

static void claim_mechanism(struct pp_nccl_case *c)
{
	struct pp_nccl_judgement *j = c->j;
	bool known = j->mechanism == PP_NCCL_MECHANISM_DMABUF ||
		     j->mechanism == PP_NCCL_MECHANISM_PEERMEM;

	if (j->claim_gdr == PP_NCCL_REFUTED)
		j->claim_mechanism = PP_NCCL_REFUTED;
	else if (j->claim_gdr == PP_NCCL_PROVEN && known &&
		 c->job->user_buffer.file == PP_NCCL_NONE)
		j->claim_mechanism = PP_NCCL_PROVEN;
	else
		j->claim_mechanism = PP_NCCL_UNPROVEN;
	if (j->path == PP_NCCL_PATH_GDR && !known)
		pp_nccl_because(c, NOWHERE, "no line names the mechanism: DMA-BUF or peermem");
	if (c->job->user_buffer.file != PP_NCCL_NONE)
		pp_nccl_because(c, c->job->user_buffer,
				"registered user buffers may use another mechanism, silently");
}

/* NCCL_IB_DISABLE speaks to the built-in network alone. */
static void note_disabled(struct pp_nccl_case *c)
{
	const struct pp_nccl_setting *v;
	const struct pp_nccl_end *e;
	const char *name;

	for (uint32_t i = 0; i < c->job->settings.n; i++) {
		v = pp_nccl_table_at(&c->job->settings, i);
		if (strcmp(pp_nccl_job_name(c->job, v->key.name), "IB_DISABLE") != 0 ||
		    strcmp(v->value, "1") != 0)
			continue;
		for (uint32_t k = 0; k < c->job->ends.n; k++) {
			e = pp_nccl_table_at(&c->job->ends, k);
			name = pp_nccl_job_name(c->job, e->key.network);
			if (e->key.transport != PP_NCCL_VIA_NET ||
			    pp_nccl_is_tcp(c->job, e->key.network))
				continue;
			pp_nccl_because(c, v->place,
					"NCCL_IB_DISABLE=1 has no effect on the plug-in's network "
					"%s",
					name);
			return;
		}
	}
}

static void side_notes(struct pp_nccl_case *c)
{
	const struct pp_nccl_choice *none = pp_nccl_find_choice(c->job, PP_NCCL_IB_NONE, false);
	const struct pp_nccl_choice *failed =
		pp_nccl_find_choice(c->job, PP_NCCL_NET_FAILED, false);

	if (failed)
		pp_nccl_because(c, failed->place, "network %s did not start",
				pp_nccl_job_name(c->job, failed->key.network));
	else if (none)
		pp_nccl_because(c, none->place, "the built-in IB network found nothing to use");
	note_disabled(c);
}

static const char *next_step(const struct pp_nccl_judgement *j)
{
	if (j->claim_gdr == PP_NCCL_PROVEN)
		return j->claim_mechanism == PP_NCCL_PROVEN
			       ? ""
			       : "peerpath prove   (on each node: which mechanism registers GPU "
				 "memory)";
	if (j->mechanism == PP_NCCL_MECHANISM_NONE && !j->ends.socket && !j->ends.staged &&
	    !j->ends.nvlink)
		return "the same job over two nodes, all ranks with NCCL_DEBUG=INFO";
	if (j->root != PP_NCCL_NONE || j->claim_gdr == PP_NCCL_REFUTED)
		return "peerpath prove   (on each node: which link of the chain is broken)";
	return "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,REG mpirun ... "
	       "all_reduce_perf -b 1M -e 256M -f 2 -c 1 > job.log 2>&1; peerpath nccl judge "
	       "job.log";
}

int pp_nccl_judge(struct pp_nccl_job *job, struct pp_nccl_group *group,
		  struct pp_nccl_judgement *ret)
{
	struct pp_nccl_case c = {job, group, ret};
	int r;

	*ret = (struct pp_nccl_judgement){.simulated = job->simulated.file != PP_NCCL_NONE};
	ret->root = pp_nccl_error_root(job);
	pp_nccl_judge_coverage(&c);
	r = pp_nccl_judge_ends(&c);
	if (r)
		return r;
	pp_nccl_judge_expected(&c);
	if (!job->lines)
		pp_nccl_because(&c, NOWHERE, "no line of NCCL in the input");
	ret->path = crossed_nothing(&c) ? path_within(&c) : path_between(&ret->ends);
	ret->claim_gdr = claim(&c);
	void_path(&c);
	if (crossed_nothing(&c)) {
		ret->mechanism = PP_NCCL_MECHANISM_NONE;
		ret->expected_path = ret->path;
	}
	if (!crossed_nothing(&c) && ret->path != PP_NCCL_PATH_GDR &&
	    ret->mechanism != PP_NCCL_MECHANISM_FAILED)
		ret->mechanism =
			ret->path == PP_NCCL_PATH_UNDETERMINED || ret->path == PP_NCCL_PATH_MIXED
				? PP_NCCL_MECHANISM_UNDETERMINED
				: PP_NCCL_MECHANISM_NONE;
	claim_mechanism(&c);
	side_notes(&c);
	pp_nccl_judge_version(&c);
	ret->next = next_step(ret);
	return 0;
}
