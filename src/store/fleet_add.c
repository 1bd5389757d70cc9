/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A result into the tables. Everything of a file is one transaction, begun by whoever has the file.
 */
#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <string.h>

#include "base/clock.h"
#include "bundle/manifest.h"
#include "store/fleet_parts.h"
#include "base/banned.h"

struct adding {
	struct pp_sql *sql;
	struct pp_fleet_memory *memory;
	const struct pp_result *result;
	struct pp_error *err;
	const char *at;
	int64_t document;
	char (*node)[PP_NODE_ID]; /* of each of the result's nodes */
};

static int take_number(void *ctx, const struct pp_sql_value *c, size_t n)
{
	if (n && c[0].type == PP_SQL_INTEGER)
		*(int64_t *)ctx = c[0].integer;
	return 0;
}

/* document 0: it is there already. */
static int add_document(struct adding *a)
{
	const struct pp_result *r = a->result;
	const struct pp_sql_value args[] = {
		pp_sql_text(r->digest),
		pp_sql_text(r->kind),
		pp_sql_text(a->at),
		PP_SQL_INT(r->when != NULL),
		PP_SQL_INT(r->simulated),
		pp_sql_text(r->judged ? pp_verdict_name(r->verdict) : NULL),
		pp_sql_text(r->sentence)};

	a->document = 0;
	return pp_sql_ask(a->sql,
			  "INSERT INTO documents (digest, kind, at, dated, simulated, verdict, "
			  "sentence) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING "
			  "RETURNING id",
			  args, PP_ARRAY_LEN(args), take_number, &a->document, a->err);
}

/* Facts are kept once for all nodes that share them. */
static int add_set(struct adding *a, const struct pp_result_node *n, char digest[65])
{
	struct pp_sql_value args[3];
	uint8_t hash[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_state state;
	int64_t there = 0;
	int r;

	(void)crypto_hash_sha256_init(&state);
	for (size_t i = 0; i < n->n_facts; i++) {
		(void)crypto_hash_sha256_update(&state, (const unsigned char *)n->fact[i].key,
						strlen(n->fact[i].key) + 1);
		(void)crypto_hash_sha256_update(&state, (const unsigned char *)n->fact[i].value,
						strlen(n->fact[i].value) + 1);
	}
	(void)crypto_hash_sha256_final(&state, hash);
	args[0] = pp_sql_text(pp_hex(hash, sizeof(hash), digest));
	for (size_t i = 0; i < PP_FLEET_KEPT; i++)
		if (!strcmp(a->memory->set[i], digest))
			return 0;
	memcpy(a->memory->set[a->memory->next_set++ % PP_FLEET_KEPT], digest, 65);
	r = pp_sql_ask(a->sql, "SELECT 1 FROM sets WHERE digest = ? LIMIT 1", args, 1, take_number,
		       &there, a->err);
	for (size_t i = 0; i < n->n_facts && !r && !there; i++) {
		args[1] = pp_sql_text(n->fact[i].key);
		args[2] = pp_sql_text(n->fact[i].value);
		r = pp_sql_send(
			a->sql,
			"INSERT INTO sets (digest, fact, value) VALUES (?, ?, ?) ON CONFLICT "
			"(digest, fact) DO NOTHING",
			args, 3, a->err);
	}
	return r;
}

static struct pp_sql_value gate(const struct pp_result *r, const struct pp_result_node *n,
				enum pp_gate g)
{
	bool of_it = n == r->node && r->asked[g];

	return pp_sql_text(of_it ? pp_verdict_name(r->gate[g]) : NULL);
}

static int add_row(struct adding *a, const struct pp_result_node *n, const char *node,
		   const char *facts)
{
	const struct pp_result *r = a->result;
	bool judged = r->judged && n == r->node && !strcmp(r->kind, "prove");
	const struct pp_sql_value args[] = {
		PP_SQL_INT(a->document),
		pp_sql_text(node),
		pp_sql_text(a->at),
		PP_SQL_INT(r->simulated),
		pp_sql_text(n->topology),
		pp_sql_text(n->software),
		pp_sql_text(n->flavour),
		pp_sql_text(facts),
		pp_sql_text(judged ? pp_verdict_name(r->verdict) : NULL),
		gate(r, n, PP_GATE_IDENTITY),
		gate(r, n, PP_GATE_PREREQUISITES),
		gate(r, n, PP_GATE_MEMORY),
		gate(r, n, PP_GATE_LIBRARY),
		gate(r, n, PP_GATE_APPLICATION)};

	return pp_sql_send(
		a->sql,
		"INSERT INTO results (document, node, at, simulated, topology, software, "
		"flavour, facts, verdict, identity, prerequisites, memory, library, "
		"application) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON "
		"CONFLICT (document, node) DO NOTHING",
		args, PP_ARRAY_LEN(args), a->err);
}

static int add_picture(struct adding *a, const char *node)
{
	const char *svg = a->result->picture;
	uint8_t hash[crypto_hash_sha256_BYTES];
	struct pp_sql_value args[4];
	char digest[65];
	int r;

	(void)crypto_hash_sha256(hash, (const unsigned char *)svg, strlen(svg));
	args[0] = pp_sql_text(pp_hex(hash, sizeof(hash), digest));
	args[1] = pp_sql_text(svg);
	r = pp_sql_send(a->sql,
			"INSERT INTO pictures (digest, svg) VALUES (?, ?) ON CONFLICT (digest) DO "
			"NOTHING",
			args, 2, a->err);
	args[1] = pp_sql_text(node);
	args[2] = PP_SQL_INT(a->result->simulated);
	args[3] = pp_sql_text(a->at);
	/* Only of the last that was seen. */
	return r ? r
		 : pp_sql_send(a->sql,
			       "UPDATE states SET picture = ? WHERE node = ? AND simulated = ? AND "
			       "at = ?",
			       args, 4, a->err);
}

static int add_node(struct adding *a, size_t i)
{
	const struct pp_result_node *n = &a->result->node[i];
	bool late = false, taken = false;
	const char *from;
	char facts[65];
	int r = pp_fleet_identify(a->sql, a->memory, n, a->at, a->node[i], &taken, a->err);

	if (!r && n->whole)
		r = add_set(a, n, facts);
	r = r ? r : add_row(a, n, a->node[i], n->whole ? facts : NULL);
	if (!r)
		r = pp_fleet_state_update(a->sql, a->memory, a->result, n, a->node[i], a->at,
					  n->whole ? facts : NULL, &late, a->err);
	from = late || taken ? "" : a->at;
	if (!r && (taken || (n->whole && !a->result->simulated)))
		r = pp_fleet_classify_later(a->sql, a->memory, a->node[i], from, a->err);
	if (!r && i == 0 && a->result->picture)
		r = add_picture(a, a->node[i]);
	return r;
}

static struct pp_sql_value size_of(int64_t bytes)
{
	return bytes < 0 ? (struct pp_sql_value){.type = PP_SQL_NULL} : PP_SQL_INT(bytes);
}

/*
 * Rows that are alike, ROWS of them a statement: each statement costs a server more than its row.
 * What does not fill one goes row by row, so that there are two texts and no more.
 */
enum { ROWS = 8, COLUMNS = 11 };

struct rows {
	const char *one, *many;
	size_t columns, n;
	struct pp_sql_value args[ROWS * COLUMNS];
};

#define EIGHT(row) row ", " row ", " row ", " row ", " row ", " row ", " row ", " row
#define INSERT(into, row, rest)                                         \
	{                                                               \
		"INSERT INTO " into " VALUES " row rest,                \
			"INSERT INTO " into " VALUES " EIGHT(row) rest, \
	}

static int end_rows(struct adding *a, struct rows *rows)
{
	int r = 0;

	for (size_t i = 0; i < rows->n && !r; i++)
		r = pp_sql_send(a->sql, rows->one, &rows->args[i * rows->columns], rows->columns,
				a->err);
	rows->n = 0;
	return r;
}

static int add_to(struct adding *a, struct rows *rows, const struct pp_sql_value *args)
{
	memcpy(&rows->args[rows->n++ * rows->columns], args, rows->columns * sizeof(*args));
	if (rows->n < ROWS)
		return 0;
	rows->n = 0;
	return pp_sql_send(a->sql, rows->many, rows->args, ROWS * rows->columns, a->err);
}

static int add_figures(struct adding *a)
{
	static const char *const texts[] =
		INSERT("figures (document, node, rail, what, size, value, unit)",
		       "(?, ?, ?, ?, ?, ?, ?)", "");
	struct rows rows = {.one = texts[0], .many = texts[1], .columns = 7};
	int r = 0;

	for (size_t i = 0; i < a->result->n_figures && !r; i++) {
		const struct pp_result_figure *f = &a->result->figure[i];
		const struct pp_sql_value args[] = {
			PP_SQL_INT(a->document), pp_sql_text(a->node[f->node]),
			PP_SQL_INT(f->rail),	 pp_sql_text(f->what),
			size_of(f->size_bytes),	 PP_SQL_NUM(f->value),
			pp_sql_text(f->unit)};

		r = add_to(a, &rows, args);
	}
	return r ? r : end_rows(a, &rows);
}

/* PostgreSQL changes no row twice in one statement. */
static bool has_rail(const struct adding *a, const struct rows *rows,
		     const struct pp_result_figure *f)
{
	for (size_t i = 0; i < rows->n; i++) {
		const struct pp_sql_value *row = &rows->args[i * rows->columns];

		if (row[2].integer == f->rail && !strcmp(row[3].text, f->what) &&
		    !strcmp(row[0].text, a->node[f->node]))
			return true;
	}
	return false;
}

static int add_rails(struct adding *a)
{
	static const char *const texts[] =
		INSERT("rails (node, simulated, rail, what, size, value, unit, hca, gpu, at, "
		       "document)",
		       "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		       " ON CONFLICT (node, simulated, rail, what) DO UPDATE SET size = "
		       "excluded.size, value = excluded.value, unit = excluded.unit, hca = "
		       "excluded.hca, gpu = excluded.gpu, at = excluded.at, document = "
		       "excluded.document WHERE excluded.at >= rails.at");
	struct rows rows = {.one = texts[0], .many = texts[1], .columns = 11};
	int r = 0;

	for (size_t i = 0; i < a->result->n_figures && !r; i++) {
		const struct pp_result_figure *f = &a->result->figure[i];
		const struct pp_sql_value args[] = {
			pp_sql_text(a->node[f->node]), PP_SQL_INT(a->result->simulated),
			PP_SQL_INT(f->rail),	       pp_sql_text(f->what),
			size_of(f->size_bytes),	       PP_SQL_NUM(f->value),
			pp_sql_text(f->unit),	       pp_sql_text(f->hca),
			pp_sql_text(f->gpu),	       pp_sql_text(a->at),
			PP_SQL_INT(a->document)};

		if (f->rail < 0)
			continue;
		if (has_rail(a, &rows, f))
			r = end_rows(a, &rows);
		r = r ? r : add_to(a, &rows, args);
	}
	return r ? r : end_rows(a, &rows);
}

static int add_gains(struct adding *a)
{
	static const char *const texts[] =
		INSERT("gains (document, what, way, against, size, with_it, without_it, ratio, "
		       "unit, higher, proven)",
		       "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", "");
	struct rows rows = {.one = texts[0], .many = texts[1], .columns = 11};
	int r = 0;

	for (size_t i = 0; i < a->result->n_gains && !r; i++) {
		const struct pp_result_gain *g = &a->result->gain[i];
		const struct pp_sql_value args[] = {
			PP_SQL_INT(a->document), pp_sql_text(g->what),
			pp_sql_text(g->way),	 pp_sql_text(g->against),
			size_of(g->size_bytes),	 PP_SQL_NUM(g->with),
			PP_SQL_NUM(g->without),	 PP_SQL_NUM(g->ratio),
			pp_sql_text(g->unit),	 PP_SQL_INT(g->higher_is_better),
			PP_SQL_INT(g->proven)};

		r = add_to(a, &rows, args);
	}
	return r ? r : end_rows(a, &rows);
}

static int add_rest(struct adding *a)
{
	const struct pp_result *result = a->result;
	int r = 0;

	for (size_t i = 0; i < result->n_nodes && !r; i++)
		r = add_node(a, i);
	r = r ? r : add_figures(a);
	r = r ? r : add_rails(a);
	r = r ? r : add_gains(a);
	return r || !result->n_gains ? r : pp_fleet_classify(a->sql, a->document, a->err);
}

int pp_fleet_add_result(struct pp_sql *sql, struct pp_fleet_memory *memory,
			const struct pp_result *result, struct pp_fleet_added *ret,
			struct pp_error *err)
{
	struct pp_arena arena = PP_ARENA(1 << 20);
	struct adding a = {.sql = sql, .memory = memory, .result = result, .err = err};
	char now[32];
	int r;

	a.at = result->when ? result->when : pp_clock_format(pp_clock_wall(), now, sizeof(now));
	a.node = pp_arena_array(&arena, result->n_nodes, sizeof(*a.node));
	r = a.node ? add_document(&a) : pp_error_set(err, -ENOMEM, "out of memory");
	if (!r && a.document)
		r = add_rest(&a);
	if (!r) {
		ret->results += a.document != 0;
		ret->known += a.document == 0;
	}
	pp_arena_done(&arena);
	return r;
}
