/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What peerpath nccl judge --json says beyond the judgement itself.
 */
#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/nccl_show.h"
#include "base/banned.h"

/* The document stays within memory whatever the log holds. */
enum { MAX_ROWS = 16384 };

static void put_place(struct pp_json *j, const struct pp_nccl_job *job, struct pp_nccl_place at)
{
	const struct pp_nccl_file *file;

	if (at.file == PP_NCCL_NONE || at.file >= job->files.n) {
		pp_json_null(j, "file");
		pp_json_null(j, "line");
		return;
	}
	file = pp_nccl_table_at(&job->files, at.file);
	pp_json_str(j, "file", file->text);
	pp_json_u64(j, "line", at.line);
}

static const char *text_or_null(const char *text)
{
	return *text ? text : NULL;
}

static void communicator(struct pp_json *j, const struct pp_nccl_job *job,
			 const struct pp_nccl_group *group, uint32_t i)
{
	const struct pp_nccl_comm *c = pp_nccl_group_comm(group, i);
	char id[24];

	(void)snprintf(id, sizeof(id), "0x%" PRIx64, c->key.id);
	pp_json_object(j, NULL);
	pp_json_u64(j, "index", i);
	pp_json_str(j, "id", c->key.id ? id : NULL);
	if (c->key.n_ranks)
		pp_json_u64(j, "ranks", c->key.n_ranks);
	else
		pp_json_null(j, "ranks");
	pp_json_u64(j, "ranks_seen", c->seen);
	if (c->n_nodes)
		pp_json_u64(j, "nodes", c->n_nodes);
	else
		pp_json_null(j, "nodes");
	pp_json_u64(j, "hosts_seen", c->hosts);
	pp_json_bool(j, "mnnvl", c->mnnvl);
	put_place(j, job, c->place);
	pp_json_end_object(j);
}

static const char *device_name(const struct pp_nccl_job *job, const struct pp_nccl_end *e)
{
	struct pp_nccl_nic key = {
		{e->key.process, (uint32_t)e->key.device, e->key.network}, 0, PP_NCCL_UNSAID, {0}};
	const struct pp_nccl_nic *nic;
	uint32_t i;

	if (e->key.device < 0)
		return "";
	i = pp_nccl_table_find(&job->nics, &key);
	if (i == PP_NCCL_NONE)
		return "";
	nic = pp_nccl_table_at(&job->nics, i);
	return pp_nccl_job_name(job, nic->name);
}

static void optional(struct pp_json *j, const char *key, int32_t value)
{
	if (value >= 0)
		pp_json_i64(j, key, value);
	else
		pp_json_null(j, key);
}

static void crossing(struct pp_json *j, enum pp_nccl_crossing c)
{
	if (c >= PP_NCCL_CROSSING_UNKNOWN)
		pp_json_null(j, "between_hosts");
	else
		pp_json_bool(j, "between_hosts", c == PP_NCCL_BETWEEN);
}

static void connection(struct pp_json *j, const struct pp_nccl_job *job,
		       const struct pp_nccl_group *g, uint32_t i)
{
	static const char *const directions[] = {"send", "receive", NULL};
	const struct pp_nccl_end *e = pp_nccl_table_at(&job->ends, i);
	uint32_t comm = g->comm_of_end[i];
	bool net = e->key.transport <= PP_NCCL_VIA_COLLNET;
	bool collnet = e->key.transport == PP_NCCL_VIA_COLLNET;

	pp_json_object(j, NULL);
	pp_json_u64(j, "communicator", comm);
	pp_json_u64(j, "channel", e->key.channel);
	optional(j, "connection", e->key.connection);
	pp_json_str(j, "direction", directions[e->key.direction]);
	pp_json_u64(j, "from_rank", e->key.from);
	if (collnet)
		pp_json_null(j, "to_rank");
	else
		pp_json_u64(j, "to_rank", e->key.to);
	pp_json_str(j, "from_host",
		    text_or_null(pp_nccl_job_name(job, pp_nccl_group_host(g, comm, e->key.from))));
	pp_json_str(j, "to_host",
		    collnet ? NULL
			    : text_or_null(pp_nccl_job_name(
				      job, pp_nccl_group_host(g, comm, e->key.to))));
	crossing(j, pp_nccl_group_crossing(g, comm, e));
	pp_json_str(j, "transport", pp_nccl_transport_name(e->key.transport));
	pp_json_str(j, net ? "network" : "detail", pp_nccl_job_name(job, e->key.network));
	optional(j, "device", e->key.device);
	pp_json_str(j, "device_name", text_or_null(device_name(job, e)));
	pp_json_bool(j, "gdr", e->key.gdr);
	pp_json_bool(j, "pci", e->key.pci);
	pp_json_bool(j, "shared", e->key.shared);
	pp_json_bool(j, "collnet", collnet);
	optional(j, "pxn_rank", e->key.proxy);
	pp_json_u64(j, "count", e->count);
	put_place(j, job, e->place);
	pp_json_end_object(j);
}

static void error(struct pp_json *j, const struct pp_nccl_job *job, uint32_t i, bool root)
{
	const struct pp_nccl_error *e = pp_nccl_table_at(&job->errors, i);
	const struct pp_nccl_process *p = NULL;
	enum pp_nccl_nature nature = pp_nccl_error_nature(e);

	if (e->key.process != PP_NCCL_NONE)
		p = pp_nccl_table_at(&job->processes, e->key.process);
	pp_json_object(j, NULL);
	pp_json_str(j, "kind", pp_nccl_error_name(e));
	pp_json_bool(j, "root", root);
	pp_json_bool(j, "consequence", nature == PP_NCCL_NATURE_CONSEQUENCE);
	if (e->key.kind == PP_NCCL_COMPLETION) {
		pp_json_u64(j, "status", e->key.status);
		pp_json_str(j, "status_name", pp_nccl_error_status(e));
		pp_json_u64(j, "vendor_error", e->key.vendor);
	}
	pp_json_str(j, "host", p ? pp_nccl_job_name(job, p->key.host) : NULL);
	pp_json_str(j, "time", text_or_null(e->stamp));
	pp_json_u64(j, "count", e->count);
	pp_json_str(j, "cause", pp_nccl_error_cause(e));
	pp_json_str(j, "text", e->text);
	put_place(j, job, e->place);
	pp_json_end_object(j);
}

static void whys(struct pp_json *json, const struct pp_nccl_job *job,
		 const struct pp_nccl_judgement *j)
{
	pp_json_array(json, "why");
	for (uint32_t i = 0; i < j->n_why; i++) {
		pp_json_object(json, NULL);
		pp_json_str(json, "text", j->why[i].text);
		put_place(json, job, j->why[i].place);
		pp_json_end_object(json);
	}
	pp_json_end_array(json);
}

void pp_nccl_show_details(struct pp_json *json, const struct pp_nccl_job *job,
			  const struct pp_nccl_group *group, const struct pp_nccl_judgement *j)
{
	whys(json, job, j);
	pp_json_array(json, "errors");
	for (uint32_t i = 0; i < job->errors.n; i++)
		error(json, job, i, i == j->root);
	pp_json_end_array(json);
	pp_json_array(json, "communicators");
	for (uint32_t i = 0; i < group->comms.n && i < MAX_ROWS; i++)
		communicator(json, job, group, i);
	pp_json_end_array(json);
	pp_json_u64(json, "connections_total", job->ends.n);
	pp_json_array(json, "connections");
	for (uint32_t i = 0; i < job->ends.n && i < MAX_ROWS; i++)
		connection(json, job, group, i);
	pp_json_end_array(json);
}
