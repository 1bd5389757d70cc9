/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What proves the claim: that nothing is missing between the connections, and that checked traffic
 * used them to its end. Each test that fails says what is not there; the first one that does ends
 * the search. A line that is not printed never helps: every test asks for lines.
 */
#include <inttypes.h>

#include "nccl/judge_parts.h"
#include "base/banned.h"

/*
 * What each rank sends of a message, at least. Smaller parts may go by the protocol LL, whose send
 * side is host memory.
 */
static const uint64_t LARGE_BYTES = 1 << 20;

static const struct pp_nccl_place NOWHERE = {PP_NCCL_NONE, 0};

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
	uint32_t most = 1;

	for (uint32_t i = 0; i < c->group->comms.n; i++) {
		const struct pp_nccl_comm *comm = pp_nccl_group_comm(c->group, i);

		most = comm->key.n_ranks > most ? comm->key.n_ranks : most;
	}
	return most;
}

static bool guessed(const struct pp_nccl_case *c)
{
	for (uint32_t i = 0; i < c->group->comms.n; i++)
		if (pp_nccl_group_comm(c->group, i)->guessed)
			return true;
	return false;
}

/*
 * What is not there has no line: the one that says what should be there stands for it, the first of
 * a communicator between hosts that lacks ranks, else of any, else of a process.
 */
static struct pp_nccl_place expected_at(const struct pp_nccl_case *c)
{
	struct pp_nccl_place at = NOWHERE;
	const struct pp_nccl_comm *comm;
	const struct pp_nccl_process *p;

	for (uint32_t i = 0; i < c->group->comms.n; i++) {
		comm = pp_nccl_group_comm(c->group, i);
		if (pp_nccl_spans_hosts(comm) && comm->key.n_ranks > comm->seen)
			return comm->place;
		if (at.file == PP_NCCL_NONE || !i)
			at = comm->place;
	}
	if (at.file == PP_NCCL_NONE && c->job->processes.n) {
		p = pp_nccl_table_at(&c->job->processes, 0);
		at = p->place;
	}
	return at;
}

static void too_few_ranks(struct pp_nccl_case *c)
{
	const struct pp_nccl_judgement *j = c->j;

	if (!j->ranks)
		pp_nccl_because(c, expected_at(c),
				"an excerpt: no line says how many ranks there are");
	else
		pp_nccl_because(c, expected_at(c),
				"lines of %" PRIu64 " of %" PRIu64 " ranks only%s%s", j->ranks_seen,
				j->ranks, *j->missing ? "; missing: " : "", j->missing);
}

/* Every end of every connection is here and direct. */
static bool all_direct(struct pp_nccl_case *c)
{
	const struct pp_nccl_ends *n = &c->j->ends;

	if (!n->gdr && n->unknown_hosts)
		pp_nccl_because(c, n->within_at,
				"the hosts of the connections have one name: whether these are "
				"between hosts cannot be told");
	else if (!n->gdr)
		pp_nccl_because(c, expected_at(c), "no connection line between hosts");
	else if (c->j->coverage != PP_NCCL_COVER_ALL)
		too_few_ranks(c);
	else if (n->unknown_hosts || n->ambiguous || guessed(c))
		pp_nccl_because(c, n->gdr_at,
				"connections that cannot be given to one communicator or host");
	else if (n->unpaired)
		pp_nccl_because(c, n->unpaired_at, "connections of which one end only is here");
	else if (!every_rank_connected(c))
		pp_nccl_because(c, expected_at(c), "a rank without any connection line");
	else if (n->unknown_width)
		pp_nccl_because(c, n->gdr_at,
				"no line says how many channels there are (\"N coll channels\"): "
				"some may be missing here");
	else if (n->narrow)
		pp_nccl_because(c, n->gdr_at,
				"a ring or tree channel without its connections between hosts: "
				"lines are missing, or only send/receive ran");
	else if (n->unknown_net)
		pp_nccl_because(c, n->unknown_net_at,
				"a network that may run over something else than RDMA, and no line "
				"says over what");
	else if (pp_nccl_job_full(c->job) || c->job->errors.full || c->group->failed || c->job->cut)
		pp_nccl_because(c, NOWHERE, "lines were left out: too many, or too long");
	else if (c->job->unfinished)
		pp_nccl_because(c, c->job->unfinished_at,
				"a line was broken in two, or a file ends in one");
	else
		return true;
	return false;
}

/* The program or the library gave up, or some error was reported whatever it means. */
static bool gave_up(struct pp_nccl_case *c)
{
	const struct pp_nccl_process *p;
	const struct pp_nccl_error *e;

	if (c->job->application_failed.file != PP_NCCL_NONE) {
		pp_nccl_because(c, c->job->application_failed, "the program reports a failure");
		return true;
	}
	for (uint32_t i = 0; i < c->job->processes.n; i++) {
		p = pp_nccl_table_at(&c->job->processes, i);
		if (p->returned.file == PP_NCCL_NONE && p->rings_unclear.file == PP_NCCL_NONE)
			continue;
		if (p->returned.file != PP_NCCL_NONE)
			pp_nccl_because(c, p->returned, "the library returned an error");
		else
			pp_nccl_because(c, p->rings_unclear,
					"the library says of some rings: GDR 0");
		return true;
	}
	for (uint32_t i = 0; c->j->root == PP_NCCL_NONE && i < c->job->errors.n; i++) {
		e = pp_nccl_table_at(&c->job->errors, i);
		if (pp_nccl_error_nature(e) == PP_NCCL_NATURE_WARNING)
			continue;
		pp_nccl_because(c, e->place, "an error was reported: %s", pp_nccl_error_cause(e));
		return true;
	}
	return c->j->root != PP_NCCL_NONE;
}

/* A run prints each of three headings, and at its end whether the data of all ranks was right. */
static bool runs_finished(const struct pp_nccl_bench *b)
{
	uint32_t runs = b->parameters;

	runs = b->device_lists > runs ? b->device_lists : runs;
	runs = b->columns > runs ? b->columns : runs;
	return runs && b->bounds_ok >= runs;
}

/* The ranks that nccl-tests lists are those of the communicator, and it is the only one. */
static bool same_ranks(struct pp_nccl_case *c)
{
	const struct pp_nccl_process *p;

	for (uint32_t i = 0; i < c->job->processes.n; i++) {
		p = pp_nccl_table_at(&c->job->processes, i);
		if (p->several) {
			pp_nccl_because(c, p->place,
					"several communicators span hosts: which one carried the "
					"checked messages is not printed");
			return false;
		}
		if (p->listed < p->seats) {
			pp_nccl_because(c, p->place,
					"nccl-tests does not list this process: what was checked "
					"may be another job");
			return false;
		}
	}
	return true;
}

static bool env_shown(const struct pp_nccl_job *job, const struct pp_nccl_process *p)
{
	return p->env_shown ||
	       (p->env_number && job->oldest >= PP_NCCL_V(2, 16, 0) && job->oldest <= job->newest);
}

/*
 * Large messages did not go by LL: the library says by what they went, or the settings are printed
 * and forbid nothing.
 */
static bool protocol_known(struct pp_nccl_case *c)
{
	const struct pp_nccl_protocols *said = &c->job->protocols;
	const struct pp_nccl_process *p;

	if (said->other_bytes >= LARGE_BYTES)
		return true;
	for (uint32_t i = 0; i < c->job->processes.n; i++) {
		p = pp_nccl_table_at(&c->job->processes, i);
		if (!p->seats ||
		    (env_shown(c->job, p) && !p->protocol_unclear && !p->tuner && !said->ll_bytes))
			continue;
		pp_nccl_because(c, p->place,
				"no line shows by which protocol large messages went "
				"(NCCL_DEBUG_SUBSYS with ENV and TUNING)");
		return false;
	}
	return true;
}

/* Checked results of large messages, from all ranks, and no error. */
static bool traffic_finished(struct pp_nccl_case *c)
{
	const struct pp_nccl_bench *b = &c->job->bench;

	if (gave_up(c))
		return false;
	if (b->rows_wrong || b->bounds_failed) {
		pp_nccl_because(c, b->wrong, "nccl-tests found wrong data");
		return false;
	}
	if (!b->largest_right || !runs_finished(b)) {
		pp_nccl_because(c, b->row.file != PP_NCCL_NONE ? b->row : c->j->ends.gdr_at,
				"no proof that large messages arrived: nccl-tests with checked "
				"results, up to its last line");
		return false;
	}
	if (b->largest_right / widest(c) < LARGE_BYTES) {
		pp_nccl_because(c, b->row,
				"no proof that large messages arrived: %" PRIu64
				" bytes over %" PRIu32 " ranks are less than 1 MiB for each",
				b->largest_right, widest(c));
		return false;
	}
	if (!same_ranks(c) || !protocol_known(c))
		return false;
	pp_nccl_because(c, b->row, "%" PRIu64 " bytes checked right by nccl-tests",
			b->largest_right);
	return true;
}

bool pp_nccl_proof(struct pp_nccl_case *c)
{
	/* of a text without a line of NCCL all is said */
	return c->job->lines && all_direct(c) && traffic_finished(c);
}
