/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/event.h"

#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

struct format {
	enum pp_nccl_kind kind;
	char levels[3]; /* two at most */
	int oldest, newest;
	const char *pattern;
};

#define F(kind, levels, oldest, newest, pattern) {PP_NCCL_##kind, levels, oldest, newest, pattern},
static const struct format FORMATS[] = {
#include "nccl/formats.def"
};
#undef F

/* Parts of a message that narrow the range of a kind further. */
static const struct {
	enum pp_nccl_kind kind;
	const char *part;
	int oldest, newest;
} PARTS[] = {
	{PP_NCCL_INIT_START, "ncclComm", PP_NCCL_V(2, 21, 0), PP_NCCL_NEWEST},
	{PP_NCCL_INIT_COMPLETE, "ncclComm", PP_NCCL_V(2, 21, 0), PP_NCCL_NEWEST},
	{PP_NCCL_INIT_COMPLETE, "commId", PP_NCCL_V(2, 16, 0), PP_NCCL_NEWEST},
	{PP_NCCL_INIT_COMPLETE, "nvmlDev", PP_NCCL_V(2, 18, 0), PP_NCCL_NEWEST},
	{PP_NCCL_INIT_START, "[Rank ", PP_NCCL_V(2, 29, 0), PP_NCCL_NEWEST},
	{PP_NCCL_COMPLETION, "localGid", PP_NCCL_V(2, 18, 0), PP_NCCL_V(2, 28, 6)},
	{PP_NCCL_COMPLETION, " hca ", PP_NCCL_V(2, 22, 0), PP_NCCL_V(2, 28, 6)},
	{PP_NCCL_CHANNEL, "via P2P/CUMEM", PP_NCCL_V(2, 18, 0), PP_NCCL_NEWEST},
	{PP_NCCL_CHANNEL, "via P2P/MNNVL", PP_NCCL_V(2, 20, 0), PP_NCCL_NEWEST},
	{PP_NCCL_CHANNEL, "via direct shared memory", PP_NCCL_OLDEST, PP_NCCL_V(2, 12, 99)},
	{PP_NCCL_CHANNEL, "via SHM/", PP_NCCL_V(2, 13, 0), PP_NCCL_NEWEST},
};

static const char LEVELS[] = {
	[PP_NCCL_PLAIN] = 'P',
	[PP_NCCL_INFO] = 'I',
	[PP_NCCL_WARN] = 'W',
	[PP_NCCL_TRACE] = 'T',
};

static void narrow(int *oldest, int *newest, int from, int to)
{
	if (*oldest < from)
		*oldest = from;
	if (*newest > to)
		*newest = to;
}

static bool is_number(struct pp_nccl_span s)
{
	bool digit = false;

	for (size_t i = 0; i < s.len; i++) {
		digit |= s.at[i] >= '0' && s.at[i] <= '9';
		if (!strchr("0123456789.+-eE", s.at[i]))
			return false;
	}
	return digit;
}

static size_t split(struct pp_nccl_span text, struct pp_nccl_span *words, size_t most)
{
	size_t n = 0, i = 0, start;

	while (i < text.len && n < most) {
		while (i < text.len && text.at[i] == ' ')
			i++;
		for (start = i; i < text.len && text.at[i] != ' ';)
			i++;
		if (i > start)
			words[n++] = (struct pp_nccl_span){text.at + start, i - start};
	}
	return n;
}

/*
 * A row of nccl-tests: size count type redop [root], then time algbw busbw wrong twice. Fields:
 * 0 size, 1 wrong out of place, 2 wrong in place.
 */
static bool read_row(struct pp_nccl_span text, struct pp_nccl_event *ret)
{
	struct pp_nccl_span w[24];
	size_t n = split(text, w, PP_ARRAY_LEN(w)), size, numbers = 0;
	uint64_t count;

	if (n < 11)
		return false;
	while (numbers < n &&
	       (is_number(w[n - 1 - numbers]) || pp_nccl_span_is(w[n - 1 - numbers], "N/A")))
		numbers++;
	if (numbers != 8 && numbers != 9)
		return false;
	/* numbers is 9 with a root; before them redop, type, count, size */
	if (n < numbers + 4)
		return false;
	size = n - numbers - 4;
	if (pp_nccl_digits(w[size], false, &ret->field[0].value) != w[size].len ||
	    pp_nccl_digits(w[size + 1], false, &count) != w[size + 1].len)
		return false;
	ret->field[1].text = w[n - 5];
	ret->field[2].text = w[n - 1];
	ret->kind = PP_NCCL_TEST_ROW;
	return true;
}

/* Most rows are ruled out by one byte; a long log asks this for each of its lines and rows. */
static bool may_fit(const struct format *f, char level, char first)
{
	if (f->levels[0] != level && f->levels[1] != level)
		return false;
	return *f->pattern == first || *f->pattern == '*' || *f->pattern == '%';
}

void pp_nccl_event_read(const struct pp_nccl_line *line, struct pp_nccl_event *ret)
{
	char level = LEVELS[line->level], first = line->message.len ? *line->message.at : '\0';

	ret->kind = PP_NCCL_OTHER;
	ret->oldest = PP_NCCL_OLDEST;
	ret->newest = PP_NCCL_NEWEST;
	for (size_t i = 0; i < PP_ARRAY_LEN(FORMATS); i++) {
		if (!may_fit(&FORMATS[i], level, first) ||
		    !pp_nccl_match(FORMATS[i].pattern, line->message, ret->field))
			continue;
		ret->kind = FORMATS[i].kind;
		narrow(&ret->oldest, &ret->newest, FORMATS[i].oldest, FORMATS[i].newest);
		for (size_t k = 0; k < PP_ARRAY_LEN(PARTS); k++)
			if (PARTS[k].kind == ret->kind &&
			    pp_nccl_span_find(line->message, PARTS[k].part))
				narrow(&ret->oldest, &ret->newest, PARTS[k].oldest,
				       PARTS[k].newest);
		return;
	}
	if (line->level == PP_NCCL_WARN)
		ret->kind = PP_NCCL_WARNING;
	else if (line->level == PP_NCCL_PLAIN)
		(void)read_row(line->message, ret);
}

size_t pp_nccl_format_count(void)
{
	return PP_ARRAY_LEN(FORMATS);
}

const char *pp_nccl_format_pattern(size_t i)
{
	return FORMATS[i].pattern;
}
