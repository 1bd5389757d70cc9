/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Known bytes. A pattern differs by seed, case, QP and place, so a byte that is right cannot have
 * come from another case, another QP, or another packet of the same message. All else is
 * background, which must survive: a byte beyond what a case moves is as wrong as a lost one.
 */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/banned.h"

void pp_verdict_say(struct pp_verdict *verdict, const char *format, ...)
{
	va_list args;

	if (verdict->text[0])
		return; /* the first fault tells most */
	va_start(args, format);
	vsnprintf(verdict->text, sizeof(verdict->text), format, args);
	va_end(args);
}

uint64_t pp_pattern_word(uint64_t seed, uint64_t number, uint64_t qp)
{
	uint64_t x = seed + (number + 1) * 0x9e3779b97f4a7c15u + (qp + 1) * 0xd1342543de82ef95u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static unsigned char pp_pattern_byte(uint64_t word, size_t i)
{
	return (unsigned char)((word >> 8 * (i % 8)) + i * 31 + (i >> 8) * 17 + (i >> 16) * 59);
}

static unsigned char pp_pattern_rest(enum pp_half half, size_t i)
{
	return (unsigned char)(half ^ i);
}

void pp_pattern_fill(unsigned char *to, size_t len, uint64_t word)
{
	for (size_t i = 0; i < len; i++)
		to[i] = pp_pattern_byte(word, i);
}

void pp_pattern_background(enum pp_half kind, unsigned char *half, size_t from, size_t len)
{
	for (size_t i = from; i < from + len; i++)
		half[i] = pp_pattern_rest(kind, i);
}

bool pp_pattern_verify(const unsigned char *half, size_t half_len, size_t at, size_t len,
		       uint64_t word, struct pp_verdict *verdict)
{
	for (size_t i = 0; i < half_len; i++) {
		bool inside = i >= at && i - at < len;
		unsigned char want =
			inside ? pp_pattern_byte(word, i - at) : pp_pattern_rest(PP_IN, i);

		if (half[i] == want)
			continue;
		pp_verdict_say(verdict, "byte %td is %02x, not %02x%s", (ptrdiff_t)(i - at),
			       half[i], want, inside ? "" : ", and lies outside the message");
		return false;
	}
	return true;
}
