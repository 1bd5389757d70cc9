/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gain is of the nodes that it was measured on. Most documents do not say what those nodes were:
 * then it is what they were by the last result before, else by the first one behind; while nothing
 * is known of one of them, the class is not known either.
 */
#include <errno.h>
#include <string.h>

#include "store/fleet_parts.h"
#include "base/banned.h"

enum { CLASS = 80, DOCUMENTS = 4096 };

struct class_of {
	char node[PP_NODE_ID], topology[CLASS], software[CLASS];
};

struct classes {
	struct pp_arena arena;
	struct class_of *list;
	size_t n;
	char at[32];
};

static void copy(char *to, size_t size, const struct pp_sql_value *v)
{
	(void)snprintf(to, size, "%s", v->type == PP_SQL_TEXT ? v->text : "");
}

static int take_row(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct classes *all = ctx;
	struct class_of *one;

	if (n < 4 || all->n == PP_RESULT_NODES)
		return -EBADMSG;
	one = &all->list[all->n++];
	copy(one->node, sizeof(one->node), &c[0]);
	copy(one->topology, sizeof(one->topology), &c[1]);
	copy(one->software, sizeof(one->software), &c[2]);
	copy(all->at, sizeof(all->at), &c[3]);
	return 0;
}

static int take_class(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct class_of *one = ctx;

	if (n < 2)
		return -EBADMSG;
	if (!*one->topology)
		copy(one->topology, sizeof(one->topology), &c[0]);
	if (!*one->software)
		copy(one->software, sizeof(one->software), &c[1]);
	return 0;
}

static int look_up(struct pp_sql *sql, struct class_of *one, const char *at, struct pp_error *err)
{
	static const char *const asks[] = {
		"SELECT topology, software FROM results WHERE node = ? AND simulated = 0 AND facts "
		"IS "
		"NOT NULL AND at <= ? ORDER BY at DESC, document DESC LIMIT 1",
		"SELECT topology, software FROM results WHERE node = ? AND simulated = 0 AND facts "
		"IS "
		"NOT NULL AND at > ? ORDER BY at, document LIMIT 1"};
	const struct pp_sql_value args[] = {pp_sql_text(one->node), pp_sql_text(at)};
	int r = 0;

	for (size_t i = 0; i < 2 && !r && (!*one->topology || !*one->software); i++)
		r = pp_sql_ask(sql, asks[i], args, 2, take_class, one, err);
	return r;
}

/* "": not known, and so is the whole. */
static void join(char to[CLASS], const char *one, bool first)
{
	if (first)
		(void)snprintf(to, CLASS, "%s", one);
	else if (*to && (!*one || strcmp(to, one) != 0))
		(void)snprintf(to, CLASS, "%s", *one ? "mixed" : "");
}

static int classify(struct pp_sql *sql, int64_t document, struct classes *all, struct pp_error *err)
{
	struct pp_sql_value args[] = {PP_SQL_INT(document), PP_SQL_INT(0), PP_SQL_INT(document)};
	char topology[CLASS] = "", software[CLASS] = "";
	int r;

	r = pp_sql_ask(
		sql,
		"SELECT node, topology, software, at FROM results WHERE document = ? ORDER BY "
		"node",
		args, 1, take_row, all, err);
	for (size_t i = 0; i < all->n && !r; i++) {
		r = look_up(sql, &all->list[i], all->at, err);
		join(topology, all->list[i].topology, i == 0);
		join(software, all->list[i].software, i == 0);
	}
	args[0] = pp_sql_text(*topology ? topology : NULL);
	args[1] = pp_sql_text(*software ? software : NULL);
	return r ? r
		 : pp_sql_send(sql, "UPDATE documents SET topology = ?, software = ? WHERE id = ?",
			       args, 3, err);
}

int pp_fleet_classify(struct pp_sql *sql, int64_t document, struct pp_error *err)
{
	struct classes all = {.arena = PP_ARENA(1 << 20)};
	int r;

	all.list = pp_arena_array(&all.arena, PP_RESULT_NODES, sizeof(*all.list));
	r = all.list ? classify(sql, document, &all, err)
		     : pp_error_set(err, -ENOMEM, "out of memory");
	pp_arena_done(&all.arena);
	return r;
}

struct waiting {
	int64_t *document;
	size_t n;
};

static int take_document(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct waiting *w = ctx;

	if (n && c[0].type == PP_SQL_INTEGER && w->n < DOCUMENTS)
		w->document[w->n++] = c[0].integer;
	return 0;
}

static int classify_since(struct pp_sql *sql, const struct pp_fleet_waiting *of,
			  struct pp_error *err)
{
	const struct pp_sql_value args[] = {pp_sql_text(of->node), pp_sql_text(of->from)};
	struct pp_arena arena = PP_ARENA(1 << 20);
	struct waiting w = {.document = pp_arena_array(&arena, DOCUMENTS, sizeof(*w.document))};
	int r = w.document ? 0 : pp_error_set(err, -ENOMEM, "out of memory");

	if (!r)
		r = pp_sql_ask(sql,
			       "SELECT r.document FROM results r WHERE r.node = ? AND r.simulated "
			       "IN (0, 1) AND r.at >= ? AND r.facts IS NULL AND EXISTS (SELECT 1 "
			       "FROM gains g WHERE g.document = r.document) ORDER BY r.document",
			       args, 2, take_document, &w, err);
	for (size_t i = 0; i < w.n && !r; i++)
		r = pp_fleet_classify(sql, w.document[i], err);
	pp_arena_done(&arena);
	return r;
}

int pp_fleet_classify_waiting(struct pp_sql *sql, struct pp_fleet_memory *memory,
			      struct pp_error *err)
{
	int r = 0;

	for (size_t i = 0; i < memory->n_waiting && !r; i++)
		r = classify_since(sql, &memory->waiting[i], err);
	memory->n_waiting = 0;
	return r;
}

int pp_fleet_classify_later(struct pp_sql *sql, struct pp_fleet_memory *memory, const char *node,
			    const char *from, struct pp_error *err)
{
	struct pp_fleet_waiting *w = NULL;
	int r;

	for (size_t i = 0; i < memory->n_waiting && !w; i++)
		if (!strcmp(memory->waiting[i].node, node))
			w = &memory->waiting[i];
	if (w && strcmp(w->from, from) <= 0)
		return 0;
	if (!w && memory->n_waiting == PP_FLEET_KEPT) {
		r = pp_fleet_classify_waiting(sql, memory, err);
		if (r)
			return r;
	}
	w = w ? w : &memory->waiting[memory->n_waiting++];
	(void)snprintf(w->node, sizeof(w->node), "%s", node);
	(void)snprintf(w->from, sizeof(w->from), "%s", from);
	return 0;
}
