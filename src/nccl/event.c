/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/event.h"

#include <assert.h>
#include <string.h>

#include "nccl/row.h"
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

/*
 * Parts of a message that narrow the range of a kind further: anywhere, or where that field begins.
 * Of one kind the narrower one first.
 */
static const struct {
	enum pp_nccl_kind kind;
	unsigned char field;
	const char *part;
	int oldest, newest;
} PARTS[] = {
	{PP_NCCL_INIT_START, 0, "ncclComm", PP_NCCL_V(2, 21, 0), PP_NCCL_NEWEST},
	{PP_NCCL_INIT_COMPLETE, 0, "ncclComm", PP_NCCL_V(2, 21, 0), PP_NCCL_NEWEST},
	{PP_NCCL_INIT_COMPLETE, 0, "nvmlDev", PP_NCCL_V(2, 18, 0), PP_NCCL_NEWEST},
	{PP_NCCL_INIT_COMPLETE, 0, "commId", PP_NCCL_V(2, 16, 0), PP_NCCL_NEWEST},
	{PP_NCCL_INIT_START, 0, "[Rank ", PP_NCCL_V(2, 29, 0), PP_NCCL_NEWEST},
	{PP_NCCL_COMPLETION, 0, "localGid", PP_NCCL_V(2, 18, 0), PP_NCCL_V(2, 28, 6)},
	{PP_NCCL_COMPLETION, 0, " hca ", PP_NCCL_V(2, 22, 0), PP_NCCL_V(2, 28, 6)},
	{PP_NCCL_CHANNEL, 2, "P2P/CUMEM", PP_NCCL_V(2, 18, 0), PP_NCCL_NEWEST},
	{PP_NCCL_CHANNEL, 2, "P2P/MNNVL", PP_NCCL_V(2, 20, 0), PP_NCCL_NEWEST},
	{PP_NCCL_CHANNEL, 2, "direct shared memory", PP_NCCL_OLDEST, PP_NCCL_V(2, 12, 99)},
	{PP_NCCL_CHANNEL, 2, "SHM/", PP_NCCL_V(2, 13, 0), PP_NCCL_NEWEST},
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

static void set_add(struct pp_nccl_format_set *set, size_t i)
{
	set->bits[i / 64] |= 1ULL << i % 64;
}

/* Bytes that every fitting text has: what is literal, and one for each number and word. */
static size_t least_len(const char *pattern)
{
	size_t n = 0;

	for (; *pattern; pattern++) {
		if (*pattern == '%')
			n += *++pattern != 's';
		else
			n += *pattern != '~' && *pattern != '*';
	}
	return n < PP_NCCL_LENGTHS ? n : PP_NCCL_LENGTHS - 1;
}

static bool same_head(const char *a, const char *b)
{
	struct pp_nccl_span x = pp_nccl_pattern_head(a), y = pp_nccl_pattern_head(b);

	return x.len == y.len && !memcmp(x.at, y.at, x.len);
}

void pp_nccl_formats_init(struct pp_nccl_formats *f)
{
	static_assert(PP_ARRAY_LEN(FORMATS) <= PP_NCCL_FORMATS, "a set holds every row");

	*f = (struct pp_nccl_formats){0};
	for (size_t i = 0; i < PP_ARRAY_LEN(FORMATS); i++) {
		const char *pattern = FORMATS[i].pattern;
		bool floats = *pattern == '*', open = floats || *pattern == '%';

		for (size_t level = 0; level < PP_NCCL_LEVELS; level++) {
			if (!strchr(FORMATS[i].levels, LEVELS[level]))
				continue;
			for (size_t c = 0; c < PP_NCCL_BYTES; c++)
				if (open || c == (unsigned char)*pattern)
					set_add(&f->begins[level][c], i);
		}
		for (size_t k = 0; floats && k < PP_ARRAY_LEN(FORMATS); k++)
			if (same_head(pattern, FORMATS[k].pattern))
				set_add(&f->like[i], k);
		for (size_t n = least_len(pattern); n < PP_NCCL_LENGTHS; n++)
			set_add(&f->fits[n], i);
	}
}

/* The rows of these 64 that could fit, by the message's first byte and its length. */
static uint64_t candidates(const struct pp_nccl_formats *f, const struct pp_nccl_line *line,
			   size_t part)
{
	unsigned char first = (unsigned char)*line->message.at;
	size_t len = line->message.len;

	if (first >= PP_NCCL_BYTES)
		return 0;
	len = len < PP_NCCL_LENGTHS ? len : PP_NCCL_LENGTHS - 1;
	return f->begins[line->level][first].bits[part] & f->fits[len].bits[part];
}

/* The first row that fits, or the number of rows. */
static size_t find_format(const struct pp_nccl_formats *f, const struct pp_nccl_line *line,
			  struct pp_nccl_field *field)
{
	struct pp_nccl_span m = line->message;

	for (size_t part = 0; m.len && part < PP_NCCL_SET_WORDS; part++) {
		uint64_t left = candidates(f, line, part);

		while (left) {
			size_t i = part * 64 + (size_t)__builtin_ctzll(left);
			const char *pattern = FORMATS[i].pattern;

			left &= left - 1;
			/* without their common head no row of that head fits */
			if (*pattern == '*' &&
			    !pp_nccl_span_find_span(m, pp_nccl_pattern_head(pattern)))
				left &= ~f->like[i].bits[part];
			else if (pp_nccl_match(pattern, m, field))
				return i;
		}
	}
	return PP_ARRAY_LEN(FORMATS);
}

static void narrow_by_parts(const struct pp_nccl_line *line, struct pp_nccl_event *e)
{
	for (size_t k = 0; k < PP_ARRAY_LEN(PARTS); k++) {
		if (PARTS[k].kind != e->kind ||
		    (PARTS[k].oldest <= e->oldest && PARTS[k].newest >= e->newest))
			continue;
		if (PARTS[k].field
			    ? pp_nccl_span_begins(e->field[PARTS[k].field].text, PARTS[k].part)
			    : pp_nccl_span_find(line->message, PARTS[k].part) != NULL)
			narrow(&e->oldest, &e->newest, PARTS[k].oldest, PARTS[k].newest);
	}
}

void pp_nccl_event_read(const struct pp_nccl_formats *f, const struct pp_nccl_line *line,
			struct pp_nccl_event *ret)
{
	size_t i = find_format(f, line, ret->field);

	ret->kind = PP_NCCL_OTHER;
	ret->oldest = PP_NCCL_OLDEST;
	ret->newest = PP_NCCL_NEWEST;
	if (i < PP_ARRAY_LEN(FORMATS)) {
		ret->kind = FORMATS[i].kind;
		narrow(&ret->oldest, &ret->newest, FORMATS[i].oldest, FORMATS[i].newest);
		narrow_by_parts(line, ret);
	} else if (line->level == PP_NCCL_WARN) {
		ret->kind = PP_NCCL_WARNING;
	} else if (line->level == PP_NCCL_PLAIN) {
		(void)pp_nccl_row_read(line->message, ret);
	}
}

size_t pp_nccl_format_count(void)
{
	return PP_ARRAY_LEN(FORMATS);
}

const char *pp_nccl_format_pattern(size_t i)
{
	return FORMATS[i].pattern;
}
