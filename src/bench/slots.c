/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/slots.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

enum { SPANS = 2 * PP_SLOTS_PARTS, WAYS = 2 };

struct span {
	uint64_t start, length;
};

static uint64_t stride_of(uint64_t size)
{
	return (size + PP_SLOTS_ALIGN - 1) / PP_SLOTS_ALIGN * PP_SLOTS_ALIGN;
}

/*
 * Of each way, in a part: two, so that two messages under way have a slot each. What is large
 * shares one: both bring the same bytes, and a GPU's window for NICs may be small.
 */
static unsigned int least(uint64_t size)
{
	return size < PP_SLOTS_LARGE ? 2 : 1;
}

uint64_t pp_slots_memory(uint64_t size, unsigned int parts)
{
	uint64_t each, all;

	if (!size || size > UINT64_MAX / 2 || !parts)
		return 0;
	each = stride_of(size);
	if (each < PP_SLOTS_KEEP / 2)
		each = PP_SLOTS_KEEP / 2;
	if (__builtin_mul_overflow(each, (uint64_t)least(size) * WAYS * parts, &all))
		return 0;
	return all;
}

static int check_parts(const struct pp_part *part, unsigned int n, struct pp_error *err)
{
	uint64_t end = 0;

	if (!n || n > PP_SLOTS_PARTS)
		return pp_error_set(err, -EINVAL, "%u parts of memory: 1 to %d can be", n,
				    PP_SLOTS_PARTS);
	for (unsigned int i = 0; i < n; i++) {
		if (part[i].start < end || !part[i].length ||
		    __builtin_add_overflow(part[i].start, part[i].length, &end))
			return pp_error_set(err, -EINVAL,
					    "part %u of the memory is empty or overlaps another",
					    i);
	}
	return 0;
}

/* What both ends have under one key each. */
static unsigned int cut(const struct pp_part *a, unsigned int n_a, const struct pp_part *b,
			unsigned int n_b, struct span *ret)
{
	unsigned int i = 0, k = 0, n = 0;
	uint64_t start, end, end_a, end_b;

	while (i < n_a && k < n_b && n < SPANS) {
		end_a = a[i].start + a[i].length;
		end_b = b[k].start + b[k].length;
		start = a[i].start > b[k].start ? a[i].start : b[k].start;
		end = end_a < end_b ? end_a : end_b;
		if (start < end)
			ret[n++] = (struct span){start, end - start};
		if (end_a <= end_b)
			i++;
		if (end_b <= end_a)
			k++;
	}
	return n;
}

/*
 * @n slots over the whole span, the last one ending where it ends. They are a stride apart: so far
 * at least lie they before rounding, and the stride is a multiple of what is rounded to.
 */
static uint64_t place(const struct span *s, uint64_t size, unsigned int n, unsigned int i)
{
	uint64_t room = s->length - size;

	if (i + 1 == n)
		return s->start + room;
	return s->start + room / (n - 1) * i / PP_SLOTS_ALIGN * PP_SLOTS_ALIGN;
}

/* Slots of each way in a span: 0 where one of each does not fit. */
static unsigned int fitting(const struct span *s, uint64_t size, unsigned int wanted)
{
	uint64_t stride = stride_of(size), fit;

	if (s->length < size)
		return 0;
	fit = (s->length - size) / stride + 1;
	fit /= WAYS;
	return fit < wanted ? (unsigned int)fit : wanted;
}

static bool touches(const struct pp_slots *s, unsigned int way, const struct pp_part *part)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (s->offset[way][i] >= part->start &&
		    s->offset[way][i] - part->start < part->length)
			return true;
	return false;
}

static int all_touched(const struct pp_slots *s, const struct pp_part *part, unsigned int n,
		       struct pp_error *err)
{
	for (unsigned int i = 0; i < n; i++)
		for (unsigned int way = 0; way < WAYS; way++)
			if (!touches(s, way, &part[i]))
				return pp_error_set(err, -EINVAL,
						    "no message of %" PRIu64
						    " bytes fits twice into "
						    "part %u of the memory (%" PRIu64 " bytes)",
						    s->size, i, part[i].length);
	return 0;
}

int pp_slots_lay(const struct pp_part *a, unsigned int n_a, const struct pp_part *b,
		 unsigned int n_b, uint64_t size, struct pp_slots *ret, struct pp_error *err)
{
	struct pp_slots s = {.size = size};
	unsigned int n_spans, wanted, have[SPANS], most = 0;
	struct span span[SPANS];
	int r = check_parts(a, n_a, err);

	r = r ? r : check_parts(b, n_b, err);
	if (r)
		return r;
	if (!size || size > UINT64_MAX / 4)
		return pp_error_set(err, -EINVAL, "messages of %" PRIu64 " bytes", size);
	n_spans = cut(a, n_a, b, n_b, span);
	if (!n_spans)
		return pp_error_set(err, -EINVAL,
				    "the memories of both ends have nothing in common");
	wanted = (unsigned int)(PP_SLOTS_KEEP / stride_of(size) < PP_SLOTS_MOST
					? PP_SLOTS_KEEP / stride_of(size)
					: PP_SLOTS_MOST);
	wanted = wanted / n_spans > least(size) ? wanted / n_spans : least(size);
	for (unsigned int i = 0; i < n_spans; i++) {
		have[i] = fitting(&span[i], size, wanted);
		most = have[i] > most ? have[i] : most;
	}
	/* in turn over the spans, so that few messages too meet all of them */
	for (unsigned int k = 0; k < most; k++) {
		for (unsigned int i = 0; i < n_spans; i++) {
			if (k >= have[i] || s.n == PP_SLOTS_MOST)
				continue;
			for (unsigned int way = 0; way < WAYS; way++)
				s.offset[way][s.n] =
					place(&span[i], size, WAYS * have[i], WAYS * k + way);
			s.n++;
		}
	}
	r = all_touched(&s, a, n_a, err);
	r = r ? r : all_touched(&s, b, n_b, err);
	if (!r)
		*ret = s;
	return r;
}

const struct pp_part *pp_part_of(const struct pp_part *part, unsigned int n, uint64_t offset,
				 uint64_t size)
{
	for (unsigned int i = 0; i < n; i++)
		if (offset >= part[i].start && offset - part[i].start <= part[i].length &&
		    size <= part[i].length - (offset - part[i].start))
			return &part[i];
	return NULL;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int pp_slots_walk(const struct pp_slots *s, unsigned int way, uint64_t total, pp_slots_visit *visit,
		  void *arg)
{
	uint64_t sorted[PP_SLOTS_MOST], at = 0, end;
	unsigned int i = 0, k;
	int r = 0;

	memcpy(sorted, s->offset[way], s->n * sizeof(sorted[0]));
	qsort(sorted, s->n, sizeof(sorted[0]), ascending);
	while (!r && i < s->n) {
		/* slots without a gap between them are one piece */
		end = sorted[i] + s->size;
		for (k = i + 1; k < s->n && sorted[k] == end; k++)
			end += s->size;
		if (sorted[i] < at || end > total)
			return -ERANGE;
		if (sorted[i] > at)
			r = visit(arg, at, sorted[i] - at, false);
		r = r ? r : visit(arg, sorted[i], end - sorted[i], true);
		at = end;
		i = k;
	}
	if (!r && at < total)
		r = visit(arg, at, total - at, false);
	return r;
}
