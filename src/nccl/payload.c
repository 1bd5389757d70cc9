/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

/* Up to which every whole number has a form of its own; of the integers, far from overflow. */
static const uint32_t exact[PP_ELEMENTS] = {
	[PP_INT8] = 126,       [PP_INT32] = 1U << 30,  [PP_HALF] = 2048,
	[PP_FLOAT] = 1U << 24, [PP_DOUBLE] = 1U << 30, [PP_BFLOAT16] = 256,
};

/* Ranks that multiply by two: 64 fits into every element. */
enum { DOUBLING = 6 };

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* How many values there are to choose from; 0: none that is exact. */
static uint32_t choices(const struct pp_payload_kind *k)
{
	uint32_t most = exact[k->element];

	if (!k->reduced)
		return most + 1;
	switch (k->reduction) {
	case PP_SUM:
		return most / k->ranks ? most / k->ranks + 1 : 2;
	case PP_PROD:
		return 2;
	case PP_AVG:
		return (uint64_t)k->ranks * k->ranks <= most ? most / k->ranks / k->ranks + 1 : 0;
	default:
		return most + 1;
	}
}

int pp_payload_possible(const struct pp_payload_kind *k, struct pp_error *err)
{
	if (!k->reduced || k->reduction != PP_AVG)
		return 0;
	if (k->ranks & (k->ranks - 1))
		return pp_error_set(err, -EOPNOTSUPP,
				    "avg of %u ranks has no exact result: their number must be a "
				    "power of two",
				    k->ranks);
	return choices(k)
		       ? 0
		       : pp_error_set(err, -EOPNOTSUPP, "avg of %u ranks has no exact result in %s",
				      k->ranks, pp_element_name(k->element));
}

static uint32_t value(const struct pp_payload_kind *k, uint32_t most, unsigned int rank,
		      unsigned int i)
{
	uint64_t h = mix(k->salt ^ ((uint64_t)rank << 32 | i) * 0x9e3779b97f4a7c15ULL);
	uint32_t v = (uint32_t)((h >> 32) * most >> 32);

	if (!k->reduced)
		return v;
	if (k->reduction == PP_SUM && rank >= exact[k->element])
		return 0;
	if (k->reduction == PP_PROD)
		return rank < DOUBLING ? 1 + v : 1;
	return k->reduction == PP_AVG ? v * k->ranks : v;
}

static uint32_t join(const struct pp_payload_kind *k, uint32_t a, uint32_t b)
{
	switch (k->reduction) {
	case PP_PROD:
		return a * b;
	case PP_MAX:
		return a > b ? a : b;
	case PP_MIN:
		return a < b ? a : b;
	default:
		return a + b;
	}
}

/* A whole number of at most 11 bits, as IEEE 754's half. */
static uint16_t half_of(uint32_t v)
{
	unsigned int top;

	if (!v)
		return 0;
	top = 31U - (unsigned int)__builtin_clz(v);
	return (uint16_t)((top + 15) << 10 | (top > 10 ? v >> (top - 10) : v << (10 - top)) % 1024);
}

static void encode(enum pp_element e, uint32_t v, uint8_t *at)
{
	float f = (float)v;
	double d = v;
	uint16_t h = half_of(v);
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	switch (e) {
	case PP_INT8:
		*at = (uint8_t)v;
		break;
	case PP_HALF:
		memcpy(at, &h, sizeof(h));
		break;
	case PP_BFLOAT16:
		h = (uint16_t)(bits >> 16);
		memcpy(at, &h, sizeof(h));
		break;
	case PP_FLOAT:
		memcpy(at, &f, sizeof(f));
		break;
	case PP_DOUBLE:
		memcpy(at, &d, sizeof(d));
		break;
	default:
		memcpy(at, &v, sizeof(v));
	}
}

static int make(const struct pp_payload_kind *k, unsigned int from, unsigned int to, bool divide,
		struct pp_payload *ret)
{
	struct pp_payload p = {.size = pp_element_size(k->element)};
	uint32_t most = choices(k), v;

	p.table = malloc((size_t)PP_PAYLOAD_PERIOD * p.size);
	if (!p.table)
		return -ENOMEM;
	for (unsigned int i = 0; i < PP_PAYLOAD_PERIOD; i++) {
		v = value(k, most, from, i);
		for (unsigned int r = from + 1; r < to; r++)
			v = join(k, v, value(k, most, r, i));
		if (divide && k->reduction == PP_AVG)
			v /= k->ranks;
		encode(k->element, v, p.table + (size_t)i * p.size);
	}
	*ret = p;
	return 0;
}

int pp_payload_of_rank(const struct pp_payload_kind *k, unsigned int rank, struct pp_payload *ret)
{
	return make(k, rank, rank + 1, false, ret);
}

int pp_payload_reduced(const struct pp_payload_kind *k, struct pp_payload *ret)
{
	return make(k, 0, k->ranks, true, ret);
}

void pp_payload_done(struct pp_payload *p)
{
	free(p->table);
	p->table = NULL;
}

/* A run of elements within the table: how many, and where. */
static uint64_t run(const struct pp_payload *p, uint64_t first, uint64_t left, const uint8_t **ret)
{
	uint64_t at = first % PP_PAYLOAD_PERIOD, n = PP_PAYLOAD_PERIOD - at;

	*ret = p->table + at * p->size;
	return n < left ? n : left;
}

void pp_payload_write(const struct pp_payload *p, uint64_t first, uint64_t count, void *at)
{
	const uint8_t *from;
	uint8_t *to = at;

	for (uint64_t n; count; first += n, count -= n, to += n * p->size) {
		n = run(p, first, count, &from);
		memcpy(to, from, n * p->size);
	}
}

static uint64_t differ(const uint8_t *a, const uint8_t *b, uint64_t n, unsigned int size,
		       uint64_t *ret_first)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < n; i++) {
		if (!memcmp(a + i * size, b + i * size, size))
			continue;
		if (!wrong++)
			*ret_first = i;
	}
	return wrong;
}

uint64_t pp_payload_compare(const struct pp_payload *p, uint64_t first, uint64_t count,
			    const void *at, uint64_t *ret_first)
{
	const uint8_t *found = at, *right;
	uint64_t wrong = 0, some, where = 0, begin = first;

	for (uint64_t n; count; first += n, count -= n, found += n * p->size) {
		n = run(p, first, count, &right);
		if (!memcmp(found, right, n * p->size))
			continue;
		some = differ(found, right, n, p->size, &where);
		if (!wrong)
			*ret_first = first - begin + where;
		wrong += some;
	}
	return wrong;
}
