/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes in a table, and one of them whole.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "store/fleet_parts.h"
#include "base/banned.h"

static const char *text(const struct pp_sql_value *v)
{
	return v->type == PP_SQL_TEXT ? v->text : NULL;
}

static void verdict_cell(struct pp_out *o, const struct pp_sql_value *v)
{
	enum pp_verdict verdict;

	if (text(v) && !pp_verdict_parse(text(v), &verdict))
		pp_out_cell_verdict(o, verdict);
	else
		pp_out_cell(o, NULL);
}

/* A figure as many digits as say something. */
static void figure_cell(struct pp_out *o, const struct pp_sql_value *v)
{
	double x = pp_fleet_number(v);

	if (pp_out_is_json(o))
		pp_out_cell_double(o, x);
	else if (isnan(x))
		pp_out_cell(o, NULL);
	else
		pp_out_cellf(o, "%.6g", x);
}

static void size_cell(struct pp_out *o, const struct pp_sql_value *v)
{
	if (v->type == PP_SQL_INTEGER)
		pp_out_cell_i64(o, v->integer);
	else
		pp_out_cell(o, NULL);
}

struct listing {
	struct pp_out *o;
	const struct pp_fleet_filter *filter;
	char silent_before[32];
	int64_t total, counts[PP_FAIL + 2], silent; /* the last: of no verdict */
};

/* A pass of long ago is no pass of today's: it is not shown as one. */
static void heard_cell(struct pp_out *o, const struct pp_sql_value *v, bool silent)
{
	if (silent && !pp_out_is_json(o))
		pp_out_cellf(o, "silent (%s)", text(v) ? text(v) : "-");
	else
		verdict_cell(o, v);
}

static int list_row(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct listing *l = ctx;
	struct pp_out *o = l->o;
	bool silent;
	char own[9];

	if (n < 14)
		return -EBADMSG;
	silent = text(&c[13]) && strcmp(text(&c[13]), l->silent_before) < 0;
	pp_out_cell(o, text(&c[0]));
	pp_out_cell(o, text(&c[1]));
	heard_cell(o, &c[2], silent);
	pp_fleet_out_when(o, text(&c[3]));
	for (size_t i = 4; i < 9; i++)
		verdict_cell(o, &c[i]);
	pp_out_cell(o, text(&c[9]));
	pp_out_cell(o, pp_out_is_json(o) ? text(&c[10]) : pp_fleet_short(text(&c[10]), own));
	pp_out_cell(o, pp_out_is_json(o) ? text(&c[11]) : pp_fleet_short(text(&c[11]), own));
	pp_out_cell(o, text(&c[12]));
	pp_fleet_out_when(o, text(&c[13]));
	pp_out_cell_bool(o, silent);
	return 0;
}

#define LIST_FROM                                                                                  \
	" FROM states s JOIN nodes n ON n.id = s.node LEFT JOIN sets g ON g.digest = s.facts AND " \
	"g.fact = 'gpus' WHERE s.simulated = ? AND (CAST(? AS TEXT) IS NULL OR s.verdict = ?) "    \
	"AND (CAST(? AS TEXT) IS NULL OR s.flavour = ?) AND (CAST(? AS TEXT) IS NULL OR "          \
	"lower(s.topology) LIKE lower(?) ESCAPE '\\') AND (CAST(? AS TEXT) IS NULL OR "            \
	"lower(s.software) LIKE "                                                                  \
	"lower(?) ESCAPE '\\') AND (CAST(? AS TEXT) IS NULL OR lower(coalesce(n.host, '')) "       \
	"LIKE lower(?) ESCAPE '\\' OR n.id LIKE lower(?) ESCAPE '\\')"

/* verdict, its nodes, the silent ones of them */
static int take_count(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct listing *l = ctx;
	enum pp_verdict v;

	if (n < 3 || c[1].type != PP_SQL_INTEGER || c[2].type != PP_SQL_INTEGER)
		return -EBADMSG;
	l->total += c[1].integer;
	l->silent += c[2].integer;
	l->counts[text(&c[0]) && !pp_verdict_parse(text(&c[0]), &v) ? v : PP_FAIL + 1] +=
		c[1].integer;
	return 0;
}

static void out_counts(const struct listing *l)
{
	pp_out_i64(l->o, "total", NULL, l->total);
	pp_out_i64(l->o, "offset", NULL, l->filter->offset);
	pp_out_open(l->o, "verdicts");
	for (int v = PP_FAIL; v >= PP_PASS; v--)
		pp_out_i64(l->o, pp_verdict_name((enum pp_verdict)v), NULL, l->counts[v]);
	pp_out_i64(l->o, "none", NULL, l->counts[PP_FAIL + 1]);
	pp_out_close(l->o);
	pp_out_i64(l->o, "silent", NULL, l->silent);
	pp_out_i64(l->o, "silent_after_s", NULL, l->filter->silent_after / PP_SECOND);
}

static int ask_list(struct pp_sql *sql, struct pp_sql_value *args, const struct pp_fleet_filter *f,
		    struct pp_out *o, struct pp_error *err)
{
	static const struct pp_out_column columns[] = {
		{"node", "NODE", false},       {"host", "NAME", false},
		{"verdict", "VERDICT", false}, {"verdict_since", "SINCE", false},
		{"identity", NULL, false},     {"prerequisites", NULL, false},
		{"memory", NULL, false},       {"library", NULL, false},
		{"application", NULL, false},  {"flavour", "MODULE", false},
		{"topology", "WIRING", false}, {"software", "SOFTWARE", false},
		{"gpus", "GPUS", true},	       {"seen", "SEEN", false},
		{"silent", NULL, false}};
	struct listing l = {.o = o, .filter = f};
	struct pp_sql_value counted[13];
	int r;

	(void)pp_fleet_silence(f->silent_after, l.silent_before);
	counted[0] = pp_sql_text(l.silent_before);
	memcpy(&counted[1], args, 12 * sizeof(*args));
	r = pp_sql_ask(sql,
		       "SELECT s.verdict, count(*), coalesce(sum(CASE WHEN s.at <> '' AND s.at < ? "
		       "THEN 1 ELSE 0 END), 0)" LIST_FROM " GROUP BY s.verdict",
		       counted, 13, take_count, &l, err);
	if (r)
		return r;
	out_counts(&l);
	pp_out_table(o, "nodes", columns, PP_ARRAY_LEN(columns));
	pp_out_spare(o, "gpus node flavour software topology verdict_since");
	r = pp_sql_ask(sql,
		       "SELECT s.node, n.host, s.verdict, s.verdict_since, s.identity, "
		       "s.prerequisites, s.memory, s.library, s.application, s.flavour, "
		       "s.topology, s.software, g.value, nullif(s.at, '')" LIST_FROM
		       " ORDER BY CASE s.verdict WHEN 'fail' THEN 0 WHEN 'unknown' THEN 1 WHEN "
		       "'degraded' THEN 2 WHEN 'pass' THEN 4 ELSE 3 END, coalesce(n.host, ''), "
		       "s.node LIMIT ? OFFSET ?",
		       args, 14, list_row, &l, err);
	pp_out_table_end(o);
	if (l.total > (int64_t)f->offset + args[12].integer)
		pp_out_para(o, 0, "%lld of %lld shown; --limit shows more",
			    (long long)args[12].integer, (long long)l.total);
	return r;
}

static bool is_digest(const char *text)
{
	return !text || (*text && !text[strspn(text, "0123456789abcdefABCDEF")]);
}

int pp_fleet_list(struct pp_sql *sql, bool simulated, const struct pp_fleet_filter *f,
		  struct pp_out *o, struct pp_error *err)
{
	PP_AUTO_BUF struct pp_buf name = PP_BUF(2048), topology = PP_BUF(2048);
	PP_AUTO_BUF struct pp_buf software = PP_BUF(2048);
	unsigned int limit = f->limit ? f->limit : PP_FLEET_LISTED;
	struct pp_sql_value args[14];
	enum pp_verdict verdict;

	if (!is_digest(f->topology) || !is_digest(f->software))
		return pp_error_set(err, -EINVAL, "'%.64s' is not the beginning of a digest",
				    is_digest(f->topology) ? f->software : f->topology);
	if (f->verdict && pp_verdict_parse(f->verdict, &verdict))
		return pp_error_set(err, -EINVAL,
				    "'%.64s' is no verdict: pass, degraded, unknown, fail",
				    f->verdict);
	pp_fleet_like(f->text, "%", &name);
	pp_fleet_like(f->topology, "", &topology);
	pp_fleet_like(f->software, "", &software);
	if (name.failed || topology.failed || software.failed)
		return pp_error_set(err, -EINVAL, "a filter is too long");
	args[0] = PP_SQL_INT(simulated);
	args[1] = args[2] = pp_sql_text(f->verdict);
	args[3] = args[4] = pp_sql_text(f->flavour);
	args[5] = args[6] = pp_sql_text(f->topology ? pp_buf_text(&topology) : NULL);
	args[7] = args[8] = pp_sql_text(f->software ? pp_buf_text(&software) : NULL);
	args[9] = args[10] = args[11] = pp_sql_text(f->text ? pp_buf_text(&name) : NULL);
	args[12] = PP_SQL_INT(limit < PP_FLEET_LIST_MOST ? limit : PP_FLEET_LIST_MOST);
	args[13] = PP_SQL_INT(f->offset);
	return ask_list(sql, args, f, o, err);
}

static int head_row(void *ctx, const struct pp_sql_value *c, size_t n)
{
	static const struct {
		const char *key, *label;
	} rows[] = {{"node", "node"},
		    {"host", "name"},
		    {"first_seen", "first seen"},
		    {"last_seen", "last seen"},
		    {"at", "state of"},
		    {"verdict", "verdict"},
		    {"verdict_since", "  since"},
		    {"sentence", "  because"},
		    {"topology", "wiring"},
		    {"topology_since", "  since"},
		    {"software", "software"},
		    {"software_since", "  since"},
		    {"flavour", "module"}};
	struct pp_out *o = ctx;

	if (n < PP_ARRAY_LEN(rows) + 6)
		return -EBADMSG;
	for (size_t i = 0; i < PP_ARRAY_LEN(rows); i++)
		pp_out_str(o, rows[i].key, text(&c[i]) ? rows[i].label : NULL, text(&c[i]));
	pp_out_bool(o, "picture", NULL, c[PP_ARRAY_LEN(rows)].type == PP_SQL_TEXT);
	pp_out_open(o, "gates");
	for (size_t i = 0; i < PP_GATES; i++)
		pp_out_str(o, pp_gate_name((enum pp_gate)i), NULL,
			   text(&c[PP_ARRAY_LEN(rows) + 1 + i]));
	pp_out_close(o);
	return 0;
}

struct cells {
	struct pp_out *o;
	const char *kinds; /* a letter a column: text, verdict, figure, size */
};

static int table_row(void *ctx, const struct pp_sql_value *c, size_t n)
{
	const struct cells *cells = ctx;

	if (n != strlen(cells->kinds))
		return -EBADMSG;
	for (size_t i = 0; i < n; i++) {
		switch (cells->kinds[i]) {
		case 'v':
			verdict_cell(cells->o, &c[i]);
			break;
		case 'f':
			figure_cell(cells->o, &c[i]);
			break;
		case 's':
			size_cell(cells->o, &c[i]);
			break;
		default:
			pp_out_cell(cells->o, text(&c[i]));
			break;
		}
	}
	return 0;
}

/* Tables of one node: what is asked, and how it is shown. */
static const struct {
	const char *key, *title, *ask, *kinds;
	struct pp_out_column columns[9];
	unsigned int n_columns, n_args;
} tables[] = {
	{"parts",
	 "Parts",
	 "SELECT part FROM parts WHERE node = ? ORDER BY part",
	 "t",
	 {{"part", "PART", false}},
	 1,
	 1},
	{"facts",
	 "Facts",
	 "SELECT f.fact, f.value FROM states s JOIN sets f ON f.digest = s.facts WHERE s.node = ? "
	 "AND s.simulated = ? ORDER BY f.fact",
	 "tt",
	 {{"fact", "FACT", false}, {"value", "VALUE", true}},
	 2,
	 2},
	{"rails",
	 "Rails as last measured",
	 "SELECT rail, what, size, value, unit, hca, gpu, at FROM rails WHERE node = ? AND "
	 "simulated = ? ORDER BY rail, what",
	 "stsftttt",
	 {{"rail", "RAIL", false},
	  {"what", "WHAT", true},
	  {"size_bytes", "BYTES", false},
	  {"value", "VALUE", false},
	  {"unit", "UNIT", false},
	  {"hca", "HCA", false},
	  {"gpu", "GPU", false},
	  {"at", "AT", false}},
	 8,
	 2},
	{"results",
	 "Results, the newest first",
	 "SELECT r.at, d.kind, r.verdict, r.identity, r.prerequisites, r.memory, r.library, "
	 "r.software FROM results r JOIN documents d ON d.id = r.document WHERE r.node = ? AND "
	 "r.simulated = ? ORDER BY r.at DESC, r.document DESC LIMIT 30",
	 "ttvvvvvt",
	 {{"at", "AT", false},
	  {"kind", "KIND", false},
	  {"verdict", "VERDICT", false},
	  {"identity", "0", false},
	  {"prerequisites", "1", false},
	  {"memory", "2", false},
	  {"library", "3", false},
	  {"software", NULL, false}},
	 8,
	 2},
};

int pp_fleet_show(struct pp_sql *sql, bool simulated, const char *node, struct pp_out *o,
		  struct pp_error *err)
{
	char id[PP_NODE_ID];
	struct pp_sql_value args[2];
	int r = pp_fleet_find(sql, node, id, err);

	if (r)
		return r;
	args[0] = PP_SQL_INT(simulated);
	args[1] = pp_sql_text(id);
	r = pp_sql_ask(
		sql,
		"SELECT n.id, n.host, n.first_seen, n.last_seen, nullif(s.at, ''), s.verdict, "
		"s.verdict_since, s.sentence, s.topology, s.topology_since, s.software, "
		"s.software_since, s.flavour, s.picture, s.identity, s.prerequisites, "
		"s.memory, s.library, s.application FROM nodes n LEFT JOIN states s ON "
		"s.node = n.id AND s.simulated = ? WHERE n.id = ?",
		args, 2, head_row, o, err);
	args[0] = pp_sql_text(id);
	args[1] = PP_SQL_INT(simulated);
	for (size_t i = 0; i < PP_ARRAY_LEN(tables) && !r; i++) {
		struct cells cells = {.o = o, .kinds = tables[i].kinds};

		pp_out_heading(o, tables[i].title);
		pp_out_table(o, tables[i].key, tables[i].columns, tables[i].n_columns);
		if (!strcmp(tables[i].key, "rails"))
			pp_out_spare(o, "at gpu hca");
		r = pp_sql_ask(sql, tables[i].ask, args, tables[i].n_args, table_row, &cells, err);
		pp_out_table_end(o);
	}
	return r;
}

static int take_svg(void *ctx, const struct pp_sql_value *c, size_t n)
{
	if (n && c[0].type == PP_SQL_TEXT)
		pp_buf_add(ctx, c[0].text, c[0].len);
	return 0;
}

int pp_fleet_picture(struct pp_sql *sql, bool simulated, const char *node, struct pp_buf *svg,
		     struct pp_error *err)
{
	char id[PP_NODE_ID];
	struct pp_sql_value args[2];
	size_t before = svg->len;
	int r = pp_fleet_find(sql, node, id, err);

	if (r)
		return r;
	args[0] = pp_sql_text(id);
	args[1] = PP_SQL_INT(simulated);
	r = pp_sql_ask(sql,
		       "SELECT p.svg FROM states s JOIN pictures p ON p.digest = s.picture WHERE "
		       "s.node = ? AND s.simulated = ?",
		       args, 2, take_svg, svg, err);
	if (!r && svg->failed)
		r = pp_error_set(err, svg->failed, "the picture does not fit");
	if (!r && svg->len == before)
		r = pp_error_set(err, -ENODATA, "no picture: only a bundle has what is drawn");
	return r;
}
