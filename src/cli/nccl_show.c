/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The human side of peerpath nccl judge: one table, the reason, the next command.
 */
#include "cli/nccl_show.h"

#include <inttypes.h>
#include <string.h>

#include "base/parse.h"
#include "base/banned.h"

enum { MAX_TEXT_ROWS = 24, MAX_PAIRS = 4096 };

struct row { /* ends of connections alike but for their channel */
	struct {
		uint32_t from, to, network; /* hosts as names */
		uint8_t transport, gdr, shared, pxn;
	} key;
	uint32_t send, receive;
};

const char *pp_nccl_show_place(const struct pp_nccl_job *job, struct pp_nccl_place at, char *text,
			       size_t size)
{
	const struct pp_nccl_file *file;

	*text = '\0';
	if (at.file == PP_NCCL_NONE || at.file >= job->files.n)
		return text;
	file = pp_nccl_table_at(&job->files, at.file);
	(void)snprintf(text, size, "%s:%" PRIu32, file->text, at.line);
	pp_sanitize(text, false);
	return text;
}

static void collect(const struct pp_nccl_job *job, const struct pp_nccl_group *g,
		    struct pp_nccl_table *rows)
{
	const struct pp_nccl_end *e;
	struct row key, *r;
	uint32_t at;

	for (uint32_t i = 0; i < job->ends.n; i++) {
		e = pp_nccl_table_at(&job->ends, i);
		key = (struct row){0};
		key.key.from = pp_nccl_group_host(g, g->comm_of_end[i], e->key.from);
		key.key.to = pp_nccl_group_host(g, g->comm_of_end[i], e->key.to);
		key.key.network = e->key.network;
		key.key.transport = e->key.transport;
		key.key.gdr = e->key.gdr;
		key.key.shared = e->key.shared;
		key.key.pxn = e->key.proxy >= 0;
		at = pp_nccl_table_put(rows, &key, NULL);
		if (at == PP_NCCL_NONE)
			return;
		r = pp_nccl_table_at(rows, at);
		r->send += e->key.direction != PP_NCCL_RECEIVE;
		r->receive += e->key.direction == PP_NCCL_RECEIVE;
	}
}

static const char *host_name(const struct pp_nccl_job *job, uint32_t host)
{
	const char *name = pp_nccl_job_name(job, host);

	return *name ? name : "?";
}

static void table(struct pp_out *o, const struct pp_nccl_job *job, const struct pp_nccl_group *g)
{
	static const struct pp_out_column columns[] = {
		{NULL, "FROM", true},  {NULL, "TO", true},	 {NULL, "NETWORK", true},
		{NULL, "GDR", false},  {NULL, "PXN", false},	 {NULL, "SHARED", false},
		{NULL, "SEND", false}, {NULL, "RECEIVE", false},
	};
	struct pp_nccl_table rows = PP_NCCL_TABLE(struct row, 16, MAX_PAIRS);
	const struct row *r;

	collect(job, g, &rows);
	if (rows.n)
		pp_out_table(o, NULL, columns, PP_ARRAY_LEN(columns));
	for (uint32_t i = 0; i < rows.n && i < MAX_TEXT_ROWS; i++) {
		r = pp_nccl_table_at(&rows, i);
		pp_out_cell(o, host_name(job, r->key.from));
		pp_out_cell(o, host_name(job, r->key.to));
		pp_out_cell(o, pp_nccl_job_name(job, r->key.network));
		pp_out_cell(o, r->key.transport > PP_NCCL_VIA_COLLNET ? "-"
			       : r->key.gdr			      ? "yes"
								      : "no");
		pp_out_cell(o, r->key.pxn ? "yes" : "-");
		pp_out_cell(o, r->key.shared ? "yes" : "-");
		pp_out_cell_i64(o, r->send);
		pp_out_cell_i64(o, r->receive);
	}
	if (rows.n) {
		pp_out_table_end(o);
		if (rows.n > MAX_TEXT_ROWS)
			pp_out_para(o, 0, "... %u more rows; --json has all.",
				    rows.n - MAX_TEXT_ROWS);
		pp_out_raw(o, "\n");
	}
	pp_nccl_table_done(&rows);
}

static void summary(struct pp_out *o, const struct pp_nccl_judgement *j)
{
	char ranks[64];

	(void)snprintf(ranks, sizeof(ranks), "%s", pp_nccl_coverage_name(j->coverage));
	if (j->ranks)
		(void)snprintf(ranks, sizeof(ranks), "%s (%" PRIu64 " of %" PRIu64 " ranks)",
			       pp_nccl_coverage_name(j->coverage), j->ranks_seen, j->ranks);
	pp_out_str(o, "path", "path", pp_nccl_path_name(j->path));
	pp_out_str(o, "mechanism", "mechanism", pp_nccl_mechanism_name(j->mechanism));
	pp_out_str(o, "claim_gdr", "claim: GDR", pp_nccl_claim_name(j->claim_gdr));
	pp_out_str(o, "claim_mechanism", "claim: mechanism",
		   pp_nccl_claim_name(j->claim_mechanism));
	pp_out_str(o, "expected_path",
		   j->path == PP_NCCL_PATH_UNDETERMINED ? "expected path" : NULL,
		   pp_nccl_path_name(j->expected_path));
	pp_out_str(o, "coverage", NULL, pp_nccl_coverage_name(j->coverage));
	pp_out_str(o, NULL, "coverage", ranks);
	pp_out_u64(o, "ranks", NULL, j->ranks);
	pp_out_u64(o, "ranks_seen", NULL, j->ranks_seen);
	pp_out_str(o, "ranks_missing", *j->missing ? "missing ranks" : NULL,
		   *j->missing ? j->missing : NULL);
	pp_out_str(o, "nccl_version", "NCCL", j->version);
	pp_out_bool(o, "version_by_format", NULL, j->version_by_format);
	pp_out_bool(o, "simulated", j->simulated ? "simulated" : NULL, j->simulated);
}

static void reasons(struct pp_out *o, const struct pp_nccl_job *job,
		    const struct pp_nccl_judgement *j)
{
	char place[PP_NCCL_FILE + 16];

	pp_out_heading(o, "Why");
	for (uint32_t i = 0; i < j->n_why; i++) {
		pp_nccl_show_place(job, j->why[i].place, place, sizeof(place));
		pp_out_para(o, 4, "  %s%s%s%s", j->why[i].text, *place ? " (" : "", place,
			    *place ? ")" : "");
	}
}

static void root_cause(struct pp_out *o, const struct pp_nccl_job *job,
		       const struct pp_nccl_judgement *j)
{
	const struct pp_nccl_error *e;
	char place[PP_NCCL_FILE + 16];

	if (j->root == PP_NCCL_NONE)
		return;
	e = pp_nccl_table_at(&job->errors, j->root);
	pp_out_heading(o, "First error");
	pp_out_para(o, 4, "  %s: %s", pp_nccl_show_place(job, e->place, place, sizeof(place)),
		    e->text);
	pp_out_para(o, 4, "  %s", pp_nccl_error_cause(e));
	pp_out_para(o, 4, "  peerpath explain tells how to decide and what to do.");
}

void pp_nccl_show(struct pp_out *o, const struct pp_nccl_job *job,
		  const struct pp_nccl_group *group, const struct pp_nccl_judgement *j)
{
	pp_out_document(o, "peerpath.nccl-judge/1");
	if (!pp_out_is_json(o))
		table(o, job, group);
	summary(o, j);
	pp_out_u64(o, "lines", NULL, job->lines);
	pp_out_u64(o, "lines_cut", NULL, job->cut);
	pp_out_str(o, "next", NULL, *j->next ? j->next : NULL);
	if (pp_out_is_json(o)) {
		pp_nccl_show_details(pp_out_json(o), job, group, j);
		return;
	}
	reasons(o, job, j);
	root_cause(o, job, j);
	if (*j->next) {
		pp_out_heading(o, "To get further");
		pp_out_para(o, 4, "  %s", j->next);
	}
}
