/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath fleet prune: old results go, what tells what a node is and since when stays.
 */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "cli/fleet.h"
#include "cli/interrupt.h"
#include "base/banned.h"

/*
 * "36h", "90d", "26w". A unit must be told: elsewhere a bare number is seconds, and here that would
 * be nearly everything.
 */
static int read_age(const char *text, pp_ns *ret)
{
	static const struct {
		char unit;
		pp_ns ns;
	} units[] = {{'h', 3600 * PP_SECOND},
		     {'d', 24 * 3600 * PP_SECOND},
		     {'w', 7 * 24 * 3600 * PP_SECOND}};
	size_t len = strlen(text);
	char digits[16];
	uint64_t n;

	if (len < 2 || len >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, len - 1);
	digits[len - 1] = '\0';
	for (size_t i = 0; i < PP_ARRAY_LEN(units); i++) {
		if (text[len - 1] != units[i].unit)
			continue;
		if (pp_parse_u64(digits, 1, 1000000, &n) ||
		    __builtin_mul_overflow((pp_ns)n, units[i].ns, ret))
			return -ERANGE;
		return 0;
	}
	return -EINVAL;
}

static void emit(struct pp_out *o, const struct pp_fleet_prune *how,
		 const struct pp_fleet_pruned *gone)
{
	bool dry = how->dry_run;

	pp_out_document(o, "peerpath.fleet/1");
	pp_out_str(o, "view", NULL, "prune");
	pp_out_bool(o, "dry_run", NULL, dry);
	pp_out_bool(o, "with_gains", NULL, how->gains);
	if (dry)
		pp_out_para(o, 0, "What would go; nothing was changed.");
	pp_out_str(o, "before", "results before", how->before);
	pp_out_i64(o, "results", dry ? "would go" : "gone", gone->documents);
	pp_out_i64(o, "rows", "  rows of nodes", gone->results);
	pp_out_i64(o, "figures", "  figures", gone->figures);
	pp_out_i64(o, "gains", "  gains", gone->gains);
	if (dry) {
		pp_out_str(o, "facts", NULL, NULL);
		pp_out_str(o, "pictures", NULL, NULL);
	} else {
		pp_out_i64(o, "facts", "  facts nobody has", gone->facts);
		pp_out_i64(o, "pictures", "  pictures nobody has", gone->pictures);
	}
	pp_out_i64(o, "kept", "older ones that stay", gone->kept);
}

static int emit_space(struct pp_session *s, struct pp_sql *sql)
{
	struct pp_error err = {0};
	int64_t bytes, unused;
	int r = pp_fleet_space(sql, &bytes, &unused, &err);

	if (r == -EOPNOTSUPP)
		return 0;
	if (r)
		return pp_fleet_failed(s->args, r, &err);
	pp_out_i64(s->out, "file_bytes", "file, bytes", bytes);
	pp_out_i64(s->out, "free_bytes", "  free for what comes", unused);
	return 0;
}

static int prune(struct pp_session *s, struct pp_sql *sql, const struct pp_fleet_prune *how)
{
	struct pp_fleet_pruned gone;
	struct pp_error err = {0};
	int r = pp_fleet_prune(sql, how, &gone, &err), code = 0;

	if (r)
		code = r == -EINTR ? PP_EXIT_INTERRUPTED : pp_fleet_failed(s->args, r, &err);
	/* What is gone is gone: it is told whatever came behind it. */
	if (r && (how->dry_run || !gone.documents))
		return code;
	emit(s->out, how, &gone);
	s->answered = true;
	if (!code && pp_args_has(s->args, "compact")) {
		r = pp_fleet_compact(sql, &err);
		code = r ? pp_fleet_failed(s->args, r, &err) : 0;
	}
	return code ? code : emit_space(s, sql);
}

int pp_fleet_cmd_prune(struct pp_session *s)
{
	const char *age = pp_args_get(s->args, "older-than");
	struct pp_fleet_prune how = {.dry_run = pp_args_has(s->args, "dry-run"),
				     .gains = pp_args_has(s->args, "gains"),
				     .stop = pp_interrupted};
	struct pp_sql *sql = NULL;
	char before[32];
	pp_ns old = 0;
	int code;

	if (pp_args_operands(s->args) > 1)
		return pp_complain(s->args, PP_EXIT_USAGE, "'fleet prune' takes no names");
	if (!age)
		return pp_complain(s->args, PP_EXIT_USAGE,
				   "'fleet prune' needs --older-than AGE, as 90d: hours, days or "
				   "weeks");
	if (read_age(age, &old) || old > pp_clock_wall())
		return pp_complain(s->args, PP_EXIT_USAGE,
				   "--older-than does not take '%s': a number and h, d or w, as "
				   "90d",
				   age);
	if (how.dry_run && pp_args_has(s->args, "compact"))
		return pp_complain(s->args, PP_EXIT_USAGE,
				   "--dry-run changes nothing, --compact rewrites the file");
	how.before = pp_clock_format(pp_clock_wall() - old, before, sizeof(before));
	code = pp_fleet_database(s->args, how.dry_run ? PP_SQL_READ_ONLY : 0, &sql);
	if (code)
		return code;
	pp_interrupt_catch();
	if (pp_args_has(s->args, "compact") && pp_sql_is_server(sql))
		code = pp_complain(
			s->args, PP_EXIT_USAGE,
			"--compact: a PostgreSQL server uses again what is free by itself "
			"(autovacuum); VACUUM FULL is its administrator's");
	else
		code = prune(s, sql, &how);
	pp_sql_close(sql);
	return code;
}
