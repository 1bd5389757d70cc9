/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath history: what the direct path gained, by class, software and size; a node's trend.
 */
#include "cli/fleet.h"
#include "base/banned.h"

static int answer(struct pp_session *s)
{
	const struct pp_args *args = s->args;
	const struct pp_history_filter f = {.node = pp_args_operand(args, 0),
					    .what = pp_args_get(args, "what"),
					    .topology = pp_args_get(args, "wiring"),
					    .software = pp_args_get(args, "software")};
	bool simulated = pp_args_has(args, "simulated");
	struct pp_error err = {0};
	struct pp_sql *sql = NULL;
	int code = pp_fleet_database(args, PP_SQL_READ_ONLY, &sql), r;

	if (code)
		return code;
	pp_out_document(s->out, "peerpath.history/1");
	pp_out_bool(s->out, "simulated", NULL, simulated);
	if (simulated)
		pp_out_para(s->out, 0, "Simulated results: nothing here was measured.");
	r = pp_sql_begin(sql, &err);
	r = r ? r : pp_fleet_history(sql, simulated, &f, s->out, &err);
	if (!r)
		r = pp_sql_commit(sql, &err);
	pp_sql_close(sql);
	return r ? pp_fleet_failed(args, r, &err) : PP_EXIT_PASS;
}

int pp_cmd_history(const struct pp_args *args)
{
	struct pp_session s;
	int code = pp_session_open_output(args, &s);

	return pp_session_close(&s, code ? code : answer(&s));
}
