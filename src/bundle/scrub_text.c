/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/scrub_text.h"

#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/banned.h"

enum { NAME_MAX_LEN = 64, SERIAL_MIN = 4, SERIAL_MAX = 64 };

/* What may belong to a user's or a host's name. */
static bool is_name(char c)
{
	return pp_scrub_is_word(c) || c == '-' || c == '_' || c == '.';
}

static size_t name_length(const struct pp_scrub_text *s, const char *at)
{
	size_t len = 0;

	while (at + len < s->end && len < NAME_MAX_LEN && is_name(at[len]))
		len++;
	while (len && !pp_scrub_is_word(at[len - 1]))
		len--;
	return len;
}

static void put_word(struct pp_scrub_text *s, enum pp_scrub_class class, const char *at, size_t len)
{
	pp_buf_str(s->out, pp_scrub_learn(s->map, class, at, len, true));
	s->replaced++;
}

static bool begins(const struct pp_scrub_text *s, const char *at, const char *with)
{
	size_t len = strlen(with);

	return (size_t)(s->end - at) >= len && !strncasecmp(at, with, len);
}

/* "/home/NAME": the name is learned. */
static size_t try_home(struct pp_scrub_text *s, const char *at)
{
	static const char home[] = "/home/";
	size_t len;

	if (!begins(s, at, home))
		return 0;
	len = name_length(s, at + sizeof(home) - 1);
	if (!len)
		return 0;
	pp_buf_str(s->out, home);
	put_word(s, PP_SCRUB_USER, at + sizeof(home) - 1, len);
	return sizeof(home) - 1 + len;
}

/* "user@1000.service" is a unit of systemd, "image@sha256:..." a digest: no user at a host. */
static bool is_no_host(const char *host, size_t len)
{
	static const char *const suffixes[] = {".service", ".slice", ".scope", ".socket", ".mount"};
	size_t n;

	for (size_t i = 0; i < PP_ARRAY_LEN(suffixes); i++) {
		n = strlen(suffixes[i]);
		if (len > n && !memcmp(host + len - n, suffixes[i], n))
			return true;
	}
	return (host[0] >= '0' && host[0] <= '9') || (len == 6 && !memcmp(host, "sha256", len));
}

/* "user@host", as in the kernel's build string. */
static size_t try_at_sign(struct pp_scrub_text *s, const char *at)
{
	size_t user = name_length(s, at), host;

	if (!user || at + user >= s->end || at[user] != '@')
		return 0;
	host = name_length(s, at + user + 1);
	if (!host || is_no_host(at + user + 1, host))
		return 0;
	put_word(s, PP_SCRUB_USER, at, user);
	pp_buf_char(s->out, '@');
	put_word(s, PP_SCRUB_HOST, at + user + 1, host);
	return user + 1 + host;
}

/* Length of "Serial Number: ", "serial=" and the like, or 0. */
static size_t serial_label(const struct pp_scrub_text *s, const char *at)
{
	static const char *const labels[] = {"serial number", "serial_number", "serialnumber",
					     "serial no", "serial"};
	bool divided = false;
	size_t len = 0;

	for (size_t i = 0; i < PP_ARRAY_LEN(labels) && !len; i++)
		if (begins(s, at, labels[i]))
			len = strlen(labels[i]);
	if (!len)
		return 0;
	for (; at + len < s->end && pp_scrub_is_one_of(at[len], ".:= \t\""); len++)
		divided |= at[len] == ':' || at[len] == '=';
	return divided ? len : 0;
}

/* The label stays, what follows it keeps its shape. */
static size_t try_serial(struct pp_scrub_text *s, const char *at)
{
	size_t label = serial_label(s, at), len = 0;
	const char *value = at + label;
	bool digit = false;

	while (label && value + len < s->end && is_name(value[len]) && len < SERIAL_MAX) {
		digit |= value[len] >= '0' && value[len] <= '9';
		len++;
	}
	if (len < SERIAL_MIN || !digit)
		return 0;
	pp_buf_add(s->out, at, label);
	put_word(s, PP_SCRUB_SERIAL, value, len);
	return label + len;
}

static size_t try_words(struct pp_scrub_text *s, const char *at)
{
	const struct pp_scrub_word *w = pp_scrub_word_at(s->map, at, (size_t)(s->end - at));

	if (!w || (at + w->len < s->end && pp_scrub_is_word(at[w->len])))
		return 0;
	pp_buf_str(s->out, w->to);
	s->replaced++;
	return w->len;
}

/* @at begins a word: letters or digits after something else. */
static size_t try_at_word(struct pp_scrub_text *s, const char *at)
{
	size_t n = try_at_sign(s, at);

	n = n ? n : pp_scrub_try_interface(s, at);
	n = n ? n : try_words(s, at);
	if (!n && (*at == 's' || *at == 'S'))
		n = try_serial(s, at);
	if (!n && pp_scrub_digit(*at) >= 0) {
		n = pp_scrub_try_uuid(s, at);
		n = n ? n : pp_scrub_try_colons(s, at);
		n = n ? n : pp_scrub_try_ipv4(s, at);
		n = n ? n : pp_scrub_try_hex(s, at);
	}
	return n;
}

/* May a matcher look here? In the middle of a word nothing begins. */
static bool can_begin(const struct pp_scrub_text *s, const char *at)
{
	bool fresh = at == s->start || !pp_scrub_is_word(at[-1]);

	if (pp_scrub_is_word(*at))
		return fresh;
	return *at == '/' || (fresh && *at == ':' && s->end - at > 1 && at[1] == ':');
}

static size_t try_all(struct pp_scrub_text *s, const char *at)
{
	if (*at == '/')
		return try_home(s, at);
	return *at == ':' ? pp_scrub_try_colons(s, at) : try_at_word(s, at);
}

void pp_scrub_text(struct pp_scrub_text *s, const char *text, size_t len, struct pp_buf *out)
{
	const char *kept = text, *at;
	size_t n;

	s->start = text;
	s->end = text + len;
	s->address_end = NULL;
	s->out = out;
	for (at = text; at < s->end; at += n ? n : 1) {
		n = 0;
		if (!can_begin(s, at))
			continue;
		/* a matcher writes behind what was kept */
		pp_buf_add(out, kept, (size_t)(at - kept));
		kept = at;
		n = try_all(s, at);
		kept += n;
	}
	pp_buf_add(out, kept, (size_t)(s->end - kept));
}
