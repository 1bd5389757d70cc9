/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of the fake NCCL, element by element in double: slow, and not the judge's own. */
#include <string.h>

#include "nccl.h"

enum { INT8 = 0, INT32 = 2, HALF = 6, FLOAT = 7, DOUBLE = 8, BFLOAT16 = 9 };
enum { SUM, PROD, MAX, MIN, AVG };

size_t type_size(int type)
{
	static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

	return type >= 0 && type <= BFLOAT16 ? sizes[type] : 0;
}

static float from_half(uint16_t h)
{
	int exponent = h >> 10 & 31, mantissa = h & 1023;
	float f = exponent ? 1.0F + (float)mantissa / 1024 : (float)mantissa / 1024;

	if (exponent == 31)
		return mantissa ? __builtin_nanf("") : __builtin_inff();
	for (int e = exponent ? exponent : 1; e > 15; e--)
		f *= 2;
	for (int e = exponent ? exponent : 1; e < 15; e++)
		f /= 2;
	return h >> 15 ? -f : f;
}

static uint16_t to_half(float f)
{
	uint32_t bits;
	int exponent;

	memcpy(&bits, &f, sizeof(bits));
	exponent = (int)(bits >> 23 & 255) - 112;
	if (exponent <= 0)
		return (uint16_t)(bits >> 16 & 0x8000);
	if (exponent >= 31)
		return (uint16_t)((bits >> 16 & 0x8000) | 0x7c00);
	return (uint16_t)((bits >> 16 & 0x8000) | (uint32_t)exponent << 10 | (bits >> 13 & 1023));
}

static double get(const uint8_t *at, int type)
{
	int32_t i;
	uint32_t bits;
	uint16_t h;
	float f;
	double d;

	switch (type) {
	case INT8:
		return (double)*(const int8_t *)at;
	case INT32:
		memcpy(&i, at, sizeof(i));
		return i;
	case HALF:
		memcpy(&h, at, sizeof(h));
		return from_half(h);
	case BFLOAT16:
		memcpy(&h, at, sizeof(h));
		bits = (uint32_t)h << 16;
		memcpy(&f, &bits, sizeof(f));
		return f;
	case FLOAT:
		memcpy(&f, at, sizeof(f));
		return f;
	default:
		memcpy(&d, at, sizeof(d));
		return d;
	}
}

static void put(uint8_t *at, int type, double value)
{
	float f = (float)value;
	uint32_t bits;
	uint16_t h;
	int32_t i;

	switch (type) {
	case INT8:
		*at = (uint8_t)(int64_t)value;
		break;
	case INT32:
		i = (int32_t)(int64_t)value;
		memcpy(at, &i, sizeof(i));
		break;
	case HALF:
		h = to_half(f);
		memcpy(at, &h, sizeof(h));
		break;
	case BFLOAT16:
		memcpy(&bits, &f, sizeof(bits));
		h = (uint16_t)(bits >> 16);
		memcpy(at, &h, sizeof(h));
		break;
	case FLOAT:
		memcpy(at, &f, sizeof(f));
		break;
	default:
		memcpy(at, &value, sizeof(value));
	}
}

bool reduce(void *into, const void *with, size_t count, int type, int redop)
{
	size_t size = type_size(type);
	const uint8_t *b = with;
	uint8_t *a = into;

	for (size_t i = 0; i < count; i++, a += size, b += size) {
		double x = get(a, type), y = get(b, type);

		switch (redop) {
		case SUM:
		case AVG:
			x += y;
			break;
		case PROD:
			x *= y;
			break;
		case MAX:
			x = y > x ? y : x;
			break;
		case MIN:
			x = y < x ? y : x;
			break;
		default:
			return false;
		}
		put(a, type, x);
	}
	return true;
}

void divide(void *at, size_t count, int type, int by)
{
	size_t size = type_size(type);
	uint8_t *a = at;

	for (size_t i = 0; i < count; i++, a += size)
		put(a, type, get(a, type) / by);
}
