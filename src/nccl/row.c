/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/row.h"

#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

enum { HALF = 4, HALF_WITH_ITERATIONS = 8 };

static bool is_number(struct pp_nccl_span s)
{
	enum { OTHER, PART, DIGIT };
	static const unsigned char kinds[256] = {['0' ... '9'] = DIGIT, ['.'] = PART, ['+'] = PART,
						 ['-'] = PART,		['e'] = PART, ['E'] = PART};
	unsigned int digit = 0, kind;

	for (size_t i = 0; i < s.len; i++) {
		kind = kinds[(unsigned char)s.at[i]];
		if (kind == OTHER)
			return false;
		digit |= kind == DIGIT;
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

/* The columns at the end that are numbers, however many; "N/A" is what was not checked. */
static size_t numbers_of(const struct pp_nccl_span *w, size_t n)
{
	size_t numbers = 0;

	while (numbers < n &&
	       (is_number(w[n - 1 - numbers]) || pp_nccl_span_is(w[n - 1 - numbers], "N/A")))
		numbers++;
	return numbers;
}

static bool is_moment(struct pp_nccl_span date, struct pp_nccl_span time)
{
	struct pp_nccl_field f[PP_NCCL_FIELDS];

	return pp_nccl_match("%u-%u-%u", date, f) && pp_nccl_match("%u:%u:%u", time, f);
}

bool pp_nccl_row_read(struct pp_nccl_span text, struct pp_nccl_event *ret)
{
	struct pp_nccl_span w[40];
	size_t n, numbers, half, size;
	uint64_t count;

	/* few other lines end like one, and are as long */
	if (text.len < 24 || !strchr("0123456789A", text.at[text.len - 1]))
		return false;
	n = split(text, w, PP_ARRAY_LEN(w));
	if (n > 2 && is_moment(w[n - 2], w[n - 1]))
		n -= 2;
	numbers = numbers_of(w, n);
	half = numbers < 2 * HALF_WITH_ITERATIONS ? HALF : HALF_WITH_ITERATIONS;
	/* one more with a root; before them redop, type, count, size */
	if ((numbers != 2 * half && numbers != 2 * half + 1) || n < numbers + 4)
		return false;
	size = n - numbers - 4;
	if (pp_nccl_digits(w[size], false, &ret->field[0].value) != w[size].len ||
	    pp_nccl_digits(w[size + 1], false, &count) != w[size + 1].len)
		return false;
	ret->field[1].text = w[n - 2 * half + HALF - 1];
	ret->field[2].text = w[n - half + HALF - 1];
	ret->field[3].text = w[n - 2 * half];
	ret->field[4].text = w[n - 2 * half + HALF - 2];
	ret->kind = PP_NCCL_TEST_ROW;
	return true;
}
