/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/utf8.h"
#include "daemon/watch.h"
#include "base/banned.h"

/* In the arena: one line, no control byte, cut at a whole character of UTF-8. */
static const char *keep(struct pp_arena *a, const char *text)
{
	char copy[PP_LOOK_TEXT];
	size_t n;

	if (!text)
		return NULL;
	n = pp_utf8_fit(text, strnlen(text, sizeof(copy)), sizeof(copy) - 1);
	(void)memcpy(copy, text, n);
	copy[n] = '\0';
	pp_sanitize(copy, false);
	return pp_arena_str(a, copy);
}

/* The array grows by doubling; what it leaves behind goes with the arena. */
static bool make_room(struct pp_looks *l)
{
	size_t room = l->room ? 2 * l->room : 64;
	struct pp_look *grown;

	if (l->n < l->room)
		return true;
	grown = pp_arena_array(l->arena, room, sizeof(*grown));
	if (!grown)
		return false;
	if (l->n)
		(void)memcpy(grown, l->looks, l->n * sizeof(*grown));
	l->looks = grown;
	l->room = room;
	return true;
}

int pp_looks_add(struct pp_looks *into, const struct pp_look *look)
{
	struct pp_look *to;

	if (into->n >= PP_LOOKS_MOST) {
		into->left_out++;
		return 0;
	}
	if (!make_room(into))
		return -ENOMEM;
	to = &into->looks[into->n];
	*to = *look;
	to->object = keep(into->arena, look->object);
	to->value = keep(into->arena, look->value);
	to->unknown = keep(into->arena, look->unknown);
	to->raw = keep(into->arena, look->raw);
	to->named = keep(into->arena, look->named);
	if (into->arena->failed)
		return -ENOMEM;
	into->n++;
	return 0;
}

int pp_look_state(struct pp_looks *into, enum pp_signal_kind kind, const char *object,
		  const char *raw, const char *value_fmt, ...)
{
	char value[PP_LOOK_TEXT];
	va_list ap;

	va_start(ap, value_fmt);
	(void)vsnprintf(value, sizeof(value), value_fmt, ap);
	va_end(ap);
	return pp_looks_add(
		into,
		&(struct pp_look){.kind = kind, .object = object, .value = value, .raw = raw});
}

int pp_look_number(struct pp_looks *into, enum pp_signal_kind kind, const char *object,
		   const char *raw, double number)
{
	if (!isfinite(number))
		return pp_look_unknown(into, kind, object, "no finite number");
	return pp_looks_add(
		into,
		&(struct pp_look){.kind = kind, .object = object, .number = number, .raw = raw});
}

int pp_look_unknown(struct pp_looks *into, enum pp_signal_kind kind, const char *object,
		    const char *why_fmt, ...)
{
	char why[PP_LOOK_TEXT];
	va_list ap;

	va_start(ap, why_fmt);
	(void)vsnprintf(why, sizeof(why), why_fmt, ap);
	va_end(ap);
	return pp_looks_add(into,
			    &(struct pp_look){.kind = kind, .object = object, .unknown = why});
}

int pp_look_event(struct pp_looks *into, enum pp_signal_kind kind, const char *object,
		  const char *named, const char *raw, const char *value)
{
	return pp_looks_add(into, &(struct pp_look){.kind = kind,
						    .object = object,
						    .value = value,
						    .raw = raw,
						    .named = named});
}

void *pp_watch_state(void **state, size_t size)
{
	if (!*state)
		*state = calloc(1, size);
	return *state;
}

const char *pp_watch_recall(const struct pp_watch_context *at, const char *watcher, const char *key)
{
	return at->recall ? at->recall(at->ctx, watcher, key) : NULL;
}

int pp_watch_remember(const struct pp_watch_context *at, const char *watcher, const char *key,
		      const char *value)
{
	return at->remember ? at->remember(at->ctx, watcher, key, value) : 0;
}
