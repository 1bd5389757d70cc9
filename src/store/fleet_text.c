/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents of a text into the fleet: one, or one a line.
 *
 * All are read before the transaction begins: who else writes waits for the database's work only,
 * and what is damaged never locks it. Results are kept from that reading up to KEPT_BYTES; those
 * behind are only looked at, and read once more when they go in.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/fleet_parts.h"
#include "base/banned.h"

static const size_t KEPT_BYTES = (size_t)256 << 20;

/* A place in the text; @line 0: the text is one document. */
struct place {
	size_t at, line;
};

struct text {
	const char *text;
	size_t len;
	struct pp_result **kept;
	size_t n, room, bytes;
	struct place rest; /* where those begin that are not kept */
	bool all;	   /* none is not */
};

/* A first line that is a whole object: one document a line; else the text is one document. */
static bool is_lines(const struct text *t)
{
	const char *end = memchr(t->text, '\n', t->len);
	size_t len = end ? (size_t)(end - t->text) : t->len;

	while (len && (t->text[len - 1] == '\r' || t->text[len - 1] == ' '))
		len--;
	return end && len > 1 && t->text[0] == '{' && t->text[len - 1] == '}';
}

/* Looks no further than the line: there may be a great many. */
static bool is_blank(const char *at, const char *end)
{
	while (at < end && (!*at || strchr(" \t\r\n", *at)))
		at++;
	return at == end;
}

/* The document at @from, and then the place behind it. -ENOENT: there is none any more. */
static int read_next(const struct text *t, struct place *from, struct pp_result **ret,
		     struct pp_error *err)
{
	const char *at = t->text + from->at, *end = t->text + t->len, *next = end;
	size_t line = from->line;
	int r;

	for (; line && at < end; at = next, line++) {
		next = memchr(at, '\n', (size_t)(end - at));
		next = next ? next + 1 : end;
		if (!is_blank(at, next))
			break;
	}
	/* Nothing at all is no document either, and is said to be none. */
	if (at == end && (line || from->at))
		return -ENOENT;
	r = pp_result_read(at, (size_t)(next - at), ret, err);
	if (r && line)
		(void)pp_error_prefix(err, "line %zu", line);
	*from = (struct place){(size_t)(next - t->text), line + !!line};
	return r;
}

static int keep(struct text *t, struct pp_result *result)
{
	size_t room = t->room ? 2 * t->room : 32;
	struct pp_result **grown;

	if (t->n == t->room) {
		grown = reallocarray(t->kept, room, sizeof(struct pp_result *));
		if (!grown)
			return -ENOMEM;
		t->kept = grown;
		t->room = room;
	}
	t->bytes += sizeof(*result) + result->arena.used;
	t->kept[t->n++] = result;
	return 0;
}

static int read_all(struct text *t, struct pp_error *err)
{
	struct place place = {.line = is_lines(t)}, before = place;
	struct pp_result *result = NULL;
	int r;

	t->all = true;
	while (!(r = read_next(t, &place, &result, err))) {
		if (t->all && result->arena.used > KEPT_BYTES - t->bytes) {
			t->all = false;
			t->rest = before;
		}
		if (!t->all)
			pp_result_free(result);
		else if (keep(t, result)) {
			pp_result_free(result);
			return pp_error_set(err, -ENOMEM, "out of memory");
		}
		before = place;
	}
	return r == -ENOENT ? 0 : r;
}

static int add_all(struct pp_sql *sql, struct pp_fleet_memory *memory, const void *what,
		   struct pp_fleet_added *ret, struct pp_error *err)
{
	const struct text *t = what;
	struct place place = t->rest;
	struct pp_result *result = NULL;
	int r = 0;

	for (size_t i = 0; i < t->n && !r; i++)
		r = pp_fleet_add_result(sql, memory, t->kept[i], ret, err);
	while (!r && !t->all) {
		r = read_next(t, &place, &result, err);
		if (r == -ENOENT)
			return 0;
		r = r ? r : pp_fleet_add_result(sql, memory, result, ret, err);
		result = pp_result_free(result);
	}
	return r;
}

int pp_fleet_add_text(struct pp_sql *sql, const char *text, size_t len, struct pp_fleet_added *ret,
		      struct pp_error *err)
{
	struct text t = {.text = text, .len = len};
	int r = read_all(&t, err);

	ret->of_input = r && r != -ENOMEM;
	r = r ? r : pp_fleet_add_whole(sql, add_all, &t, ret, err);
	for (size_t i = 0; i < t.n; i++)
		pp_result_free(t.kept[i]);
	free(t.kept);
	return r;
}
