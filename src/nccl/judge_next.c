/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one next step: which command, which setting or which log gets further from this judgement.
 * A table in order of use: the first row that applies is the answer.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "nccl/judge_parts.h"
#include "base/banned.h"

#define SETTINGS "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING,REG"

static void PP_PRINTF(2, 3) say(struct pp_nccl_case *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(c->j->next, sizeof(c->j->next), fmt, ap);
	va_end(ap);
}

static const char *file_of(const struct pp_nccl_job *job, struct pp_nccl_place at)
{
	const struct pp_nccl_file *file;

	if (at.file == PP_NCCL_NONE || at.file >= job->files.n)
		return "LOG";
	file = pp_nccl_table_at(&job->files, at.file);
	return strcmp(file->text, "standard input") != 0 ? file->text : "LOG";
}

/* The host whose end of a connection is the first of those that @bad picks, "" for none. */
static const char *host_of(const struct pp_nccl_case *c,
			   bool (*bad)(const struct pp_nccl_case *, const struct pp_nccl_end *))
{
	const struct pp_nccl_process *p;
	const struct pp_nccl_end *e;

	for (uint32_t i = 0; i < c->job->ends.n; i++) {
		e = pp_nccl_table_at(&c->job->ends, i);
		if (e->key.transport > PP_NCCL_VIA_COLLNET || !bad(c, e) ||
		    pp_nccl_group_crossing(c->group, c->group->comm_of_end[i], e) == PP_NCCL_WITHIN)
			continue;
		p = pp_nccl_table_at(&c->job->processes, e->key.process);
		return pp_nccl_job_name(c->job, p->key.host);
	}
	return "";
}

static bool is_socket(const struct pp_nccl_case *c, const struct pp_nccl_end *e)
{
	return pp_nccl_is_tcp(c->job, e->key.network);
}

static bool is_staged(const struct pp_nccl_case *c, const struct pp_nccl_end *e)
{
	return !e->key.gdr && !is_socket(c, e);
}

/* A setting of the job that by itself keeps it off the wanted path; NULL: none was printed. */
static const struct pp_nccl_setting *hindrance(const struct pp_nccl_case *c, bool socket)
{
	static const struct {
		const char *name, *value; /* NULL: any value */
		bool socket;
	} rows[] = {
		{"IB_DISABLE", "1", true},	{"NET", "Socket", true},
		{"DMABUF_ENABLE", "0", false},	{"NET_GDR_READ", "0", false},
		{"NET_GDR_LEVEL", NULL, false},
	};
	const struct pp_nccl_setting *v;
	const char *name;

	for (uint32_t i = 0; i < c->job->settings.n; i++) {
		v = pp_nccl_table_at(&c->job->settings, i);
		name = pp_nccl_job_name(c->job, v->key.name);
		for (size_t k = 0; k < PP_ARRAY_LEN(rows); k++)
			if (rows[k].socket == socket && !strcmp(name, rows[k].name) &&
			    (!rows[k].value || !strcmp(v->value, rows[k].value)))
				return v;
	}
	return NULL;
}

static bool without_setting(struct pp_nccl_case *c, bool socket)
{
	const struct pp_nccl_setting *v = hindrance(c, socket);

	if (!v)
		return false;
	say(c, "run the job again without NCCL_%s=%s (%s:%" PRIu32 ")",
	    pp_nccl_job_name(c->job, v->key.name), v->value, file_of(c->job, v->place),
	    v->place.line);
	return true;
}

static const char *or_each(const char *host)
{
	return *host ? host : "each host";
}

static bool nothing_read(struct pp_nccl_case *c)
{
	if (c->job->lines)
		return false;
	say(c, "run the job with " SETTINGS " on every rank, keep what all ranks print in one "
	       "file, and judge that file");
	return true;
}

static bool error_seen(struct pp_nccl_case *c)
{
	const struct pp_nccl_error *root = pp_nccl_root(c);

	if (!root)
		return false;
	say(c, "peerpath explain %s   (what the first error means, and what repairs it)",
	    file_of(c->job, root->place));
	return true;
}

static bool nothing_started(struct pp_nccl_case *c)
{
	if (!pp_nccl_find_choice(c->job, PP_NCCL_NET_NONE, false))
		return false;
	say(c, "peerpath check   (on each host: is there an hca, and may this process use it)");
	return true;
}

static bool one_node(struct pp_nccl_case *c)
{
	const struct pp_nccl_ends *n = &c->j->ends;

	if (c->j->mechanism != PP_NCCL_MECHANISM_NONE || n->socket || n->staged || n->nvlink)
		return false;
	say(c, "run the same job over two hosts, every rank with " SETTINGS);
	return true;
}

static bool over_sockets(struct pp_nccl_case *c)
{
	if (!c->j->ends.socket && c->j->expected_path != PP_NCCL_PATH_SOCKET)
		return false;
	if (without_setting(c, true))
		return true;
	say(c,
	    "peerpath check   (on %s: is there an hca that NCCL can use); then the job again with "
	    "NCCL_NET=IB, which fails where it would fall back to sockets",
	    or_each(host_of(c, is_socket)));
	return true;
}

static bool over_nvlink(struct pp_nccl_case *c)
{
	if (!c->j->ends.nvlink)
		return false;
	say(c, "run the job again with NCCL_MNNVL_ENABLE=0, so that it uses the NICs");
	return true;
}

static bool too_far(const struct pp_nccl_case *c)
{
	const struct pp_nccl_gpu *g;

	for (uint32_t i = 0; i < c->job->gpus.n; i++) {
		g = pp_nccl_table_at(&c->job->gpus, i);
		if (!g->near && g->far)
			return true;
	}
	return false;
}

/* Every end that lacks GDR sends: receiving into GPU memory works. */
static bool senders_only(const struct pp_nccl_case *c)
{
	const struct pp_nccl_end *e;

	for (uint32_t i = 0; i < c->job->ends.n; i++) {
		e = pp_nccl_table_at(&c->job->ends, i);
		if (e->key.transport == PP_NCCL_VIA_NET && is_staged(c, e) &&
		    e->key.direction != PP_NCCL_SEND)
			return false;
	}
	return c->j->ends.gdr > 0;
}

static bool over_host_memory(struct pp_nccl_case *c)
{
	const char *host = or_each(host_of(c, is_staged));

	if (!c->j->ends.staged && c->j->expected_path != PP_NCCL_PATH_STAGED &&
	    c->j->expected_path != PP_NCCL_PATH_MIXED)
		return false;
	if (without_setting(c, false))
		return true;
	if (too_far(c))
		say(c, "peerpath topo   (on %s: which hca is near which GPU)", host);
	else if (c->j->ends.staged && senders_only(c))
		say(c,
		    "run the job again with NCCL_NET_GDR_READ=1: only senders go through host "
		    "memory; where that changes nothing, peerpath check --probe on %s",
		    host);
	else
		say(c,
		    "peerpath check --probe   (on %s: does its hca register GPU memory, and if "
		    "not, why)",
		    host);
	return true;
}

static bool rings_say_no(struct pp_nccl_case *c)
{
	if (c->j->claim_gdr != PP_NCCL_REFUTED || c->j->path != PP_NCCL_PATH_MIXED || c->j->ends.ll)
		return false;
	say(c, "the logs of all ranks: one of them has an end without GDRDMA");
	return true;
}

static bool by_ll(struct pp_nccl_case *c)
{
	if (!c->j->ends.ll)
		return false;
	say(c, "run the job again without NCCL_PROTO");
	return true;
}

static bool gave_up(struct pp_nccl_case *c)
{
	const struct pp_nccl_process *p;

	for (uint32_t i = 0; i < c->job->processes.n; i++) {
		p = pp_nccl_table_at(&c->job->processes, i);
		if (p->returned.file == PP_NCCL_NONE)
			continue;
		say(c,
		    "the logs of all ranks with NCCL_DEBUG=INFO: the warning that comes first is "
		    "not in this one; then peerpath explain on them");
		return true;
	}
	return false;
}

static bool ranks_missing(struct pp_nccl_case *c)
{
	if (!*c->j->missing)
		return false;
	say(c,
	    "the log of ranks %s too: NCCL_DEBUG_FILE=nccl.%%h.%%p.log " SETTINGS
	    " on every rank, then peerpath nccl judge nccl.*.log",
	    c->j->missing);
	return true;
}

static bool simulated(struct pp_nccl_case *c)
{
	if (!c->j->simulated)
		return false;
	say(c, "the same on hosts with an RDMA NIC: a software device proves nothing of one");
	return true;
}

static bool proven(struct pp_nccl_case *c)
{
	if (c->j->claim_gdr != PP_NCCL_PROVEN)
		return false;
	if (c->j->claim_mechanism != PP_NCCL_PROVEN)
		say(c, "run the job again with NCCL_DMABUF_ENABLE=0 and judge that log: where "
		       "GDRDMA is gone, this run used DMA-BUF; where it stays, nvidia-peermem is "
		       "able to, and peerpath check --probe on each host says what else is");
	return true;
}

static bool all_else(struct pp_nccl_case *c)
{
	say(c,
	    SETTINGS " mpirun ... all_reduce_perf -b 1M -e %s -f 2 -c 1 > job.log 2>&1; "
		     "peerpath nccl judge job.log",
	    c->j->ranks > 256 ? "8G" : "256M");
	return true;
}

void pp_nccl_judge_next(struct pp_nccl_case *c)
{
	static bool (*const steps[])(struct pp_nccl_case *) = {
		proven,	     nothing_read,  nothing_started, error_seen,       one_node,
		over_nvlink, over_sockets,  by_ll,	     over_host_memory, rings_say_no,
		gave_up,     ranks_missing, simulated,	     all_else,
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(steps); i++)
		if (steps[i](c))
			return;
}
