/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of many: counts, ranges, shares.
 */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "soft/fault/value.h"
#include "base/banned.h"

const struct soft_fault_when soft_fault_when_all = {
	.first = 1, .last = UINT64_MAX, .every = 1, .ppm = SOFT_FAULT_MILLION};

bool soft_fault_when_fires(const struct soft_fault_when *w, uint64_t nth, uint32_t random)
{
	if (nth < w->first || nth > w->last || nth % w->every)
		return false;
	/* Maps 32 random bits to 0 .. a million less one, without a division. */
	return w->ppm == SOFT_FAULT_MILLION ||
	       (uint32_t)((uint64_t)random * SOFT_FAULT_MILLION >> 32) < w->ppm;
}

/* Digits behind a point, up to four of them: of a percent. */
static int parse_fraction(const char *text, uint32_t *ret)
{
	uint32_t n = 0, digits = 0;

	for (; text[digits] >= '0' && text[digits] <= '9' && digits < 4; digits++)
		n = n * 10 + (uint32_t)(text[digits] - '0');
	if (!digits || text[digits])
		return -EINVAL;
	for (; digits < 4; digits++)
		n *= 10;
	*ret = n;
	return 0;
}

int soft_fault_share_parse(const char *text, uint32_t *ret_ppm)
{
	size_t len = strlen(text);
	char number[32], *point;
	uint32_t fraction = 0;
	uint64_t whole;

	if (len > 3 && len < sizeof(number) && !strcmp(text + len - 3, "ppm")) {
		memcpy(number, text, len - 3);
		number[len - 3] = '\0';
		if (pp_parse_u64(number, 0, SOFT_FAULT_MILLION, &whole))
			return -EINVAL;
		*ret_ppm = (uint32_t)whole;
		return 0;
	}
	if (len < 2 || len >= sizeof(number) || text[len - 1] != '%')
		return -EINVAL;
	memcpy(number, text, len - 1);
	number[len - 1] = '\0';
	point = strchr(number, '.');
	if (point) {
		*point = '\0';
		if (parse_fraction(point + 1, &fraction))
			return -EINVAL;
	}
	if (pp_parse_u64(number, 0, 100, &whole) || whole * 10000 + fraction > SOFT_FAULT_MILLION)
		return -EINVAL;
	*ret_ppm = (uint32_t)whole * 10000 + fraction;
	return 0;
}

static int parse_range(char *text, struct soft_fault_when *w)
{
	char *dots = strstr(text, "..");
	uint64_t first, last = UINT64_MAX;

	if (dots)
		*dots = '\0';
	if (pp_parse_u64(text, 1, UINT64_MAX - 1, &first))
		return -EINVAL;
	if (!dots)
		last = first;
	else if (dots[2] && pp_parse_u64(dots + 2, first, UINT64_MAX - 1, &last))
		return -EINVAL;
	if (w->first != 1 || w->last != UINT64_MAX)
		return -EEXIST;
	w->first = first;
	w->last = last;
	return 0;
}

int soft_fault_when_parse(char *text, struct soft_fault_when *w)
{
	uint32_t ppm;

	if (text[0] == '/') {
		uint64_t every;

		if (pp_parse_u64(text + 1, 1, UINT64_MAX, &every))
			return -EINVAL;
		if (w->every != 1)
			return -EEXIST;
		w->every = every;
		return 0;
	}
	if (!soft_fault_share_parse(text, &ppm)) {
		if (w->ppm != SOFT_FAULT_MILLION)
			return -EEXIST;
		w->ppm = ppm;
		return 0;
	}
	return parse_range(text, w);
}
