/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/event.h"

#include <assert.h>
#include <limits.h>
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

static bool is_empty(const struct pp_nccl_format_set *set)
{
	uint64_t any = 0;

	for (size_t part = 0; part < PP_NCCL_SET_WORDS; part++)
		any |= set->bits[part];
	return !any;
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

/* A text may begin with this byte, and the pattern fit. */
static bool may_begin(const char *pattern, char c)
{
	bool digit = c >= '0' && c <= '9';

	if (*pattern != '%')
		return *pattern == '*' || c == *pattern;
	return pattern[1] == 'u' ? digit : pattern[1] != 'i' || digit || c == '-';
}

/* The same of its second byte, @c NUL when it has none. */
static bool may_go_on(const char *pattern, char c)
{
	bool open = *pattern == '%' || *pattern == '*' || strchr("%~*", pattern[1]);

	return open || pattern[1] == c;
}

/* Bytes at the start of both, of which the * is none. */
static size_t common(const char *a, const char *b)
{
	size_t n = 0;

	a += *a == '*';
	b += *b == '*';
	while (n < UCHAR_MAX && a[n] && a[n] == b[n])
		n++;
	return n;
}

/* The byte that must follow the head and blanks; NUL: any. */
static char byte_behind_head(const char *pattern)
{
	struct pp_nccl_span head = pp_nccl_pattern_head(pattern);
	const char *p = head.at + head.len;

	while (*p == ' ' || *p == '~')
		p++;
	return *p == '%' || *p == '*' ? '\0' : *p;
}

static size_t head_put(struct pp_nccl_formats *f, struct pp_nccl_span head)
{
	size_t h = 0;

	while (h < f->n_heads &&
	       (f->heads[h].len != head.len || memcmp(f->heads[h].at, head.at, head.len) != 0))
		h++;
	if (h == f->n_heads) {
		assert(h < PP_NCCL_HEADS && head.len > 1);
		f->heads[f->n_heads++] = head;
		f->head_second[(unsigned char)head.at[1]] |= 1U << h;
	}
	return h;
}

static void init_floating(struct pp_nccl_formats *f, size_t i)
{
	const char *pattern = FORMATS[i].pattern;
	char next = byte_behind_head(pattern);
	size_t h = head_put(f, pp_nccl_pattern_head(pattern));

	set_add(&f->floating, i);
	set_add(&f->with_head[h], i);
	for (size_t level = 0; level < PP_NCCL_LEVELS; level++)
		if (strchr(FORMATS[i].levels, LEVELS[level]))
			f->head_first[level][(unsigned char)pattern[1]] |= 1U << h;
	for (size_t c = 0; c < PP_NCCL_BYTES; c++)
		if (!next || c == (unsigned char)next)
			set_add(&f->behind[c], i);
}

void pp_nccl_formats_init(struct pp_nccl_formats *f)
{
	static_assert(PP_ARRAY_LEN(FORMATS) <= PP_NCCL_FORMATS, "a set holds every row");

	*f = (struct pp_nccl_formats){0};
	for (size_t i = 0; i < PP_ARRAY_LEN(FORMATS); i++) {
		const char *pattern = FORMATS[i].pattern;

		if (*pattern == '*')
			init_floating(f, i);
		for (size_t level = 0; level < PP_NCCL_LEVELS; level++) {
			if (!strchr(FORMATS[i].levels, LEVELS[level]))
				continue;
			for (size_t c = 0; c < PP_NCCL_BYTES; c++)
				if (may_begin(pattern, (char)c))
					set_add(&f->begins[level][c], i);
		}
		for (size_t c = 0; c < PP_NCCL_BYTES; c++)
			if (may_go_on(pattern, (char)c))
				set_add(&f->second_is[c], i);
		if (i && (*pattern == '*') == (*FORMATS[i - 1].pattern == '*'))
			f->alike[i] = (unsigned char)common(FORMATS[i - 1].pattern, pattern);
		for (size_t n = least_len(pattern); n < PP_NCCL_LENGTHS; n++)
			set_add(&f->fits[n], i);
	}
}

/* A search for the first row that fits. */
struct search {
	const struct pp_nccl_formats *formats;
	struct pp_nccl_trial trial;
	struct pp_nccl_format_set left; /* rows that may still be it */
	size_t best;			/* the first that fits so far, or the number of rows */
	struct pp_nccl_field *field;	/* of that */
};

static void found(struct search *s, size_t i, const struct pp_nccl_field *field)
{
	memcpy(s->field, field, PP_NCCL_FIELDS * sizeof(*field));
	s->best = i;
	for (size_t part = 0; part < PP_NCCL_SET_WORDS; part++)
		if (i / 64 <= part)
			s->left.bits[part] &= i / 64 < part ? 0 : (1ULL << i % 64) - 1;
}

/* Alike up to where the row before failed: @alike bytes at least. */
static bool fails_too(const struct search *s, const char *failed, const char *pattern, size_t alike)
{
	size_t seen = failed ? (size_t)(s->trial.seen - failed) : 0;

	return failed && (alike >= seen || !strncmp(pattern, failed, seen));
}

/* Those of @set that are left, at one place, in their order. */
static void try_rows(struct search *s, const struct pp_nccl_format_set *set, const char *at)
{
	struct pp_nccl_field field[PP_NCCL_FIELDS];
	const struct pp_nccl_formats *f = s->formats;
	const char *failed = NULL, *pattern;
	size_t last = PP_NCCL_FORMATS;
	bool again;

	for (size_t part = 0; part < PP_NCCL_SET_WORDS; part++) {
		uint64_t rows = set->bits[part] & s->left.bits[part];

		for (; rows; rows &= rows - 1) {
			size_t i = part * 64 + (size_t)__builtin_ctzll(rows);

			pattern = FORMATS[i].pattern + (*FORMATS[i].pattern == '*');
			if (fails_too(s, failed, pattern, i == last + 1 ? f->alike[i] : 0)) {
				last = i;
				continue;
			}
			/* alike up to the text that was looked for last: on from there */
			again = failed && s->trial.mark &&
				!strncmp(pattern, failed, (size_t)(s->trial.mark + 2 - failed));
			if (again ? pp_nccl_match_again(&s->trial, failed, pattern, field)
				  : pp_nccl_match_at(&s->trial, pattern, at, field)) {
				found(s, i, field);
				return;
			}
			failed = pattern;
			last = i;
			if (s->trial.never)
				s->left.bits[part] &= ~(1ULL << i % 64);
		}
	}
}

/*
 * A head stands at @at: the rows that have it and go on as the text does. False when no row with a
 * head can be the first one any more.
 */
static bool try_head(struct search *s, size_t h, const char *at)
{
	const struct pp_nccl_formats *f = s->formats;
	const char *next = at + f->heads[h].len;
	struct pp_nccl_format_set rows;
	unsigned char c;

	while (next < s->trial.end && *next == ' ')
		next++;
	c = next < s->trial.end ? (unsigned char)*next : 0;
	c = c < PP_NCCL_BYTES ? c : 0;
	for (size_t part = 0; part < PP_NCCL_SET_WORDS; part++)
		rows.bits[part] =
			f->with_head[h].bits[part] & f->behind[c].bits[part] & s->left.bits[part];
	if (is_empty(&rows))
		return true;
	try_rows(s, &rows, at);
	for (size_t part = 0; part < PP_NCCL_SET_WORDS; part++)
		rows.bits[part] = s->left.bits[part] & f->floating.bits[part];
	return !is_empty(&rows);
}

/* Two bytes are the same already; the others are few, and mostly unlike. */
static bool stands_at(struct pp_nccl_span head, const char *at, const char *end)
{
	size_t i = 2;

	if ((size_t)(end - at) < head.len)
		return false;
	while (i < head.len && at[i] == head.at[i])
		i++;
	return i == head.len;
}

/* One pass over the text for all heads of its level. */
static void try_heads(struct search *s, const struct pp_nccl_line *line)
{
	const struct pp_nccl_formats *f = s->formats;
	const uint32_t *first = f->head_first[line->level];
	const char *end = s->trial.end;

	for (const char *at = line->message.at; at + 1 < end; at++) {
		uint32_t heads = first[(unsigned char)*at];

		if (!heads)
			continue;
		for (heads &= f->head_second[(unsigned char)at[1]]; heads; heads &= heads - 1) {
			size_t h = (size_t)__builtin_ctz(heads);

			if (stands_at(f->heads[h], at, end) && !try_head(s, h, at))
				return;
		}
	}
}

/* The first row that fits, or the number of rows. */
static size_t find_format(const struct pp_nccl_formats *f, const struct pp_nccl_line *line,
			  struct pp_nccl_field *field)
{
	struct pp_nccl_span m = line->message;
	struct search s = {.formats = f,
			   .trial = {.end = m.at + m.len},
			   .best = PP_ARRAY_LEN(FORMATS),
			   .field = field};
	size_t len = m.len < PP_NCCL_LENGTHS ? m.len : PP_NCCL_LENGTHS - 1;
	unsigned char second = m.len > 1 ? (unsigned char)m.at[1] : 0;
	struct pp_nccl_format_set anchored, floating;

	second = second < PP_NCCL_BYTES ? second : 0;
	if (!m.len || (unsigned char)*m.at >= PP_NCCL_BYTES)
		return s.best;
	for (size_t part = 0; part < PP_NCCL_SET_WORDS; part++) {
		s.left.bits[part] = f->begins[line->level][(unsigned char)*m.at].bits[part] &
				    f->second_is[second].bits[part] & f->fits[len].bits[part];
		anchored.bits[part] = s.left.bits[part] & ~f->floating.bits[part];
	}
	if (!is_empty(&anchored))
		try_rows(&s, &anchored, m.at);
	for (size_t part = 0; part < PP_NCCL_SET_WORDS; part++)
		floating.bits[part] = s.left.bits[part] & f->floating.bits[part];
	if (!is_empty(&floating))
		try_heads(&s, line);
	return s.best;
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

/* What a long log has most of fits the first row, and is read at once. */
static bool is_channel(const struct pp_nccl_line *line, struct pp_nccl_event *ret)
{
	if (line->level != PP_NCCL_INFO || !pp_nccl_span_begins(line->message, "Channel ") ||
	    !pp_nccl_channel_read(line->message, &ret->channel))
		return false;
	ret->kind = PP_NCCL_CHANNEL;
	ret->field[2].text = ret->channel.way;
	narrow_by_parts(line, ret);
	return true;
}

void pp_nccl_event_read(const struct pp_nccl_formats *f, const struct pp_nccl_line *line,
			struct pp_nccl_event *ret)
{
	size_t i;

	ret->oldest = PP_NCCL_OLDEST;
	ret->newest = PP_NCCL_NEWEST;
	ret->has_channel = is_channel(line, ret);
	if (ret->has_channel)
		return;
	i = find_format(f, line, ret->field);
	ret->kind = PP_NCCL_OTHER;
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
