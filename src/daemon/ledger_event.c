/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ledger_parts.h"
#include "base/banned.h"

_Static_assert(sizeof(((struct pp_ledger *)0)->seed) == crypto_shorthash_KEYBYTES, "its key");

/* Objects and names come from logs and processes: who writes them must not choose the bucket. */
size_t pp_ledger_bucket(const struct pp_ledger *k, const char *a, const char *b)
{
	unsigned char one[crypto_shorthash_BYTES], two[crypto_shorthash_BYTES];

	(void)crypto_shorthash(one, (const unsigned char *)a, strlen(a), k->seed);
	(void)crypto_shorthash(two, (const unsigned char *)b, strlen(b), k->seed);
	return ((size_t)(two[0] ^ one[1]) | (size_t)(two[1] ^ one[0]) << 8) % PP_LEDGER_BUCKETS;
}

static void named_free(struct pp_event_name *n)
{
	free(n->name);
	free(n);
}

static void telling_done(struct pp_telling *t)
{
	free(t->line);
	free(t->text);
}

static void place_free(struct pp_mark *p)
{
	if (!p)
		return;
	free(p->watcher);
	free(p->key);
	free(p->value);
	free(p);
}

void pp_ledger_free_events(struct pp_ledger *k)
{
	struct pp_mark *p;

	for (size_t i = 0; i < k->n_names; i++)
		named_free(k->ring[i]);
	for (size_t i = 0; i < k->n_tellings; i++)
		telling_done(&k->tellings[i]);
	free(k->tellings);
	for (size_t i = 0; i < PP_LEDGER_BUCKETS; i++) {
		while ((p = k->place[i])) {
			k->place[i] = p->chain;
			place_free(p);
		}
	}
}

bool pp_event_name_has(const struct pp_ledger *k, enum pp_signal_kind kind, const char *name)
{
	const struct pp_event_name *n = k->named[pp_ledger_bucket(k, pp_signal_key(kind), name)];

	for (; n; n = n->chain)
		if (n->kind == kind && !strcmp(n->name, name))
			return true;
	return false;
}

/* An eighth at once: moving the ring for each would cost more than the names. */
static void make_room(struct pp_ledger *k)
{
	const size_t n = PP_LEDGER_NAMED / 8;

	for (size_t i = 0; i < n; i++) {
		struct pp_event_name *old = k->ring[i], **at;

		at = &k->named[pp_ledger_bucket(k, pp_signal_key(old->kind), old->name)];
		while (*at != old)
			at = &(*at)->chain;
		*at = old->chain;
		named_free(old);
	}
	k->n_names -= n;
	memmove(k->ring, k->ring + n, k->n_names * sizeof(struct pp_event_name *));
}

int pp_event_name_add(struct pp_ledger *k, enum pp_signal_kind kind, const char *name, uint64_t of,
		      int64_t wall_ns, bool stored)
{
	struct pp_event_name *n = calloc(1, sizeof(*n)), **bucket;

	if (!n || pp_text_set(&n->name, name)) {
		free(n);
		return -ENOMEM;
	}
	if (k->n_names == PP_LEDGER_NAMED)
		make_room(k);
	n->kind = kind;
	n->of = of;
	n->wall_ns = wall_ns;
	n->stored = stored;
	n->number = ++k->last_name;
	bucket = &k->named[pp_ledger_bucket(k, pp_signal_key(kind), n->name)];
	n->chain = *bucket;
	*bucket = n;
	k->ring[k->n_names++] = n;
	return 0;
}

int pp_telling_add(struct pp_ledger *k, const struct pp_telling *t)
{
	size_t room = k->room_tellings ? 2 * k->room_tellings : 16;
	struct pp_telling *more;

	if (k->n_tellings == PP_LEDGER_TOLD) {
		telling_done(&k->tellings[0]);
		memmove(k->tellings, k->tellings + 1, --k->n_tellings * sizeof(*k->tellings));
		k->untold++;
	}
	if (k->n_tellings == k->room_tellings) {
		more = realloc(k->tellings, room * sizeof(*more));
		if (!more) {
			free(t->line);
			free(t->text);
			return -ENOMEM;
		}
		k->tellings = more;
		k->room_tellings = room;
	}
	k->tellings[k->n_tellings++] = *t;
	return 0;
}

struct pp_telling *pp_telling_at(const struct pp_ledger *k, size_t i)
{
	return i < k->n_tellings ? &k->tellings[i] : NULL;
}

void pp_tellings_done(struct pp_ledger *k, uint64_t id)
{
	size_t n = 0;

	while (n < k->n_tellings && k->tellings[n].id <= id)
		telling_done(&k->tellings[n++]);
	k->n_tellings -= n;
	if (n)
		memmove(k->tellings, k->tellings + n, k->n_tellings * sizeof(*k->tellings));
}

static struct pp_mark *place_find(const struct pp_ledger *k, const char *watcher, const char *key)
{
	struct pp_mark *p = k->place[pp_ledger_bucket(k, watcher, key)];

	for (; p; p = p->chain)
		if (!strcmp(p->watcher, watcher) && !strcmp(p->key, key))
			return p;
	return NULL;
}

const char *pp_mark_get(const struct pp_ledger *k, const char *watcher, const char *key)
{
	const struct pp_mark *p = place_find(k, watcher, key);

	return p && *p->value ? p->value : NULL;
}

static int place_new(struct pp_ledger *k, const char *watcher, const char *key,
		     struct pp_mark **ret)
{
	struct pp_mark *p, **bucket;

	if (k->n_places == PP_LEDGER_PLACES)
		return -E2BIG;
	p = calloc(1, sizeof(*p));
	if (!p || pp_text_set(&p->watcher, watcher) || pp_text_set(&p->key, key) ||
	    pp_text_set(&p->value, "")) {
		place_free(p);
		return -ENOMEM;
	}
	bucket = &k->place[pp_ledger_bucket(k, p->watcher, p->key)];
	p->chain = *bucket;
	*bucket = p;
	k->n_places++;
	*ret = p;
	return 0;
}

int pp_mark_set(struct pp_ledger *k, const char *watcher, const char *key, const char *value)
{
	struct pp_mark *p = place_find(k, watcher, key);
	int r = 0;

	if (!value)
		value = "";
	if (p ? !strcmp(p->value, value) : !*value)
		return 0;
	if (!p)
		r = place_new(k, watcher, key, &p);
	if (!r)
		r = pp_text_set_whole(&p->value, value);
	if (r)
		return r;
	p->dirty = true;
	/* Lines behind an older position are read again, and known by their names. */
	pp_ledger_urge(k, PP_LATER);
	return 0;
}

struct pp_mark *pp_mark_next(const struct pp_ledger *k, const struct pp_mark *after)
{
	size_t i = 0;

	if (after) {
		if (after->chain)
			return after->chain;
		i = pp_ledger_bucket(k, after->watcher, after->key) + 1;
	}
	for (; i < PP_LEDGER_BUCKETS; i++)
		if (k->place[i])
			return k->place[i];
	return NULL;
}

void pp_marks_bury(struct pp_ledger *k)
{
	struct pp_mark **at, *p;

	for (size_t i = 0; i < PP_LEDGER_BUCKETS; i++) {
		for (at = &k->place[i]; (p = *at);) {
			if (*p->value) {
				at = &p->chain;
				continue;
			}
			*at = p->chain;
			place_free(p);
			k->n_places--;
		}
	}
}
