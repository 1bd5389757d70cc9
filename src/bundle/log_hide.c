/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/log_hide.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "node/environment.h"
#include "base/banned.h"

enum { NAME_MOST = 128, NAME_LEAST = 3 };

static const char HIDDEN[] = "(hidden)";

static bool is_upper(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_word(char c)
{
	return is_upper(c) || (c >= 'a' && c <= 'z');
}

static size_t begins(const char *at, const char *end, const char *with)
{
	size_t n = strlen(with);

	return (size_t)(end - at) >= n && !memcmp(at, with, n) ? n : 0;
}

/* What stands between a variable's name and its value; 0: it is no variable. */
static size_t between(const char *at, const char *end)
{
	static const char *const ways[] = {
		"=\"", "='", "=", "\": \"", "': '", ": ", " set by environment to "};
	size_t n = 0;

	for (size_t i = 0; !n && i < PP_ARRAY_LEN(ways); i++)
		n = begins(at, end, ways[i]);
	return n;
}

/* A value that goes on to the end of its line, or to what it was quoted by. */
static size_t value_length(const char *at, const char *end, char before)
{
	const char *stops = before == '"' ? "\"\n" : before == '\'' ? "'\n" : " \t\n,;";
	size_t n = 0;

	while (at + n < end && (!strchr(stops, at[n]) || !at[n]))
		n++;
	return n;
}

/* An upper-case word at @at that names a secret: its length with what is behind it; else 0. */
static size_t secret_at(const char *at, const char *end)
{
	char name[NAME_MOST];
	size_t n = 0, more;

	while (at + n < end && n < sizeof(name) - 1 && is_upper(at[n])) {
		name[n] = at[n];
		n++;
	}
	name[n] = '\0';
	if (n < NAME_LEAST || (at + n < end && is_word(at[n])) || !pp_environment_secret(name))
		return 0;
	more = between(at + n, end);
	return more ? n + more : 0;
}

size_t pp_log_hide(const char *text, size_t len, const char *secret, struct pp_buf *out)
{
	const char *at = text, *end = text + len, *kept = text;
	size_t hidden = 0, own = secret ? strlen(secret) : 0;

	while (at < end) {
		bool fresh = at == text || !is_word(at[-1]);
		size_t head = fresh ? secret_at(at, end) : 0, value = 0;

		if (head)
			value = value_length(at + head, end, at[head - 1]);
		else if (own && begins(at, end, secret))
			value = own;
		if (!value) {
			at++;
			continue;
		}
		pp_buf_add(out, kept, (size_t)(at + head - kept));
		pp_buf_str(out, HIDDEN);
		at += head + value;
		kept = at;
		hidden++;
	}
	pp_buf_add(out, kept, (size_t)(end - kept));
	return hidden;
}
