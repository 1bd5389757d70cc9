/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/message.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/find.h"
#include "base/banned.h"

enum { LONG = 256, STAMP_WITHIN = 400 };

void pp_lines_init(struct pp_lines *l, pp_line_handler *handler, void *arg)
{
	l->handler = handler;
	l->arg = arg;
	l->line = 1;
	l->kept = 0;
}

/* Bytes of a terminal sequence that starts at @p (ESC); at least 1. */
static size_t sequence(const char *p, size_t len)
{
	size_t n = 2;

	if (len < 2)
		return len;
	if (p[1] == '[') {
		while (n < len && (unsigned char)p[n] >= 0x20 && (unsigned char)p[n] < 0x40)
			n++;
		return n < len ? n + 1 : len;
	}
	if (p[1] == ']') {
		while (n < len && p[n] != '\a' && p[n] != '\033')
			n++;
		if (n < len && p[n] == '\033' && n + 1 < len && p[n + 1] == '\\')
			n++;
		return n < len ? n + 1 : len;
	}
	return 2;
}

static void deliver_one(struct pp_lines *l, const char *text, size_t len)
{
	size_t n = 0;

	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	if (!len)
		return;
	if (!memchr(text, '\033', len) && !memchr(text, '\0', len)) {
		l->handler(l->arg, text, len, l->line);
		return;
	}
	for (size_t i = 0; i < len;) {
		if (text[i] == '\033') {
			i += sequence(text + i, len - i);
			continue;
		}
		l->clean[n++] = text[i] ? text[i] : ' ';
		i++;
	}
	if (n)
		l->handler(l->arg, l->clean, n, l->line);
}

/* A log inside a JSON string has its line ends as "\\n": what is long is taken apart there. */
static void deliver(struct pp_lines *l, const char *text, size_t len)
{
	const char *end;

	while (len > LONG && (end = memmem(text, len, "\\n", 2))) {
		deliver_one(l, text, (size_t)(end - text));
		len -= (size_t)(end + 2 - text);
		text = end + 2;
	}
	deliver_one(l, text, len);
}

/* Cuts a line without an end at a blank of its second half, so that no word is torn. */
static void deliver_part(struct pp_lines *l)
{
	size_t cut = l->kept;

	while (cut > sizeof(l->part) / 2 && l->part[cut - 1] != ' ')
		cut--;
	if (cut == sizeof(l->part) / 2)
		cut = l->kept;
	deliver(l, l->part, cut);
	l->kept -= cut;
	memmove(l->part, l->part + cut, l->kept);
}

static void keep(struct pp_lines *l, const char *bytes, size_t len)
{
	size_t room;

	while (len) {
		if (l->kept == sizeof(l->part))
			deliver_part(l);
		room = sizeof(l->part) - l->kept;
		if (room > len)
			room = len;
		memcpy(l->part + l->kept, bytes, room);
		l->kept += room;
		bytes += room;
		len -= room;
	}
}

static void end_line(struct pp_lines *l, const char *bytes, size_t len)
{
	if (!l->kept && len <= sizeof(l->part)) {
		deliver(l, bytes, len);
		return;
	}
	keep(l, bytes, len);
	deliver(l, l->part, l->kept);
	l->kept = 0;
}

/* The end of the line at @bytes: LF, or a CR before it; NULL when the bytes hold neither. */
static const char *line_end(const char *bytes, size_t len)
{
	const char *lf = memchr(bytes, '\n', len);
	const char *cr = memchr(bytes, '\r', lf ? (size_t)(lf - bytes) : len);

	return cr ? cr : lf;
}

void pp_lines_push(struct pp_lines *l, const char *bytes, size_t len)
{
	const char *end;
	size_t n;

	while (len) {
		end = line_end(bytes, len);
		if (!end) {
			keep(l, bytes, len);
			return;
		}
		n = (size_t)(end - bytes);
		end_line(l, bytes, n);
		l->line += *end == '\n';
		bytes += n + 1;
		len -= n + 1;
	}
}

void pp_lines_end(struct pp_lines *l)
{
	deliver(l, l->part, l->kept);
	l->kept = 0;
}

/* @n digits at @p as a number; -1 when they are none. */
static int digits(const char *p, const char *end, size_t n)
{
	int value = 0;

	if ((size_t)(end - p) < n)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (!isdigit((unsigned char)p[i]))
			return -1;
		value = value * 10 + (p[i] - '0');
	}
	return value;
}

static int64_t days_before(int year, int month, int day)
{
	/* Days of the civil calendar since 1970-01-01, with March as the first month. */
	int64_t y = month <= 2 ? year - 1 : year, m = month <= 2 ? month + 9 : month - 3;

	return y * 365 + y / 4 - y / 100 + y / 400 + (m * 306 + 5) / 10 + day - 1 - 719468;
}

/* "2026-11-29 14:55:54", also with T or '/'; the zone is left out: one log has one. */
static int64_t wall_time(const char *p, const char *end)
{
	int year, month, day, h, m, s;

	if (end - p < 19 || (p[4] != '-' && p[4] != '/') || p[7] != p[4] ||
	    (p[10] != ' ' && p[10] != 'T') || p[13] != ':' || p[16] != ':')
		return -1;
	year = digits(p, end, 4);
	month = digits(p + 5, end, 2);
	day = digits(p + 8, end, 2);
	h = digits(p + 11, end, 2);
	m = digits(p + 14, end, 2);
	s = digits(p + 17, end, 2);
	if (year < 1970 || month < 1 || month > 12 || day < 1 || h < 0 || m < 0 || s < 0)
		return -1;
	return (days_before(year, month, day) * 86400 + h * 3600 + m * 60 + s) * 1000000;
}

/* "[  123.456789]" of the kernel's log. */
static int64_t boot_time(const char *p, const char *end)
{
	int64_t seconds = 0, fraction;

	for (p++; p < end && *p == ' ';)
		p++;
	if (p == end || !isdigit((unsigned char)*p))
		return -1;
	for (int n = 0; p < end && isdigit((unsigned char)*p) && n < 12; n++)
		seconds = seconds * 10 + (*p++ - '0');
	if (p == end || *p != '.')
		return -1;
	fraction = digits(p + 1, end, 6);
	return fraction < 0 ? -1 : seconds * 1000000 + fraction;
}

/* "[rank3]", "rank 3", "Rank: 3", "[1,3]<stderr>" of Open MPI. */
static int rank_at(const char *p, const char *end)
{
	static const char WORD[] = "rank";
	int rank = 0, n = 0;

	if (end - p > 6 && *p == '[' && p[1] == '1' && p[2] == ',') {
		p += 3;
	} else {
		if ((size_t)(end - p) < sizeof(WORD))
			return -1;
		for (size_t i = 0; i < strlen(WORD); i++)
			if (tolower((unsigned char)p[i]) != WORD[i])
				return -1;
		p += strlen(WORD);
		while (p < end && (*p == ' ' || *p == ':' || *p == '='))
			p++;
	}
	for (; p < end && isdigit((unsigned char)*p) && n < 7; n++)
		rank = rank * 10 + (*p++ - '0');
	return n ? rank : -1;
}

/* A date's "HH:MM:SS" has two colons, which few lines have three bytes apart. */
static int64_t find_wall_time(const char *text, const char *end)
{
	enum { HOUR_END = 13, WITHIN = 160 };
	const char *last = end - text > WITHIN + HOUR_END ? text + WITHIN + HOUR_END : end;
	const char *p = end - text > HOUR_END ? text + HOUR_END : end;
	int64_t time_us;

	for (; p < last && (p = memchr(p, ':', (size_t)(last - p))); p++) {
		const char *date = p - HOUR_END;

		if (end - p < 6 || p[3] != ':' || (*date != '1' && *date != '2'))
			continue;
		time_us = wall_time(date, end);
		if (time_us >= 0)
			return time_us;
	}
	return -1;
}

static int64_t find_boot_time(const char *text, const char *end)
{
	const char *last = end - text > 64 ? text + 64 : end, *p = text;
	int64_t time_us = -1;

	for (; time_us < 0 && p < last && (p = memchr(p, '[', (size_t)(last - p))); p++)
		time_us = boot_time(p, end);
	return time_us;
}

void pp_stamp_read_times(const char *text, size_t len, struct pp_stamp *ret)
{
	const char *end = text + (len < STAMP_WITHIN ? len : STAMP_WITHIN);

	*ret = (struct pp_stamp){find_wall_time(text, end), find_boot_time(text, end), -1};
}

void pp_stamp_read(const char *text, size_t len, struct pp_stamp *ret)
{
	const char *end = text + (len < STAMP_WITHIN ? len : STAMP_WITHIN);

	pp_stamp_read_times(text, len, ret);
	for (const char *p = text; p < end && ret->rank < 0; p++)
		if (*p == '[' || *p == 'r' || *p == 'R')
			ret->rank = rank_at(p, end);
}

size_t pp_message_prefix(const char *text, size_t len)
{
	/* with a byte of each that few lines have */
	static const struct {
		const char *text;
		char rare;
	} marks[] = {{"NCCL WARN ", 'C'},
		     {"NCCL INFO ", 'C'},
		     {"UCX  ERROR ", 'X'},
		     {"UCX  WARN ", 'X'},
		     {"NVRM: ", 'V'}};
	const char *at;
	bool there = false;

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		if (!i || marks[i].rare != marks[i - 1].rare)
			there = memchr(text, marks[i].rare, len) != NULL;
		at = there ? pp_find(text, len, marks[i].text, strlen(marks[i].text)) : NULL;
		if (at)
			return (size_t)(at - text);
	}
	return 0;
}
