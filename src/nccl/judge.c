/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/judge_parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

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

	if (n->gdr || n->staged || n->socket || n->nvlink || n->unknown_hosts)
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

/* Neither an error, nor the end of a communicator: as the log of one that was killed. */
static bool just_ends(const struct pp_nccl_case *c, uint32_t process)
{
	const struct pp_nccl_job *job = c->job;
	const struct pp_nccl_process *p = pp_nccl_table_at(&job->processes, process);
	const struct pp_nccl_error *e;

	if (p->same_as || !p->living || p->returned.file != PP_NCCL_NONE)
		return false;
	for (uint32_t i = 0; i < job->errors.n; i++) {
		e = pp_nccl_table_at(&job->errors, i);
		if (e->key.process == process && pp_nccl_error_nature(e) != PP_NCCL_NATURE_WARNING)
			return false;
	}
	return true;
}

/* Where a peer did not answer and one process alone says nothing more, that is the one to look at.
 */
static void note_silent(struct pp_nccl_case *c, const struct pp_nccl_error *root)
{
	const struct pp_nccl_job *job = c->job;
	const struct pp_nccl_process *p;
	uint32_t silent = PP_NCCL_NONE;

	if (!pp_nccl_error_is_silence(root))
		return;
	for (uint32_t i = 0; i < job->processes.n; i++) {
		if (!just_ends(c, i))
			continue;
		if (silent != PP_NCCL_NONE)
			return;
		silent = i;
	}
	if (silent == PP_NCCL_NONE)
		return;
	p = pp_nccl_table_at(&job->processes, silent);
	pp_nccl_because(c, p->place,
			"of all, only process %" PRIu32
			" on %s ends without an error and without the end of its communicator: "
			"it was killed, or it hangs",
			p->key.pid, pp_nccl_job_name(job, p->key.host));
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
		pp_nccl_because(c, j->ends.gdr_at, "%" PRIu32 " end%s between hosts, all GDRDMA",
				j->ends.gdr, j->ends.gdr == 1 ? "" : "s");
	if (root) {
		pp_nccl_because(c, root->place, "an error was reported: %s",
				pp_nccl_error_cause(root));
		note_silent(c, root);
	}
	if (!pp_nccl_proof(c))
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

	/* refuted needs a mechanism that was tried and failed, or that no NIC touched GPU memory */
	if (j->claim_gdr == PP_NCCL_REFUTED &&
	    (j->mechanism == PP_NCCL_MECHANISM_FAILED || j->mechanism == PP_NCCL_MECHANISM_NONE))
		j->claim_mechanism = PP_NCCL_REFUTED;
	else if (j->claim_gdr == PP_NCCL_PROVEN && known &&
		 c->job->user_buffer.file == PP_NCCL_NONE)
		j->claim_mechanism = PP_NCCL_PROVEN;
	else
		j->claim_mechanism = PP_NCCL_UNPROVEN;
	if (j->path == PP_NCCL_PATH_GDR && !known)
		pp_nccl_because(c, j->ends.gdr_at,
				"no line names the mechanism: DMA-BUF or peermem");
	if (c->job->user_buffer.file != PP_NCCL_NONE)
		pp_nccl_because(c, c->job->user_buffer,
				"registered user buffers may use another mechanism, silently");
}

/* NCCL_IB_DISABLE speaks to the built-in network alone. */
static void note_disabled(struct pp_nccl_case *c)
{
	const struct pp_nccl_end *e = NULL;
	const struct pp_nccl_setting *v;
	const char *name = "";

	for (uint32_t i = 0; i < c->job->ends.n; i++) {
		e = pp_nccl_table_at(&c->job->ends, i);
		name = pp_nccl_job_name(c->job, e->key.network);
		if (e->key.transport == PP_NCCL_VIA_NET && strcmp(name, "IB") != 0 &&
		    !pp_nccl_is_tcp(c->job, e->key.network))
			break;
		e = NULL;
	}
	for (uint32_t i = 0; e && i < c->job->settings.n; i++) {
		v = pp_nccl_table_at(&c->job->settings, i);
		if (strcmp(pp_nccl_job_name(c->job, v->key.name), "IB_DISABLE") != 0 ||
		    strcmp(v->value, "1") != 0)
			continue;
		pp_nccl_because(c, v->place,
				"NCCL_IB_DISABLE=1 has no effect on the plug-in's network %s",
				name);
		return;
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

int pp_nccl_judge(struct pp_nccl_job *job, struct pp_nccl_group *group,
		  struct pp_nccl_judgement *ret)
{
	struct pp_nccl_case c = {job, group, ret};
	int r;

	*ret = (struct pp_nccl_judgement){.simulated = job->simulated.file != PP_NCCL_NONE};
	ret->root = pp_nccl_error_root(job);
	r = pp_nccl_judge_coverage(&c);
	if (!r)
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
	pp_nccl_judge_next(&c);
	return 0;
}
