/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identifiers by their shape. Each is taken only where it stands alone, and only in the exact
 * shape that a kernel or a library writes: what merely looks like one is evidence.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "bundle/scrub_text.h"
#include "base/banned.h"

enum { RUN_MAX = 64, GROUPS_MAX = 20, UUID_LEN = 36 };

int pp_scrub_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool pp_scrub_is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool pp_scrub_is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

static bool ends_at(const struct pp_scrub_text *s, const char *p)
{
	return p == s->end || !pp_scrub_is_word(*p);
}

/* Writes text in the case that the original had. */
static void put(struct pp_scrub_text *s, char *text, const char *original, size_t len)
{
	bool upper = false;

	for (size_t i = 0; i < len; i++)
		upper |= original[i] >= 'A' && original[i] <= 'F';
	for (char *p = text; upper && *p; p++)
		if (*p >= 'a' && *p <= 'f')
			*p = (char)(*p - 'a' + 'A');
	pp_buf_str(s->out, text);
	s->replaced++;
}

size_t pp_scrub_try_uuid(struct pp_scrub_text *s, const char *at)
{
	static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	char text[UUID_LEN + 1];
	uint8_t uuid[16] = {0};
	size_t n = 0;

	if (s->end - at < UUID_LEN || !ends_at(s, at + UUID_LEN))
		return 0;
	for (size_t i = 0; i < UUID_LEN; i++) {
		if ((shape[i] == '-') != (at[i] == '-') ||
		    (shape[i] == 'x' && pp_scrub_digit(at[i]) < 0))
			return 0;
		if (shape[i] == 'x') {
			uuid[n / 2] = (uint8_t)(uuid[n / 2] << 4 | pp_scrub_digit(at[i]));
			n++;
		}
	}
	pp_scrub_uuid(s->map, uuid);
	n = 0;
	for (size_t i = 0; i < UUID_LEN; i++) {
		text[i] = '-';
		if (shape[i] == 'x') {
			text[i] = "0123456789abcdef"[n % 2 ? uuid[n / 2] & 15 : uuid[n / 2] >> 4];
			n++;
		}
	}
	text[UUID_LEN] = '\0';
	put(s, text, at, UUID_LEN);
	return UUID_LEN;
}

/* "aa:bb:..." as groups of @digits digits; the number of groups, or 0 for another shape. */
static size_t groups(const char *run, size_t len, char separator, size_t digits, uint8_t *ret)
{
	size_t n = 0, bytes = digits / 2;

	for (size_t i = 0; i + digits <= len && n < GROUPS_MAX; i += digits + 1, n++) {
		for (size_t d = 0; d < digits; d++) {
			uint8_t *to = &ret[n * bytes + d / 2];
			int v = pp_scrub_digit(run[i + d]);

			if (v < 0)
				return 0;
			*to = (uint8_t)(*to << 4 | v);
		}
		if (i + digits == len)
			return n + 1;
		if (run[i + digits] != separator)
			return 0;
	}
	return 0;
}

static void ungroup(const uint8_t *bytes, size_t n, char separator, size_t digits, char *text)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		if (i && i % (digits / 2) == 0)
			text[at++] = separator;
		text[at++] = "0123456789abcdef"[bytes[i] >> 4];
		text[at++] = "0123456789abcdef"[bytes[i] & 15];
	}
	text[at] = '\0';
}

static void scrub_eui64(struct pp_scrub_map *m, uint8_t eui[8])
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | eui[i];
	v = pp_scrub_guid(m, v);
	for (int i = 7; i >= 0; i--, v >>= 8)
		eui[i] = (uint8_t)v;
}

/* Bytes: a MAC address (6), an EUI-64 (8), a GID (16), an IPoIB address (20). */
static bool scrub_bytes(struct pp_scrub_map *m, uint8_t *bytes, size_t n)
{
	switch (n) {
	case 6:
		pp_scrub_mac(m, bytes);
		return true;
	case 8:
		scrub_eui64(m, bytes);
		return true;
	case 16:
		pp_scrub_ipv6(m, bytes);
		return true;
	case 20: /* flags and queue pair, then the GID */
		pp_scrub_ipv6(m, bytes + 4);
		return true;
	default:
		return false;
	}
}

static size_t try_bytes(struct pp_scrub_text *s, const char *at, size_t len, char separator)
{
	uint8_t bytes[GROUPS_MAX] = {0};
	char text[RUN_MAX];
	size_t n = groups(at, len, separator, 2, bytes);

	if (!n || !scrub_bytes(s->map, bytes, n))
		return 0;
	ungroup(bytes, n, separator, 2, text);
	put(s, text, at, len);
	return len;
}

/* Groups of four digits: a GUID (4 groups) or a GID (8). */
static size_t try_words(struct pp_scrub_text *s, const char *at, size_t len)
{
	uint8_t bytes[2 * GROUPS_MAX] = {0};
	char text[RUN_MAX];
	size_t n = groups(at, len, ':', 4, bytes);

	if (n == 4)
		scrub_eui64(s->map, bytes);
	else if (n == 8)
		pp_scrub_ipv6(s->map, bytes);
	else
		return 0;
	ungroup(bytes, 2 * n, ':', 4, text);
	put(s, text, at, len);
	return len;
}

/* Any other form that inet_pton() knows; a list of single digits is no address. */
static size_t try_ipv6(struct pp_scrub_text *s, const char *at, size_t len)
{
	uint8_t address[16], before[16];
	char text[RUN_MAX];
	size_t longest = 0, group = 0;
	bool compressed = false;

	for (size_t i = 0; i < len; i++) {
		group = at[i] == ':' ? 0 : group + 1;
		longest = group > longest ? group : longest;
		compressed |= i && at[i] == ':' && at[i - 1] == ':';
	}
	memcpy(text, at, len);
	text[len] = '\0';
	if ((longest < 3 && !compressed) || inet_pton(AF_INET6, text, address) != 1)
		return 0;
	memcpy(before, address, sizeof(before));
	pp_scrub_ipv6(s->map, address);
	if (!memcmp(before, address, sizeof(before)))
		pp_buf_add(s->out, at, len);
	else if (inet_ntop(AF_INET6, address, text, sizeof(text)))
		put(s, text, at, len);
	return len;
}

/* Digits, colons, dots and dashes from @at on, without the end of a sentence or of a label. */
static size_t run_length(const struct pp_scrub_text *s, const char *at)
{
	size_t len = 0;

	while (at + len < s->end && len < RUN_MAX &&
	       (pp_scrub_digit(at[len]) >= 0 || pp_scrub_is_one_of(at[len], ":.-")))
		len++;
	if (len == RUN_MAX)
		return 0;
	while (len && (at[len - 1] == '.' || at[len - 1] == '-' ||
		       (at[len - 1] == ':' && (len < 2 || at[len - 2] != ':'))))
		len--;
	return ends_at(s, at + len) ? len : 0;
}

static size_t count(const char *text, size_t len, char c)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += text[i] == c;
	return n;
}

size_t pp_scrub_try_colons(struct pp_scrub_text *s, const char *at)
{
	size_t len = run_length(s, at), colons = count(at, len, ':'), n;

	/* "a::b::" is no address, so neither is its end. */
	if (at - s->start > 1 && at[-1] == ':' && at[-2] == ':')
		return 0;
	if (!colons && count(at, len, '-') >= 5)
		return try_bytes(s, at, len, '-');
	if (colons < 2)
		return 0;
	n = try_bytes(s, at, len, ':');
	if (!n)
		n = try_words(s, at, len);
	return n ? n : try_ipv6(s, at, len);
}

/* "version 1.14.44.0" is no address. */
static bool after_version(const struct pp_scrub_text *s, const char *at)
{
	static const char *const words[] = {"version", "ver", "firmware", "fw", "release", "rev"};
	const char *p = at;
	size_t len;

	while (p > s->start && pp_scrub_is_one_of(p[-1], " \t:=\"'.#v"))
		p--;
	for (size_t i = 0; i < PP_ARRAY_LEN(words); i++) {
		len = strlen(words[i]);
		if ((size_t)(p - s->start) >= len && !strncasecmp(p - len, words[i], len))
			return true;
	}
	return false;
}

static bool private_network(uint32_t a)
{
	return a >> 24 == 10 || a >> 20 == 0xac1 || a >> 16 == 0xc0a8;
}

/* Four numbers with dots at @at; the length, or 0. */
static size_t dotted(const struct pp_scrub_text *s, const char *at, uint32_t *ret)
{
	char text[16];
	struct in_addr a;
	size_t len = 0;

	while (at + len < s->end && len < sizeof(text) - 1 &&
	       ((at[len] >= '0' && at[len] <= '9') || at[len] == '.')) {
		text[len] = at[len];
		len++;
	}
	while (len && at[len - 1] == '.')
		len--;
	text[len] = '\0';
	if (inet_pton(AF_INET, text, &a) != 1 || !ends_at(s, at + len))
		return 0;
	*ret = ntohl(a.s_addr);
	return len;
}

/* Part of a version ("5.8-1.1.2.1", "so.1.14.44.0", "1.1.9.0-2"), by what is around it. */
static bool in_version(const struct pp_scrub_text *s, const char *at, size_t len, uint32_t address)
{
	char before = at > s->start ? at[-1] : ' ';
	char after = at + len < s->end ? at[len] : ' ';

	if (before == '.' || before == '_' || after == '_')
		return true;
	/* but "10.0.0.1-10.0.0.9" is a range of addresses */
	if (before == '-' && at - 1 != s->address_end)
		return true;
	if (after == '-' && !private_network(address))
		return true;
	return s->versions || after_version(s, at);
}

size_t pp_scrub_try_ipv4(struct pp_scrub_text *s, const char *at)
{
	uint32_t address = 0, to;
	size_t len = dotted(s, at, &address);

	if (!len || in_version(s, at, len, address))
		return 0;
	s->address_end = at + len;
	to = pp_scrub_ipv4(s->map, address);
	if (to == address) {
		pp_buf_add(s->out, at, len);
		return len;
	}
	pp_buf_printf(s->out, "%u.%u.%u.%u", to >> 24, to >> 16 & 255, to >> 8 & 255, to & 255);
	s->replaced++;
	return len;
}

/* 32 digits (a machine id) and 64 (a container) are hashed; but a digest of content is kept. */
static size_t hash_hex(struct pp_scrub_text *s, const char *at, size_t len)
{
	static const char digest[] = "sha256:";
	size_t before = (size_t)(at - s->start);
	char text[RUN_MAX + 1];
	uint64_t h;

	if (len == 64 && before >= sizeof(digest) - 1 &&
	    !memcmp(at - (sizeof(digest) - 1), digest, sizeof(digest) - 1))
		return 0;
	if (strspn(at, "0") >= len || strspn(at, "fF") >= len)
		return 0;
	h = pp_scrub_hash(s->map, 'x', at, len);
	for (uint64_t i = 0; i < len; i += 16) {
		const uint64_t in[2] = {h, i};

		(void)snprintf(text + i, sizeof(text) - i, "%016llx",
			       (unsigned long long)pp_scrub_hash(s->map, 'y', in, sizeof(in)));
	}
	put(s, text, at, len);
	return len;
}

/* A GUID or a MAC address without separators, if it was seen with them. */
static size_t known_hex(struct pp_scrub_text *s, const char *at, size_t len, uint64_t v)
{
	uint8_t mac[6];
	char text[20];

	if ((len != 12 && len != 16) || !pp_scrub_known(s->map, v))
		return 0;
	if (len == 16) {
		v = pp_scrub_guid(s->map, v);
	} else {
		for (int i = 5; i >= 0; i--, v >>= 8)
			mac[i] = (uint8_t)v;
		pp_scrub_mac(s->map, mac);
		for (int i = 0; i < 6; i++)
			v = v << 8 | mac[i];
	}
	(void)snprintf(text, sizeof(text), "%0*llx", (int)len, (unsigned long long)v);
	put(s, text, at, len);
	return len;
}

size_t pp_scrub_try_hex(struct pp_scrub_text *s, const char *at)
{
	bool prefix = s->end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
	const char *digits = prefix ? at + 2 : at;
	size_t len = 0, before = s->out->len;
	uint64_t v = 0;

	while (digits + len < s->end && len <= RUN_MAX && pp_scrub_digit(digits[len]) >= 0)
		v = v << 4 | (uint64_t)pp_scrub_digit(digits[len++]);
	if (!ends_at(s, digits + len))
		return 0;
	if ((len == 32 || len == 64) && !prefix)
		return hash_hex(s, at, len);
	if (prefix)
		pp_buf_add(s->out, at, 2);
	len = known_hex(s, digits, len, v);
	if (!len) {
		s->out->len = before;
		return 0;
	}
	return len + (prefix ? 2 : 0);
}
