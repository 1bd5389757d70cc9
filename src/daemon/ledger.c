/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ledger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/ledger_parts.h"
#include "judge/gate.h"
#include "base/banned.h"

const char *pp_ledger_check_name(const char *name)
{
	for (unsigned int i = 0; name && i < PP_GATES; i++)
		if (!strcmp(pp_gate_name((enum pp_gate)i), name))
			return pp_gate_name((enum pp_gate)i);
	return NULL;
}

int pp_ledger_new(const char *node, struct pp_ledger **ret)
{
	struct pp_ledger *k = calloc(1, sizeof(*k));
	unsigned char id[8], run[2];

	if (!k)
		return -ENOMEM;
	k->ring = calloc(PP_LEDGER_NAMED, sizeof(struct pp_event_name *));
	if (!k->ring) {
		free(k);
		return -ENOMEM;
	}
	if (getrandom(k->seed, sizeof(k->seed), 0) != sizeof(k->seed) ||
	    getrandom(id, sizeof(id), 0) != sizeof(id) ||
	    getrandom(run, sizeof(run), 0) != sizeof(run)) {
		pp_ledger_free(k);
		return -EIO;
	}
	for (size_t i = 0; i < sizeof(id); i++)
		(void)snprintf(k->id + 2 * i, 3, "%02x", id[i]);
	(void)snprintf(k->run, sizeof(k->run), "%02x%02x", run[0], run[1]);
	(void)snprintf(k->node, sizeof(k->node), "%s", node ? node : "");
	*ret = k;
	return 0;
}

static void entry_free(struct pp_subject *e)
{
	free(e->object);
	free(e->watcher);
	free(e->base);
	free(e->value);
	free(e->raw);
	free(e->unknown);
	free(e);
}

struct pp_case *pp_case_free(struct pp_case *c)
{
	if (!c)
		return NULL;
	free(c->object);
	free(c->before);
	free(c->after);
	free(c->text);
	free(c->raw);
	free(c->earlier);
	free(c);
	return NULL;
}

struct pp_ledger *pp_ledger_free(struct pp_ledger *k)
{
	struct pp_subject *e;

	if (!k)
		return NULL;
	for (size_t i = 0; i < PP_LEDGER_BUCKETS; i++) {
		while ((e = k->entry[i])) {
			k->entry[i] = e->chain;
			entry_free(e);
		}
	}
	for (size_t i = 0; i < k->n_cases; i++)
		pp_case_free(k->cases[i]);
	free(k->cases);
	pp_ledger_free_events(k);
	free(k->ring);
	free(k);
	return NULL;
}

struct pp_subject *pp_subject_find(const struct pp_ledger *k, enum pp_signal_kind kind,
				   const char *object)
{
	struct pp_subject *e = k->entry[pp_ledger_bucket(k, pp_signal_key(kind), object)];

	for (; e; e = e->chain)
		if (!e->dead && e->kind == kind && !strcmp(e->object, object))
			return e;
	return NULL;
}

int pp_subject_get(struct pp_ledger *k, enum pp_signal_kind kind, const char *object,
		   struct pp_subject **ret)
{
	struct pp_subject *e = pp_subject_find(k, kind, object), **bucket;
	int r;

	if (e) {
		*ret = e;
		return 0;
	}
	if (k->n_subjects >= PP_LEDGER_SUBJECTS)
		return -E2BIG;
	e = calloc(1, sizeof(*e));
	r = e ? pp_text_set(&e->object, object) : -ENOMEM;
	if (r) {
		free(e);
		return r;
	}
	e->kind = kind;
	bucket = &k->entry[pp_ledger_bucket(k, pp_signal_key(kind), e->object)];
	e->chain = *bucket;
	*bucket = e;
	k->n_subjects++;
	*ret = e;
	return 0;
}

struct pp_subject *pp_subject_next(const struct pp_ledger *k, const struct pp_subject *after)
{
	size_t i = 0;

	if (after) {
		if (after->chain)
			return after->chain;
		i = pp_ledger_bucket(k, pp_signal_key(after->kind), after->object) + 1;
	}
	for (; i < PP_LEDGER_BUCKETS; i++)
		if (k->entry[i])
			return k->entry[i];
	return NULL;
}

void pp_ledger_urge(struct pp_ledger *k, enum pp_urgency urgency)
{
	if (urgency > k->urgency)
		k->urgency = urgency;
}

void pp_subject_changed(struct pp_ledger *k, struct pp_subject *e, enum pp_urgency urgency)
{
	e->dirty = true;
	pp_ledger_urge(k, urgency);
}

void pp_subjects_bury(struct pp_ledger *k)
{
	struct pp_subject **at, *e;

	for (size_t i = 0; i < PP_LEDGER_BUCKETS; i++) {
		for (at = &k->entry[i]; (e = *at);) {
			if (!e->dead) {
				at = &e->chain;
				continue;
			}
			*at = e->chain;
			if (e->of)
				pp_case_detach(e->of);
			entry_free(e);
			k->n_subjects--;
		}
	}
}

void pp_case_detach(struct pp_case *c)
{
	if (c->subject)
		c->subject->of = NULL;
	c->subject = NULL;
}

int pp_case_new(struct pp_ledger *k, enum pp_signal_kind kind, const char *object,
		struct pp_case **ret)
{
	struct pp_case **more, *c;
	size_t room = k->room_cases ? 2 * k->room_cases : 64;

	if (k->n_cases == k->room_cases) {
		more = realloc(k->cases, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		k->cases = more;
		k->room_cases = room;
	}
	c = calloc(1, sizeof(*c));
	if (!c || pp_text_set(&c->object, object)) {
		free(c);
		return -ENOMEM;
	}
	c->kind = kind;
	c->id = ++k->last_case;
	k->cases[k->n_cases++] = c;
	*ret = c;
	return 0;
}

struct pp_case *pp_case_find(const struct pp_ledger *k, uint64_t id)
{
	size_t from = 0, to = k->n_cases;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (k->cases[middle]->id == id)
			return k->cases[middle];
		if (k->cases[middle]->id < id)
			from = middle + 1;
		else
			to = middle;
	}
	return NULL;
}

void pp_case_changed(struct pp_ledger *k, struct pp_case *c, enum pp_urgency urgency)
{
	c->dirty = true;
	pp_ledger_urge(k, urgency);
}

void pp_cases_forget(struct pp_ledger *k)
{
	size_t ended = 0, kept = 0;

	for (size_t i = 0; i < k->n_cases; i++)
		ended += k->cases[i]->ended_ns != 0;
	for (size_t i = 0; i < k->n_cases; i++) {
		struct pp_case *c = k->cases[i];

		if (ended <= PP_LEDGER_ENDED || !c->ended_ns || c->dirty) {
			k->cases[kept++] = c;
			continue;
		}
		ended--;
		pp_case_detach(c);
		pp_case_free(c);
	}
	k->n_cases = kept;
}
