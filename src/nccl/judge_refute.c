/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What refutes the claim, each with its reason: connections that are not direct, devices that
 * cannot, a job that failed before it moved data.
 */
#include <inttypes.h>

#include "nccl/judge_parts.h"
#include "base/banned.h"

const struct pp_nccl_choice *pp_nccl_find_choice(const struct pp_nccl_job *job,
						 enum pp_nccl_kind kind, bool tcp)
{
	const struct pp_nccl_choice *k;

	for (uint32_t i = 0; i < job->choices.n; i++) {
		k = pp_nccl_table_at(&job->choices, i);
		if (k->key.kind == kind && (!tcp || pp_nccl_is_tcp(job, k->key.network)))
			return k;
	}
	return NULL;
}

const struct pp_nccl_error *pp_nccl_root(const struct pp_nccl_case *c)
{
	return c->j->root == PP_NCCL_NONE ? NULL : pp_nccl_table_at(&c->job->errors, c->j->root);
}

/* A failure that says: memory could not be used, or nothing was ever connected. */
bool pp_nccl_failed_before_moving(struct pp_nccl_case *c)
{
	const struct pp_nccl_choice *none = pp_nccl_find_choice(c->job, PP_NCCL_NET_NONE, false);
	const struct pp_nccl_error *root = pp_nccl_root(c);
	const struct pp_nccl_process *p;

	if (c->job->bench.largest_right)
		return false;
	if (none) {
		pp_nccl_because(c, none->place,
				"no network could start: the job failed before moving "
				"data");
		return true;
	}
	if (root && pp_nccl_error_nature(root) <= PP_NCCL_NATURE_REGISTRATION) {
		pp_nccl_because(c, root->place, "%s; no line shows that data moved before",
				pp_nccl_error_cause(root));
		return true;
	}
	if (root && pp_nccl_error_nature(root) == PP_NCCL_NATURE_SETUP) {
		pp_nccl_because(c, root->place, "the job failed before moving data: %s",
				pp_nccl_error_cause(root));
		return true;
	}
	for (uint32_t i = 0; !c->job->ends.n && i < c->job->processes.n; i++) {
		p = pp_nccl_table_at(&c->job->processes, i);
		if (p->start_failed.file == PP_NCCL_NONE)
			continue;
		pp_nccl_because(c, p->start_failed, "the library gave up before any connection");
		return true;
	}
	return false;
}

/* The first NIC that cannot, and the first GPU that is too far: why a path is not direct. */
static void because_unable(struct pp_nccl_case *c)
{
	const struct pp_nccl_nic *nic;
	const struct pp_nccl_gpu *g;

	for (uint32_t i = 0; i < c->job->nics.n; i++) {
		nic = pp_nccl_table_at(&c->job->nics, i);
		if (nic->able != PP_NCCL_UNABLE || pp_nccl_is_tcp(c->job, nic->key.network))
			continue;
		pp_nccl_because(c, nic->place, "hca %s cannot do GPU Direct RDMA",
				pp_nccl_job_name(c->job, nic->name));
		break;
	}
	for (uint32_t i = 0; i < c->job->gpus.n; i++) {
		g = pp_nccl_table_at(&c->job->gpus, i);
		if (g->near || !g->far)
			continue;
		pp_nccl_because(c, g->place,
				"a GPU is too far from its NIC: distance %" PRIu64 " > %" PRIu64,
				g->distance, g->limit);
		break;
	}
}

/* Which communicator's rings is not known, but each one of the process spans hosts. */
static bool whichever_spans(const struct pp_nccl_case *c, const struct pp_nccl_process *p)
{
	const struct pp_nccl_comm *comm;
	const struct pp_nccl_member *m;

	for (uint32_t i = p->members; i; i = m->previous) {
		m = pp_nccl_table_at(&c->job->members, i - 1);
		comm = pp_nccl_group_comm(c->group, m->comm);
		if (!comm || !pp_nccl_spans_hosts(comm))
			return false;
	}
	return p->members > 0;
}

/* Where the library says that rings between hosts are without GDR; file NONE: nowhere. */
static struct pp_nccl_place rings_without_gdr(const struct pp_nccl_case *c)
{
	const struct pp_nccl_process *p;
	const struct pp_nccl_comm *comm;

	for (uint32_t i = 0; i < c->group->comms.n; i++) {
		comm = pp_nccl_group_comm(c->group, i);
		if (comm->failed_rings && pp_nccl_spans_hosts(comm))
			return comm->rings;
	}
	for (uint32_t i = 0; i < c->job->processes.n; i++) {
		p = pp_nccl_table_at(&c->job->processes, i);
		if (p->rings_unclear.file != PP_NCCL_NONE && whichever_spans(c, p))
			return p->rings_unclear;
	}
	return (struct pp_nccl_place){PP_NCCL_NONE, 0};
}

static const char *ends_use(uint32_t n)
{
	return n == 1 ? "end between hosts uses" : "ends between hosts use";
}

/* Connections that are not direct; each is a reason of its own. */
bool pp_nccl_refuted_by_ends(struct pp_nccl_case *c)
{
	const struct pp_nccl_ends *n = &c->j->ends;
	struct pp_nccl_place rings = rings_without_gdr(c);

	if (n->socket)
		pp_nccl_because(c, n->socket_at, "%" PRIu32 " %s TCP sockets", n->socket,
				ends_use(n->socket));
	if (n->staged)
		pp_nccl_because(c, n->staged_at,
				"%" PRIu32 " %s RDMA without GDRDMA: through host memory",
				n->staged, ends_use(n->staged));
	if (n->staged)
		because_unable(c);
	if (n->nvlink)
		pp_nccl_because(c, n->nvlink_at, "%" PRIu32 " %s NVLink: no NIC", n->nvlink,
				ends_use(n->nvlink));
	if (n->ll)
		pp_nccl_because(c, n->gdr_at,
				"NCCL_PROTO allows LL only: senders keep their buffers in host "
				"memory");
	if (rings.file != PP_NCCL_NONE) {
		/* said over all ranks: the ends that lack it may be another rank's */
		pp_nccl_because(c, rings, "the library says of the rings: GDR 0");
		if (c->j->path == PP_NCCL_PATH_GDR)
			c->j->path = PP_NCCL_PATH_MIXED;
		return true;
	}
	return n->socket || n->staged || n->nvlink || n->ll;
}

bool pp_nccl_refuted_by_capability(struct pp_nccl_case *c)
{
	const struct pp_nccl_choice *tcp = pp_nccl_find_choice(c->job, PP_NCCL_USING_NETWORK, true);

	if (c->j->ends.gdr)
		return false;
	if (c->j->expected_path != PP_NCCL_PATH_STAGED &&
	    c->j->expected_path != PP_NCCL_PATH_MIXED && c->j->expected_path != PP_NCCL_PATH_SOCKET)
		return false;
	if (tcp)
		pp_nccl_because(c, tcp->place, "the network chosen is %s: TCP sockets",
				pp_nccl_job_name(c->job, tcp->key.network));
	else
		because_unable(c);
	return true;
}
