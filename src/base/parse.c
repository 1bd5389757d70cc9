/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/banned.h"

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

/* Digits of @base from *text on; *text moves behind them. */
static int scan(const char **text, unsigned int base, uint64_t *ret)
{
	const char *p = *text;
	uint64_t v = 0;

	if ((unsigned int)digit_value(*p) >= base)
		return -EINVAL;
	for (; (unsigned int)digit_value(*p) < base; p++)
		if (__builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit_value(*p), &v))
			return -ERANGE;
	*text = p;
	*ret = v;
	return 0;
}

int pp_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t v;
	int r = scan(&text, 10, &v);

	if (r)
		return r;
	if (*text)
		return -EINVAL;
	if (v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int pp_parse_i64(const char *text, int64_t min, int64_t max, int64_t *ret)
{
	bool negative = *text == '-';
	uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX, v;
	int64_t value;
	int r = pp_parse_u64(text + negative, 0, limit, &v);

	if (r)
		return r;
	value = negative ? (int64_t)(0 - v) : (int64_t)v;
	if (value < min || value > max)
		return -ERANGE;
	*ret = value;
	return 0;
}

int pp_parse_hex(const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t v;
	int r;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		text += 2;
	r = scan(&text, 16, &v);
	if (r)
		return r;
	if (*text)
		return -EINVAL;
	if (v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int pp_parse_size(const char *text, uint64_t max, uint64_t *ret_bytes)
{
	static const char units[] = "KMGT";
	unsigned int shift = 0;
	const char *unit;
	uint64_t v;
	int r = scan(&text, 10, &v);

	if (r)
		return r;
	if (*text) {
		unit = strchr(units, toupper((unsigned char)*text));
		if (!unit)
			return -EINVAL;
		shift = 10 * (unsigned int)(unit - units + 1);
		text++;
		if (strcmp(text, "") != 0 && strcmp(text, "B") != 0 && strcmp(text, "iB") != 0)
			return -EINVAL;
	}
	if (__builtin_mul_overflow(v, (uint64_t)1 << shift, &v) || v > max)
		return -ERANGE;
	*ret_bytes = v;
	return 0;
}

int pp_parse_duration(const char *text, pp_ns max, pp_ns *ret)
{
	static const struct {
		const char *unit;
		pp_ns ns;
	} units[] = {{"", PP_SECOND},	    {"s", PP_SECOND},	     {"ms", PP_MILLISECOND},
		     {"m", 60 * PP_SECOND}, {"h", 3600 * PP_SECOND}, {"d", 86400 * PP_SECOND}};
	uint64_t v;
	pp_ns ns;
	int r = scan(&text, 10, &v);

	if (r)
		return r;
	for (size_t i = 0; i < PP_ARRAY_LEN(units); i++) {
		if (strcmp(text, units[i].unit) != 0)
			continue;
		if (__builtin_mul_overflow(v, units[i].ns, &ns) || ns > max)
			return -ERANGE;
		*ret = ns;
		return 0;
	}
	return -EINVAL;
}

int pp_parse_bool(const char *text, bool *ret)
{
	static const char *const yes[] = {"yes", "on", "true", "1", "y"};
	static const char *const no[] = {"no", "off", "false", "0", "n"};

	for (size_t i = 0; i < PP_ARRAY_LEN(yes); i++) {
		if (!strcasecmp(text, yes[i])) {
			*ret = true;
			return 0;
		}
		if (!strcasecmp(text, no[i])) {
			*ret = false;
			return 0;
		}
	}
	return -EINVAL;
}

char *pp_trim(char *text)
{
	size_t len;

	while (isspace((unsigned char)*text))
		text++;
	len = strlen(text);
	while (len && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
	return text;
}

bool pp_is_text(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if (c == 0x7f || (c < 0x20 && c != '\n' && c != '\t' && c != '\r'))
			return false;
	}
	return true;
}

void pp_sanitize(char *text, bool keep_lines)
{
	for (unsigned char *p = (unsigned char *)text; *p; p++) {
		if (keep_lines && (*p == '\n' || *p == '\t'))
			continue;
		if (*p < 0x20 || *p == 0x7f)
			*p = '?';
		/* U+0080 to U+009F: terminals obey these too (U+009B is ESC [). */
		if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0)
			p[0] = p[1] = '?';
	}
}
