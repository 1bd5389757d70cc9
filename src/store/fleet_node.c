/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who a node is. Its id is a digest of the parts it was first seen with; later it is the node that
 * most of its parts were last seen in, so that one changed GPU does not make another node of it. A
 * document that has names only is of the node that last bore the name.
 */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "bundle/manifest.h"
#include "store/fleet_parts.h"
#include "base/banned.h"

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void digest_of(const struct pp_result_node *of, char ret[65])
{
	const char *part[PP_RESULT_PARTS];
	uint8_t hash[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_state state;

	memcpy(part, of->part, of->n_parts * sizeof(*part));
	qsort(part, of->n_parts, sizeof(*part), by_text);
	(void)crypto_hash_sha256_init(&state);
	for (size_t i = 0; i < of->n_parts; i++)
		(void)crypto_hash_sha256_update(&state, (const unsigned char *)part[i],
						strlen(part[i]) + 1);
	if (!of->n_parts)
		(void)crypto_hash_sha256_update(&state, (const unsigned char *)of->host,
						strlen(of->host));
	(void)crypto_hash_sha256_final(&state, hash);
	(void)pp_hex(hash, sizeof(hash), ret);
}

struct found {
	char id[2][PP_NODE_ID];
	size_t n; /* also beyond the second */
};

static int take_id(void *ctx, const struct pp_sql_value *columns, size_t n)
{
	struct found *f = ctx;

	if (n && columns[0].type == PP_SQL_TEXT && f->n < 2)
		(void)snprintf(f->id[f->n], PP_NODE_ID, "%s", columns[0].text);
	f->n++;
	return 0;
}

static int find_one(struct pp_sql *sql, const char *ask, const char *with, struct found *ret,
		    struct pp_error *err)
{
	const struct pp_sql_value args[] = {pp_sql_text(with)};

	*ret = (struct found){0};
	return pp_sql_ask(sql, ask, args, 1, take_id, ret, err);
}

/* Parts go by so many in a statement: each is one that a server is waited for. */
enum { PARTS = 8 };

struct voters {
	const char *const *part;
	char (*id)[PP_NODE_ID];
	size_t n;
};

static int take_part(void *ctx, const struct pp_sql_value *c, size_t n)
{
	const struct voters *v = ctx;

	if (n < 2 || c[0].type != PP_SQL_TEXT || c[1].type != PP_SQL_TEXT)
		return -EBADMSG;
	for (size_t i = 0; i < v->n; i++)
		if (!strcmp(v->part[i], c[0].text))
			(void)snprintf(v->id[i], PP_NODE_ID, "%s", c[1].text);
	return 0;
}

static int find_parts(struct pp_sql *sql, struct voters *v, struct pp_error *err)
{
	struct pp_sql_value args[PARTS];

	/* The last one again does no harm. */
	for (size_t i = 0; i < PARTS; i++)
		args[i] = pp_sql_text(v->part[i < v->n ? i : v->n - 1]);
	return pp_sql_ask(sql,
			  "SELECT part, node FROM parts WHERE part IN (?, ?, ?, ?, ?, ?, ?, ?)",
			  args, PARTS, take_part, v, err);
}

/* The node in which most of the parts were last seen; the first of them where as many were. */
static int vote(struct pp_sql *sql, const struct pp_result_node *of, struct found *ret,
		struct pp_error *err)
{
	char(*id)[PP_NODE_ID] = calloc(of->n_parts, sizeof(*id));
	size_t best = 0, votes;
	int r = id ? 0 : pp_error_set(err, -ENOMEM, "out of memory");

	*ret = (struct found){0};
	for (size_t i = 0; i < of->n_parts && !r; i += PARTS) {
		struct voters v = {.part = &of->part[i], .id = &id[i]};

		v.n = of->n_parts - i < PARTS ? of->n_parts - i : PARTS;
		r = find_parts(sql, &v, err);
	}
	for (size_t i = 0; i < of->n_parts && !r; i++) {
		votes = 0;
		for (size_t k = i; k < of->n_parts && id[i][0]; k++)
			votes += !strcmp(id[i], id[k]);
		if (votes > best) {
			best = votes;
			ret->n = 1;
			memcpy(ret->id[0], id[i], PP_NODE_ID);
		}
	}
	free(id);
	return r;
}

static int add_node(struct pp_sql *sql, const struct pp_result_node *of, const char *id,
		    const char *at, struct pp_error *err)
{
	const struct pp_sql_value args[] = {pp_sql_text(id), pp_sql_text(of->host),
					    PP_SQL_INT(!of->n_parts), pp_sql_text(at),
					    pp_sql_text(at)};

	return pp_sql_send(
		sql,
		"INSERT INTO nodes (id, host, by_name, first_seen, last_seen) VALUES (?, "
		"?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET host = CASE WHEN "
		"excluded.host IS NOT NULL AND excluded.last_seen >= nodes.last_seen THEN "
		"excluded.host ELSE nodes.host END, first_seen = CASE WHEN "
		"excluded.first_seen < nodes.first_seen THEN excluded.first_seen ELSE "
		"nodes.first_seen END, last_seen = CASE WHEN excluded.last_seen > "
		"nodes.last_seen THEN excluded.last_seen ELSE nodes.last_seen END",
		args, 5, err);
}

static int keep_parts(struct pp_sql *sql, const struct pp_result_node *of, const char *digest,
		      const char *id, struct pp_error *err)
{
	struct pp_sql_value args[] = {pp_sql_text(digest), pp_sql_text(id)};
	int r;

	r = pp_sql_send(
		sql,
		"INSERT INTO assemblies (digest, node) VALUES (?, ?) ON CONFLICT (digest) DO "
		"UPDATE SET node = excluded.node",
		args, 2, err);
	for (size_t i = 0; i < of->n_parts && !r; i++) {
		args[0] = pp_sql_text(of->part[i]);
		r = pp_sql_send(
			sql,
			"INSERT INTO parts (part, node) VALUES (?, ?) ON CONFLICT (part) DO "
			"UPDATE SET node = excluded.node",
			args, 2, err);
	}
	return r;
}

/* Who was known by this name only is this one: all that is kept of it goes over. */
static int take_over(struct pp_sql *sql, const char *host, const char *id, bool *ret_taken,
		     struct pp_error *err)
{
	static const char *const texts[] = {
		"UPDATE nodes SET first_seen = (SELECT min(first_seen) FROM nodes WHERE id IN (?, "
		"?)) "
		"WHERE id = ?",
		"DELETE FROM results WHERE node = ? AND document IN (SELECT document FROM results "
		"WHERE node = ?)",
		"DELETE FROM rails AS r WHERE node = ? AND EXISTS (SELECT 1 FROM rails o WHERE "
		"o.node "
		"= "
		"? AND o.simulated = r.simulated AND o.rail = r.rail AND o.what = r.what)",
		"DELETE FROM states WHERE node = ? AND node <> ?",
		"DELETE FROM nodes WHERE id = ? AND id <> ?"};
	static const char *const moves[] = {"UPDATE results SET node = ? WHERE node = ?",
					    "UPDATE figures SET node = ? WHERE node = ?",
					    "UPDATE rails SET node = ? WHERE node = ?"};
	struct pp_sql_value args[3];
	struct found ghost;
	int r = find_one(sql, "SELECT id FROM nodes WHERE host = ? AND by_name = 1", host, &ghost,
			 err);

	if (r || !ghost.n || !strcmp(ghost.id[0], id))
		return r;
	*ret_taken = true;
	args[0] = pp_sql_text(ghost.id[0]);
	args[1] = args[2] = pp_sql_text(id);
	r = pp_sql_send(sql, texts[0], args, 3, err);
	for (size_t i = 1; i < 3 && !r; i++)
		r = pp_sql_send(sql, texts[i], args, 2, err);
	args[0] = pp_sql_text(id);
	args[1] = pp_sql_text(ghost.id[0]);
	for (size_t i = 0; i < PP_ARRAY_LEN(moves) && !r; i++)
		r = pp_sql_send(sql, moves[i], args, 2, err);
	args[0] = pp_sql_text(ghost.id[0]);
	args[1] = pp_sql_text(id);
	for (size_t i = 3; i < PP_ARRAY_LEN(texts) && !r; i++)
		r = pp_sql_send(sql, texts[i], args, 2, err);
	return r;
}

/* By parts: as in this transaction before, as ever before, as most of them. */
static int find_by_parts(struct pp_sql *sql, struct pp_fleet_memory *memory,
			 const struct pp_result_node *of, const char *digest, struct found *ret,
			 bool *ret_known, struct pp_error *err)
{
	int r;

	*ret_known = true;
	for (size_t i = 0; i < PP_FLEET_KEPT; i++) {
		if (strcmp(memory->node[i].assembly, digest) != 0)
			continue;
		ret->n = 1;
		memcpy(ret->id[0], memory->node[i].node, PP_NODE_ID);
		return 0;
	}
	r = find_one(sql, "SELECT node FROM assemblies WHERE digest = ?", digest, ret, err);
	*ret_known = ret->n > 0;
	return r || ret->n ? r : vote(sql, of, ret, err);
}

static void remember(struct pp_fleet_memory *memory, const char *digest, const char *node)
{
	unsigned int i = memory->next_node++ % PP_FLEET_KEPT;

	(void)snprintf(memory->node[i].assembly, sizeof(memory->node[i].assembly), "%s", digest);
	memcpy(memory->node[i].node, node, PP_NODE_ID);
}

int pp_fleet_identify(struct pp_sql *sql, struct pp_fleet_memory *memory,
		      const struct pp_result_node *of, const char *at, char ret[PP_NODE_ID],
		      bool *ret_taken, struct pp_error *err)
{
	struct found found = {0};
	bool known = true;
	char digest[65];
	int r;

	digest_of(of, digest);
	if (of->n_parts)
		r = find_by_parts(sql, memory, of, digest, &found, &known, err);
	else
		r = find_one(
			sql,
			"SELECT id FROM nodes WHERE host = ? ORDER BY last_seen DESC, by_name, "
			"id LIMIT 1",
			of->host, &found, err);
	if (r)
		return r;
	if (!found.n)
		(void)snprintf(found.id[0], PP_NODE_ID, "%.16s", digest);
	r = add_node(sql, of, found.id[0], at, err);
	if (!r && !known)
		r = keep_parts(sql, of, digest, found.id[0], err);
	*ret_taken = false;
	if (!r && !known && of->host)
		r = take_over(sql, of->host, found.id[0], ret_taken, err);
	if (r)
		return r;
	if (*ret_taken) /* with all that was known of the other one */
		memset(memory->state, 0, sizeof(memory->state));
	if (of->n_parts)
		remember(memory, digest, found.id[0]);
	memcpy(ret, found.id[0], PP_NODE_ID);
	return 0;
}

void pp_fleet_like(const char *text, const char *before, struct pp_buf *out)
{
	pp_buf_str(out, before);
	for (const char *p = text; p && *p; p++) {
		if (strchr("%_\\", *p))
			pp_buf_char(out, '\\');
		pp_buf_char(out, *p);
	}
	pp_buf_char(out, '%');
}

int pp_fleet_find(struct pp_sql *sql, const char *called, char ret[PP_NODE_ID],
		  struct pp_error *err)
{
	static const char *const asks[] = {
		"SELECT id FROM nodes WHERE id = ?",
		"SELECT id FROM nodes WHERE host = ?",
		"SELECT node FROM parts WHERE part = 'gpu ' || ? ",
		"SELECT node FROM parts WHERE part = 'hca ' || ? ",
		"SELECT id FROM nodes WHERE id LIKE lower(?) ESCAPE '\\'",
	};
	PP_AUTO_BUF struct pp_buf pattern = PP_BUF(4096);
	struct found f = {0};
	int r = 0;

	pp_fleet_like(called, "", &pattern);
	if (pattern.failed)
		return pp_error_set(err, -ENOENT, "no node is called so");
	for (size_t i = 0; i < PP_ARRAY_LEN(asks) && !r && !f.n; i++)
		r = find_one(sql, asks[i],
			     i + 1 < PP_ARRAY_LEN(asks) ? called : pp_buf_text(&pattern), &f, err);
	if (r)
		return r;
	if (!f.n)
		return pp_error_set(err, -ENOENT,
				    "no node is called '%.64s': an id, a name, a GPU's UUID or an "
				    "hca's GUID",
				    called);
	if (f.n > 1)
		return pp_error_set(err, -ENOTUNIQ,
				    "%zu nodes are called '%.64s': %s, %s%s; their ids tell them "
				    "apart",
				    f.n, called, f.id[0], f.id[1], f.n > 2 ? "..." : "");
	memcpy(ret, f.id[0], PP_NODE_ID);
	return 0;
}
