/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Old results go. Which of them is found out beside whoever adds; they go by BATCH documents, each
 * batch a transaction, so that nobody waits long. A result that comes in meanwhile and is old
 * itself may change what stays: then it is found out anew.
 */
#include <errno.h>
#include <string.h>

#include "store/fleet_retain.h"
#include "base/banned.h"

enum { BATCH = 500, TRIES = 3 };
static const size_t DIGESTS_BYTES = (size_t)256 << 20;

/* -EAGAIN is no error of a database's here. */
enum { AGAIN = -EAGAIN };

static bool goes(unsigned char flag, const struct pp_fleet_prune *how)
{
	return (flag & PP_RETAIN_OLD) && !(flag & PP_RETAIN_NEEDED) &&
	       (how->gains || !(flag & PP_RETAIN_GAINS));
}

/* What stays for its gains alone leaves its figures. */
static bool thins(unsigned char flag)
{
	return (flag & PP_RETAIN_OLD) && !(flag & PP_RETAIN_NEEDED) && (flag & PP_RETAIN_FIGURES);
}

struct batch {
	const struct pp_fleet_prune *how;
	const struct pp_retain *r;
	int64_t document[BATCH];
	size_t n;
	struct pp_fleet_pruned *gone; /* of this batch, should it be kept */
};

static int take_number(void *ctx, const struct pp_sql_value *c, size_t n)
{
	if (n && c[0].type == PP_SQL_INTEGER)
		*(int64_t *)ctx = c[0].integer;
	return 0;
}

static int come_late(struct pp_sql *sql, const struct batch *b, struct pp_error *err)
{
	const struct pp_sql_value args[] = {PP_SQL_INT(b->r->last), pp_sql_text(b->how->before)};
	int64_t n = 0;
	int r = pp_sql_ask(sql, "SELECT count(*) FROM documents WHERE id > ? AND at < ?", args, 2,
			   take_number, &n, err);

	return r || !n ? r : pp_error_set(err, AGAIN, "old results keep coming in");
}

static int delete_batch(struct pp_sql *sql, struct pp_fleet_memory *memory, const void *what,
			struct pp_fleet_added *ret, struct pp_error *err)
{
	static const struct {
		const char *text;
		size_t n_args, counter;
		unsigned char flag; /* 0: of all */
		bool whole;	    /* only of what goes as a whole */
	} steps[] = {
		{"DELETE FROM figures WHERE document = ? AND node IN (SELECT node FROM results "
		 "WHERE document = ?)",
		 2, offsetof(struct pp_fleet_pruned, figures), PP_RETAIN_FIGURES, false},
		{"DELETE FROM gains WHERE document = ?", 1, offsetof(struct pp_fleet_pruned, gains),
		 PP_RETAIN_GAINS, true},
		{"DELETE FROM results WHERE document = ?", 1,
		 offsetof(struct pp_fleet_pruned, results), 0, true},
		{"DELETE FROM documents WHERE id = ?", 1,
		 offsetof(struct pp_fleet_pruned, documents), 0, true},
	};
	const struct batch *b = what;
	struct pp_sql_value args[2];
	int64_t changed;
	int r = come_late(sql, b, err);

	(void)memory;
	(void)ret;
	*b->gone = (struct pp_fleet_pruned){0};
	r = r ? r : pp_sql_changed(sql, &changed, err);
	for (size_t s = 0; s < PP_ARRAY_LEN(steps) && !r; s++) {
		for (size_t i = 0; i < b->n && !r; i++) {
			unsigned char flag = b->r->flag[b->document[i] - b->r->first];

			if ((steps[s].flag && !(flag & steps[s].flag)) ||
			    (steps[s].whole && !goes(flag, b->how)))
				continue;
			args[0] = args[1] = PP_SQL_INT(b->document[i]);
			r = pp_sql_send(sql, steps[s].text, args, steps[s].n_args, err);
		}
		r = r ? r : pp_sql_changed(sql, &changed, err);
		if (!r)
			*(int64_t *)((char *)b->gone + steps[s].counter) = changed;
	}
	return r;
}

static void add_up(struct pp_fleet_pruned *to, const struct pp_fleet_pruned *one)
{
	to->documents += one->documents;
	to->results += one->results;
	to->figures += one->figures;
	to->gains += one->gains;
}

static int delete_all(struct pp_sql *sql, const struct pp_fleet_prune *how,
		      const struct pp_retain *r, struct pp_fleet_pruned *gone, struct pp_error *err)
{
	struct pp_fleet_pruned of_batch;
	struct batch b = {.how = how, .r = r, .gone = &of_batch};
	struct pp_fleet_added ignored = {0};
	int64_t n = r->last - r->first + 1;
	int ret = 0;

	for (int64_t i = 0; i < n && !ret; i++) {
		if (goes(r->flag[i], how) || thins(r->flag[i]))
			b.document[b.n++] = r->first + i;
		if (!b.n || (b.n < BATCH && i + 1 < n))
			continue;
		if (how->stop && how->stop())
			return pp_error_set(err, -EINTR, "interrupted");
		ret = pp_fleet_add_whole(sql, delete_batch, &b, &ignored, err);
		if (!ret)
			add_up(gone, &of_batch);
		b.n = 0;
	}
	return ret;
}

/* Digests in the order they came in. */
struct digests {
	struct pp_arena arena;
	struct digest {
		const char *text;
		struct digest *next;
	} * first, **end;
};

static int take_digest(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct digests *all = ctx;
	struct digest *one = pp_arena_alloc(&all->arena, sizeof(*one));

	if (!n || c[0].type != PP_SQL_TEXT)
		return -EBADMSG;
	if (!one)
		return -EFBIG;
	one->text = pp_fleet_text(&all->arena, &c[0]);
	*all->end = one;
	all->end = &one->next;
	return all->arena.failed ? -EFBIG : 0;
}

static int delete_digests(struct pp_sql *sql, const char *ask, const char *text, int64_t *ret_gone,
			  struct pp_error *err)
{
	struct digests all = {.arena = PP_ARENA(DIGESTS_BYTES)};
	int64_t changed;
	int r;

	all.end = &all.first;
	r = pp_sql_ask(sql, ask, NULL, 0, take_digest, &all, err);
	if (r == -EFBIG && !err->code)
		(void)pp_error_set(err, r, "more is left over than is looked at");
	r = r ? r : pp_sql_changed(sql, &changed, err);
	for (const struct digest *d = all.first; d && !r; d = d->next) {
		const struct pp_sql_value arg = pp_sql_text(d->text);

		r = pp_sql_send(sql, text, &arg, 1, err);
	}
	r = r ? r : pp_sql_changed(sql, ret_gone, err);
	pp_arena_done(&all.arena);
	return r;
}

/* Facts and pictures that nobody has any more. */
static int delete_rest(struct pp_sql *sql, struct pp_fleet_memory *memory, const void *what,
		       struct pp_fleet_added *ret, struct pp_error *err)
{
	const struct batch *b = what;
	int r = delete_digests(
		sql,
		"SELECT DISTINCT s.digest FROM sets s LEFT JOIN (SELECT facts FROM results UNION "
		"SELECT facts FROM states) u ON u.facts = s.digest WHERE u.facts IS NULL",
		"DELETE FROM sets WHERE digest = ?", &b->gone->facts, err);

	(void)memory;
	(void)ret;
	return r ? r
		 : delete_digests(sql,
				  "SELECT p.digest FROM pictures p LEFT JOIN states s ON s.picture "
				  "= p.digest WHERE s.picture IS NULL",
				  "DELETE FROM pictures WHERE digest = ?", &b->gone->pictures, err);
}

/* Rows that belong to documents which go, or are figures of those which stay for gains alone. */
struct counting {
	const struct pp_fleet_prune *how;
	const struct pp_retain *r;
	bool thin;
	int64_t n;
};

static int count_row(void *ctx, const struct pp_sql_value *c, size_t n)
{
	struct counting *k = ctx;
	unsigned char flag;

	if (n < 2 || c[0].type != PP_SQL_INTEGER || c[1].type != PP_SQL_INTEGER)
		return -EBADMSG;
	if (c[0].integer < k->r->first || c[0].integer > k->r->last)
		return 0;
	flag = k->r->flag[c[0].integer - k->r->first];
	if (goes(flag, k->how) || (k->thin && thins(flag)))
		k->n += c[1].integer;
	return 0;
}

static int count(struct pp_sql *sql, const struct pp_fleet_prune *how, const struct pp_retain *r,
		 struct pp_fleet_pruned *gone, struct pp_error *err)
{
	static const struct {
		const char *ask;
		size_t counter;
		bool thin;
	} asks[] = {
		{"SELECT id, 1 FROM documents", offsetof(struct pp_fleet_pruned, documents), false},
		{"SELECT document, 1 FROM results", offsetof(struct pp_fleet_pruned, results),
		 false},
		{"SELECT document, count(*) FROM figures GROUP BY document",
		 offsetof(struct pp_fleet_pruned, figures), true},
		{"SELECT document, count(*) FROM gains GROUP BY document",
		 offsetof(struct pp_fleet_pruned, gains), false}};
	int ret = 0;

	for (size_t i = 0; i < PP_ARRAY_LEN(asks) && !ret; i++) {
		struct counting k = {.how = how, .r = r, .thin = asks[i].thin};

		ret = pp_sql_ask(sql, asks[i].ask, NULL, 0, count_row, &k, err);
		*(int64_t *)((char *)gone + asks[i].counter) = k.n;
	}
	return ret;
}

static int64_t count_kept(const struct pp_fleet_prune *how, const struct pp_retain *r)
{
	int64_t n = r->last - r->first + 1, kept = 0;

	for (int64_t i = 0; i < n; i++)
		kept += (r->flag[i] & PP_RETAIN_OLD) && !goes(r->flag[i], how);
	return kept;
}

static int prune(struct pp_sql *sql, const struct pp_fleet_prune *how, struct pp_fleet_pruned *gone,
		 struct pp_error *err)
{
	struct pp_retain r = {0};
	int ret = pp_retain(sql, how->before, how->gains, &r, err);

	if (!ret)
		gone->kept = count_kept(how, &r);
	if (!ret)
		ret = how->dry_run ? count(sql, how, &r, gone, err)
				   : delete_all(sql, how, &r, gone, err);
	pp_retain_done(&r);
	return ret;
}

int pp_fleet_prune(struct pp_sql *sql, const struct pp_fleet_prune *how,
		   struct pp_fleet_pruned *ret, struct pp_error *err)
{
	struct pp_fleet_added ignored = {0};
	struct batch b = {.gone = ret};
	int r = AGAIN;

	*ret = (struct pp_fleet_pruned){0};
	for (int i = 0; i < TRIES && r == AGAIN; i++) {
		*err = (struct pp_error){0};
		r = prune(sql, how, ret, err);
	}
	if (r || how->dry_run || !ret->documents)
		return r;
	return pp_fleet_add_whole(sql, delete_rest, &b, &ignored, err);
}

int pp_fleet_compact(struct pp_sql *sql, struct pp_error *err)
{
	int r;

	if (pp_sql_is_server(sql))
		return pp_error_set(err, -EOPNOTSUPP, "a server's file is its own");
	r = pp_sql_run(sql, "VACUUM", NULL, 0, err);
	/* Until then the shorter file is in its write-ahead log. */
	return r ? r : pp_sql_run(sql, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, 0, err);
}

int pp_fleet_space(struct pp_sql *sql, int64_t *ret_bytes, int64_t *ret_free, struct pp_error *err)
{
	int64_t size = 0, pages = 0, unused = 0, bytes, of_free;
	int r;

	if (pp_sql_is_server(sql))
		return -EOPNOTSUPP;
	r = pp_sql_ask(sql, "PRAGMA page_size", NULL, 0, take_number, &size, err);
	r = r ? r : pp_sql_ask(sql, "PRAGMA page_count", NULL, 0, take_number, &pages, err);
	r = r ? r : pp_sql_ask(sql, "PRAGMA freelist_count", NULL, 0, take_number, &unused, err);
	if (r)
		return r;
	if (__builtin_mul_overflow(size, pages, &bytes) ||
	    __builtin_mul_overflow(size, unused, &of_free))
		return -EBADMSG;
	*ret_bytes = bytes;
	*ret_free = of_free;
	return 0;
}
