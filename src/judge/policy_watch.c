/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/policy_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/banned.h"

static const struct {
	const char *suffix;
	enum pp_policy_watch_part part;
} parts[] = {
	{".above", PP_WATCH_ABOVE},
	{".below", PP_WATCH_BELOW},
	{".for", PP_WATCH_FOR},
};

/* Digits, one point, a minus in front; then nothing, "%", or a unit of bytes. */
static int parse_number(const char *text, double *ret, bool *ret_percent)
{
	size_t sign = *text == '-', digits = strspn(text + sign, "0123456789");
	size_t len = sign + digits, more = 0;
	uint64_t unit = 1;
	char number[32];

	if (text[len] == '.') {
		more = strspn(text + len + 1, "0123456789");
		len += 1 + more;
	}
	if (!digits || (text[sign + digits] == '.' && !more) || len >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, len);
	number[len] = '\0';
	*ret_percent = !strcmp(text + len, "%");
	if (text[len] && !*ret_percent) {
		char size[16] = "1";

		if (strlen(text + len) > 4)
			return -EINVAL;
		memcpy(size + 1, text + len, strlen(text + len) + 1);
		if (pp_parse_size(size, (uint64_t)1 << 50, &unit))
			return -EINVAL;
	}
	*ret = strtod(number, NULL) * (double)unit;
	return 0;
}

static int parse_level(const char *text, unsigned int *ret)
{
	static const char *const words[] = {"info", "early", "alarm"};

	for (unsigned int i = 0; i < PP_ARRAY_LEN(words); i++) {
		if (!strcmp(words[i], text)) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int take_value(struct pp_policy_watch *w, const char *key, const char *value,
		      struct pp_error *err)
{
	if (w->part == PP_WATCH_LEVEL && parse_level(value, &w->level))
		return pp_error_set(err, -EINVAL, "'%s = %s': info, early or alarm", key, value);
	if (w->part == PP_WATCH_FOR &&
	    (pp_parse_duration(value, 7 * 24 * 3600 * PP_SECOND, &w->time) || w->time <= 0))
		return pp_error_set(err, -EINVAL, "'%s = %s': a time up to 7 days, as 90s or 5m",
				    key, value);
	if ((w->part == PP_WATCH_ABOVE || w->part == PP_WATCH_BELOW) &&
	    parse_number(value, &w->number, &w->percent))
		return pp_error_set(err, -EINVAL,
				    "'%s = %s': a number as 0.9, 64MiB, or 150%% of what is normal",
				    key, value);
	return 0;
}

static bool same(const struct pp_policy_watch *a, const struct pp_policy_watch *b)
{
	return a->part == b->part && !strcmp(a->key, b->key) && !a->object == !b->object &&
	       (!a->object || !strcmp(a->object, b->object));
}

int pp_policy_watch_take(struct pp_policy_watches *all, struct pp_arena *arena, const char *key,
			 const char *value, unsigned int line, struct pp_error *err)
{
	struct pp_policy_watch w = {.part = PP_WATCH_LEVEL, .line = line};
	size_t len = strlen(key), name = strcspn(key, "./");
	int r;

	for (size_t i = 0; i < PP_ARRAY_LEN(parts); i++) {
		size_t n = strlen(parts[i].suffix);

		if (len > n && !strcmp(key + len - n, parts[i].suffix)) {
			w.part = parts[i].part;
			len -= n;
			break;
		}
	}
	if (!name || (name < len && key[name] == '.') || name + 1 == len)
		return pp_error_set(err, -EINVAL,
				    "'%s': KEY, KEY.above, KEY.below or KEY.for, and /OBJECT "
				    "behind the key for one object only",
				    key);
	w.key = pp_arena_strn(arena, key, name < len ? name : len);
	w.object = name < len ? pp_arena_strn(arena, key + name + 1, len - name - 1) : NULL;
	r = take_value(&w, key, value, err);
	if (r)
		return r;
	for (size_t i = 0; i < all->n; i++)
		if (same(&all->list[i], &w))
			return pp_error_set(err, -EINVAL, "'%s' is given twice", key);
	if (all->n == PP_POLICY_WATCHES)
		return pp_error_set(err, -EFBIG, "more than %d lines in [monitor]",
				    PP_POLICY_WATCHES);
	all->list[all->n++] = w;
	return 0;
}
