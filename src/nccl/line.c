/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/line.h"

#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

static const struct {
	char text[12]; /* the sixth letter tells them apart */
	size_t len;
	enum pp_nccl_level level;
} MARKS[] = {
	{"NCCL INFO ", 10, PP_NCCL_INFO},
	{"NCCL WARN ", 10, PP_NCCL_WARN},
	{"NCCL TRACE ", 11, PP_NCCL_TRACE},
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_host(char c)
{
	static const bool host[256] = {['0' ... '9'] = true, ['a' ... 'z'] = true,
				       ['A' ... 'Z'] = true, ['-'] = true,
				       ['_'] = true,	     ['.'] = true};

	return host[(unsigned char)c];
}

static const char *skip_blanks_back(const char *start, const char *at)
{
	while (at > start && at[-1] == ' ')
		at--;
	return at;
}

/* Digits that end at *@at; moves *@at before them. */
static bool number_back(const char *start, const char **at, uint32_t *ret)
{
	const char *p = *at;
	uint64_t value = 0, unit = 1;

	while (p > start && is_digit(p[-1]) && *at - p < 10) {
		value += unit * (uint64_t)(*--p - '0');
		unit *= 10;
	}
	if (p == *at || value > UINT32_MAX)
		return false;
	*ret = (uint32_t)value;
	*at = p;
	return true;
}

/* "file:line " or "file:line (func) ", as a warning has it. */
static const char *skip_place_back(const char *start, const char *at, struct pp_nccl_line *ret)
{
	const char *p = at;
	uint32_t ignored;

	if (p > start && p[-1] == ')') {
		while (p > start && p[-1] != '(' && at - p < 256)
			p--;
		if (p == start || p[-1] != '(')
			return at;
		p = skip_blanks_back(start, p - 1);
		ret->has_function = true;
	}
	if (!number_back(start, &p, &ignored) || p == start || p[-1] != ':')
		return at;
	while (p > start && p[-1] != ' ')
		p--;
	return skip_blanks_back(start, p);
}

/* "[2026-11-29 15:05:14] " before the host. */
static void read_stamp(const char *start, const char *at, struct pp_nccl_line *ret)
{
	static const char SHAPE[] = "[dddd-dd-dd dd:dd:dd]";
	const size_t n = sizeof(SHAPE) - 1;

	at = skip_blanks_back(start, at);
	if ((size_t)(at - start) < n)
		return;
	at -= n;
	for (size_t i = 0; i < n; i++)
		if (SHAPE[i] == 'd' ? !is_digit(at[i]) : at[i] != SHAPE[i])
			return;
	ret->stamp = (struct pp_nccl_span){at + 1, n - 2};
}

/* Reads the prefix that ends at @mark; returns where it begins, NULL when it is none. */
static const char *read_prefix(const char *start, const char *mark, enum pp_nccl_level level,
			       struct pp_nccl_line *ret)
{
	const char *at = skip_blanks_back(start, mark), *end;

	*ret = (struct pp_nccl_line){.level = level};
	if (at == mark)
		return NULL;
	if (at > start && at[-1] != ']')
		at = skip_place_back(start, at, ret);
	if (at == start || at[-1] != ']')
		return NULL;
	for (at--; at > start && (is_digit(at[-1]) || at[-1] == '-'); at--)
		;
	if (at == start || at[-1] != '[')
		return NULL;
	at = skip_blanks_back(start, at - 1);
	if (!number_back(start, &at, &ret->tid) || at == start || *--at != ':' ||
	    !number_back(start, &at, &ret->pid) || at == start || *--at != ':')
		return NULL;
	for (end = at; at > start && is_host(at[-1]); at--)
		;
	ret->host = (struct pp_nccl_span){at, (size_t)(end - at)};
	if (at == end)
		return NULL;
	read_stamp(start, at, ret);
	return at;
}

const char *pp_nccl_line_find_word(const char *at, const char *end)
{
	static const char word[] = "NCCL";
	const size_t last = sizeof(word) - 2;
	const char *p = at + last;

	if ((size_t)(end - at) <= last)
		return end;
	while (p < end && (p = memchr(p, word[last], (size_t)(end - p)))) {
		do { /* a run of L costs no call for each */
			if (!memcmp(p - last, word, last))
				return p - last;
			p++;
		} while (p < end && *p == word[last]);
	}
	return end;
}

/* The next prefix of NCCL in [from, end): its line, where it begins and where its message does. */
static bool find_prefix(const char *from, const char *end, struct pp_nccl_line *ret,
			const char **ret_begin, const char **ret_message)
{
	const char *at = from, *begin;

	for (; (at = pp_nccl_line_find_word(at, end)) < end; at += 4) {
		for (size_t i = 0; i < PP_ARRAY_LEN(MARKS); i++) {
			if ((size_t)(end - at) < MARKS[i].len || at[5] != MARKS[i].text[5] ||
			    memcmp(at, MARKS[i].text, MARKS[i].len) != 0)
				continue;
			begin = read_prefix(from, at, MARKS[i].level, ret);
			if (!begin)
				break;
			*ret_begin = begin;
			*ret_message = at + MARKS[i].len;
			return true;
		}
	}
	return false;
}

bool pp_nccl_line_next(const char *text, size_t len, size_t *pos, struct pp_nccl_line *ret)
{
	const char *end = text + len, *begin, *message, *next, *ignored;
	struct pp_nccl_line other;

	if (*pos >= len)
		return false;
	if (!find_prefix(text + *pos, end, ret, &begin, &message)) {
		if (*pos)
			return false;
		*ret = (struct pp_nccl_line){.message = {text, len}};
		*pos = len;
		return true;
	}
	if (!find_prefix(message, end, &other, &next, &ignored))
		next = end;
	*pos = (size_t)(next - text);
	ret->message = (struct pp_nccl_span){message, (size_t)(next - message)};
	while (ret->message.len && ret->message.at[ret->message.len - 1] == ' ')
		ret->message.len--;
	return true;
}
