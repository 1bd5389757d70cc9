/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/earlier.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/judge_parts.h"
#include "base/banned.h"

static const int64_t HOUR_NS = (int64_t)3600 * 1000000000;

enum { NAMED = 4 }; /* in a sentence */

static int64_t moved_at(const struct pp_case *c)
{
	return pp_signal_shape(c->kind) == PP_SHAPE_STATE ? c->told_ns : c->last_ns;
}

static struct pp_earlier entry_of(const struct pp_case *c)
{
	struct pp_earlier e = {
		.of = c->id, .kind = c->kind, .level = c->level, .at_ns = moved_at(c)};

	(void)pp_short_text(c->object, e.object, sizeof(e.object));
	return e;
}

/* Into its place, the newest first; one too many falls off the end. */
static void insert(struct pp_earlier *list, size_t *n, const struct pp_earlier *e)
{
	size_t at = *n;

	while (at > 0 && list[at - 1].at_ns < e->at_ns)
		at--;
	if (at == PP_EARLIER_MOST)
		return;
	*n += *n < PP_EARLIER_MOST;
	memmove(list + at + 1, list + at, (*n - at - 1) * sizeof(*list));
	list[at] = *e;
}

static int take(struct pp_case *c, const struct pp_earlier *list, size_t n)
{
	struct pp_earlier *copy = NULL;

	if (n) {
		copy = malloc(n * sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		memcpy(copy, list, n * sizeof(*copy));
	}
	free(c->earlier);
	c->earlier = copy;
	c->n_earlier = n;
	return 0;
}

int pp_earlier_take(const struct pp_ledger *k, struct pp_case *c, int64_t wall_ns)
{
	struct pp_earlier list[PP_EARLIER_MOST], e;
	size_t n = 0;

	/* Later ones first: of the same moment what came last is nearest. */
	for (size_t i = k->n_cases; i-- > 0;) {
		const struct pp_case *other = k->cases[i];
		int64_t at = moved_at(other);

		if (other == c || other->level < PP_LEVEL_EARLY || at < wall_ns - HOUR_NS ||
		    at > wall_ns)
			continue;
		e = entry_of(other);
		insert(list, &n, &e);
	}
	return take(c, list, n);
}

int pp_earlier_add(struct pp_case *c, const struct pp_earlier *e)
{
	struct pp_earlier list[PP_EARLIER_MOST];

	if (c->n_earlier == PP_EARLIER_MOST)
		return -E2BIG;
	if (c->n_earlier)
		memcpy(list, c->earlier, c->n_earlier * sizeof(*list));
	list[c->n_earlier] = *e;
	return take(c, list, c->n_earlier + 1);
}

void pp_earlier_write(struct pp_json *j, enum pp_signal_level level, const struct pp_earlier *list,
		      size_t n)
{
	char at[32];

	if (!n && level != PP_LEVEL_ALARM) {
		pp_json_null(j, "earlier");
		return;
	}
	pp_json_array(j, "earlier");
	for (size_t i = 0; i < n; i++) {
		pp_json_object(j, NULL);
		pp_json_u64(j, "signal", list[i].of);
		pp_json_str(j, "kind", pp_signal_key(list[i].kind));
		pp_json_str(j, "object", list[i].object);
		pp_json_str(j, "level", pp_level_name(list[i].level));
		pp_json_str(j, "at", pp_clock_format(list[i].at_ns, at, sizeof(at)));
		pp_json_end_object(j);
	}
	pp_json_end_array(j);
}

const char *pp_earlier_text(const struct pp_earlier *list, size_t n, char *text, size_t size)
{
	size_t used = 0;
	char at[32];
	int r = 0;

	*text = '\0';
	for (size_t i = 0; i < n && i < NAMED && r >= 0 && used + (size_t)r < size; i++) {
		used += (size_t)r;
		r = snprintf(text + used, size - used, "%s%s of %s (%s, %s)", i ? ", " : "",
			     pp_signal_key(list[i].kind), list[i].object,
			     pp_level_name(list[i].level),
			     pp_clock_format(list[i].at_ns, at, sizeof(at)));
	}
	used += r > 0 ? (size_t)r : 0;
	if (n > NAMED && used < size)
		(void)snprintf(text + used, size - used, " and %zu more", n - NAMED);
	return text;
}
