/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/derived_measured.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/find.h"
#include "base/parse.h"
#include "base/banned.h"

enum { WORD = 64, WORDS = 12 };

static const char *const watched[] = {
	"active_mtu", "active mtu", "nccl version", "ffff:", "hca_id:", "_prio", "watchdog caught"};

const char *pp_derived_word(unsigned int i)
{
	const char *word;

	if (i < PP_ARRAY_LEN(watched))
		return watched[i];
	i -= PP_ARRAY_LEN(watched);
	word = pp_derived_nccl_word(i);
	if (word)
		return word;
	for (unsigned int n = 0; pp_derived_nccl_word(n); n++)
		i--;
	word = pp_derived_launch_word(i);
	if (word)
		return word;
	for (unsigned int n = 0; pp_derived_launch_word(n); n++)
		i--;
	word = pp_derived_shell_word(i);
	if (word)
		return word;
	for (unsigned int n = 0; pp_derived_shell_word(n); n++)
		i--;
	return pp_derived_measured_word(i);
}

void pp_derived_init(struct pp_derived *d)
{
	memset(d, 0, sizeof(*d));
	for (unsigned int i = 0; i < 8; i++)
		d->first[0][i] = d->first[1][i] = -1;
}

void pp_derived_say(struct pp_derived *d, enum pp_derived_which which, uint64_t line,
		    const char *fmt, ...)
{
	va_list ap;

	if (d->line[which])
		return;
	va_start(ap, fmt);
	(void)vsnprintf(d->sentence[which], PP_DERIVED_SENTENCE, fmt, ap);
	va_end(ap);
	d->line[which] = line;
}

const char *pp_derived_behind(const char *text, size_t len, const char *word)
{
	const char *at = pp_find(text, len, word, strlen(word));

	return at ? at + strlen(word) : NULL;
}

int64_t pp_derived_number(const char **p, const char *end)
{
	int64_t value = 0;
	int n = 0;

	for (; *p < end && !isdigit((unsigned char)**p); (*p)++)
		if (**p != ' ' && **p != '\t' && n++ == 8)
			return -1;
	if (*p == end)
		return -1;
	for (n = 0; *p < end && isdigit((unsigned char)**p) && n < 18; (*p)++, n++)
		value = value * 10 + (**p - '0');
	return value;
}

/* Ports of several devices of one node differ by right: only those of one name are compared. */
static void read_device(struct pp_derived *d, const char *text, size_t len)
{
	const char *at = pp_derived_behind(text, len, "hca_id:"), *end = text + len;
	size_t n = 0;

	while (at && at < end && isspace((unsigned char)*at))
		at++;
	while (at && at + n < end && !isspace((unsigned char)at[n]) && n + 1 < sizeof(d->device[0]))
		n++;
	if (!n)
		return;
	memcpy(d->device[0], at, n);
	d->device[0][n] = '\0';
}

static void read_mtu(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	const char *at = pp_derived_behind(text, len, "active_mtu"), *end = text + len;
	int64_t mtu;

	if (!at)
		at = pp_derived_behind(text, len, "active mtu");
	if (!at)
		return;
	mtu = pp_derived_number(&at, end);
	if (mtu < 256 || mtu > 9000)
		return;
	if (!d->mtu[0]) {
		d->mtu[0] = mtu;
		memcpy(d->device[1], d->device[0], sizeof(d->device[0]));
	}
	if (d->mtu[0] == mtu || strcmp(d->device[0], d->device[1]) != 0)
		return;
	pp_derived_say(d, PP_DERIVED_MTU, line,
		       "peerpath: active MTU differs: %" PRId64 " and %" PRId64, d->mtu[0], mtu);
}

/* NCCL's own line, behind a logger's head at most; not a sentence of somebody who tells of it. */
static bool stands_alone(const char *text, const char *at)
{
	static const char HEAD[] = "NCCL INFO";

	while (at > text && isspace((unsigned char)at[-1]))
		at--;
	if (at == text || strchr(":>)]|", at[-1]))
		return true;
	return (size_t)(at - text) >= strlen(HEAD) &&
	       !memcmp(at - strlen(HEAD), HEAD, strlen(HEAD));
}

static void read_version(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	static const char BANNER[] = "NCCL version ";
	const char *at = pp_derived_behind(text, len, BANNER), *end = text + len;
	const char *at_word = at ? at - strlen(BANNER) : NULL;
	char version[PP_DERIVED_VERSION];
	size_t n = 0;

	while (at && at < end && n + 1 < sizeof(version) &&
	       (isdigit((unsigned char)*at) || *at == '.'))
		version[n++] = *at++;
	while (n && version[n - 1] == '.')
		n--;
	version[n] = '\0';
	if (n < 3 || !stands_alone(text, at_word))
		return;
	if (!d->version[0][0])
		memcpy(d->version[0], version, sizeof(version));
	if (!strcmp(d->version[0], version))
		return;
	pp_derived_say(d, PP_DERIVED_VERSION_DIFFERS, line,
		       "peerpath: NCCL version differs: %s and %s", d->version[0], version);
}

/* Cuts a line into words; returns their number. */
static unsigned int split(const char *text, size_t len, char words[WORDS][WORD])
{
	const char *end = text + len, *start;
	unsigned int n = 0;

	while (text < end && n < WORDS) {
		while (text < end && isspace((unsigned char)*text))
			text++;
		for (start = text; text < end && !isspace((unsigned char)*text); text++)
			;
		if (text > start)
			(void)snprintf(words[n++], WORD, "%.*s", (int)(text - start), start);
	}
	return n;
}

/* show_gids: DEV PORT INDEX GID IPv4 VER NETDEV */
static void read_gid(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	char words[WORDS][WORD], key[sizeof(d->gids[0].key)];
	uint64_t port, index;
	const char *type = "";
	unsigned int n;

	if (!pp_derived_behind(text, len, "ffff:"))
		return;
	n = split(text, len < 400 ? len : 400, words);
	if (n < 4 || pp_parse_u64(words[1], 1, 255, &port) ||
	    pp_parse_u64(words[2], 0, 4096, &index) || !strstr(words[3], "ffff:"))
		return;
	for (unsigned int i = 4; i < n; i++)
		if (!strcmp(words[i], "v1") || !strcmp(words[i], "v2"))
			type = words[i];
	(void)snprintf(key, sizeof(key), "%.30s/%u %.45s %.2s", words[0], (unsigned int)port,
		       words[3], type);
	for (unsigned int i = 0; i < d->n_gids; i++) {
		if (strcmp(d->gids[i].key, key) != 0)
			continue;
		if (d->gids[i].index != index)
			pp_derived_say(d, PP_DERIVED_GID, line,
				       "peerpath: GID moved: %s %s from index %u to %u", words[3],
				       type, d->gids[i].index, (unsigned int)index);
		return;
	}
	if (d->n_gids == PP_DERIVED_GIDS)
		return;
	memcpy(d->gids[d->n_gids].key, key, sizeof(key));
	d->gids[d->n_gids++].index = (unsigned int)index;
}

/* The next word. */
static bool next_is(const char *at, const char *end, const char *word)
{
	while (at < end && *at == ' ')
		at++;
	return (size_t)(end - at) >= strlen(word) && !memcmp(at, word, strlen(word));
}

static int64_t grown(const struct pp_derived *d, unsigned int direction, unsigned int priority)
{
	return d->first[direction][priority] < 0
		       ? 0
		       : d->last[direction][priority] - d->first[direction][priority];
}

/* ethtool's counters, twice, or "A -> B" in one line. */
static void read_priority(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	static const char *const words[] = {"rx_prio", "tx_prio"};
	const char *end = text + len, *at;
	unsigned int priority;
	int64_t value;

	for (unsigned int way = 0; way < 2; way++) {
		at = pp_derived_behind(text, len, words[way]);
		if (!at || at == end || *at < '0' || *at > '7')
			continue;
		priority = (unsigned int)(*at++ - '0');
		if (end - at < 8 || memcmp(at, "_packets", 8) != 0)
			continue;
		at += 8;
		for (unsigned int i = 0; i < 2 && (value = pp_derived_number(&at, end)) >= 0; i++) {
			if (d->first[way][priority] < 0)
				d->first[way][priority] = value;
			d->last[way][priority] = value;
			if (!next_is(at, end, "->"))
				break;
		}
	}
	for (priority = 1; priority < 8; priority++)
		if (grown(d, 1, priority) > 10000 && grown(d, 0, 0) > grown(d, 1, priority) / 10 &&
		    grown(d, 0, priority) < grown(d, 0, 0) / 10)
			pp_derived_say(
				d, PP_DERIVED_PRIORITY, line,
				"peerpath: receive in priority 0 while sending in priority %u",
				priority);
}

void pp_derived_read(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	read_device(d, text, len);
	read_mtu(d, text, len, line);
	read_version(d, text, len, line);
	read_gid(d, text, len, line);
	read_priority(d, text, len, line);
	pp_derived_read_measured(d, text, len, line);
	pp_derived_read_steps(d, text, len, line);
	pp_derived_read_nccl(d, text, len, line);
	pp_derived_read_launch(d, text, len, line);
	pp_derived_read_shell(d, text, len, line);
}

const char *pp_derived_sentence(const struct pp_derived *d, unsigned int i, uint64_t *ret_line)
{
	if (i >= PP_ARRAY_LEN(d->sentence) || !d->line[i])
		return NULL;
	*ret_line = d->line[i];
	return d->sentence[i];
}
