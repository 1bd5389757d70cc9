/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collective in which each rank waited when PyTorch's watchdog gave up: ranks of one group that
 * wait in different ones do not run the same program. The line does not name the group, so only the
 * first of each rank counts, and transfers between two ranks do not: their ends differ by nature.
 */
#include "judge/derived_measured.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/find.h"
#include "base/banned.h"

static const char caught[] = "Watchdog caught collective operation timeout";

/* The rank of "[Rank 3] Watchdog caught ..."; -1 none. */
static int64_t rank_before(const char *text, const char *mark)
{
	const char *at = pp_derived_behind(text, (size_t)(mark - text), "[Rank "), *next;

	while (at && (next = pp_derived_behind(at, (size_t)(mark - at), "[Rank ")))
		at = next;
	return at ? pp_derived_number(&at, mark) : -1;
}

static int64_t value_of(const char *text, const char *end, const char *name)
{
	const char *at = pp_derived_behind(text, (size_t)(end - text), name);

	return at ? pp_derived_number(&at, end) : -1;
}

static bool read_step(const char *text, const char *end, struct pp_derived_step *ret)
{
	const char *op = pp_derived_behind(text, (size_t)(end - text), "OpType=");
	size_t n = 0;

	*ret = (struct pp_derived_step){.sequence = value_of(text, end, "SeqNum="),
					.elements = value_of(text, end, "NumelIn=")};
	while (op && op + n < end && n + 1 < sizeof(ret->op) &&
	       (isalnum((unsigned char)op[n]) || op[n] == '_'))
		n++;
	if (!n)
		return false;
	memcpy(ret->op, op, n);
	return true;
}

static bool between_two(const struct pp_derived_step *s)
{
	return strstr(s->op, "SEND") || strstr(s->op, "RECV") || strstr(s->op, "COALESCED") ||
	       strstr(s->op, "UNKNOWN");
}

static bool differ(const struct pp_derived_step *a, const struct pp_derived_step *b)
{
	if (strcmp(a->op, b->op) != 0)
		return true;
	if (a->sequence >= 0 && b->sequence >= 0 && a->sequence != b->sequence)
		return true;
	return !strcmp(a->op, "ALLREDUCE") && a->elements >= 0 && b->elements >= 0 &&
	       a->elements != b->elements;
}

void pp_derived_read_steps(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	const char *mark = pp_find(text, len, caught, sizeof(caught) - 1);
	const struct pp_derived_step *first = &d->step;
	struct pp_derived_step s;
	int64_t rank;

	if (!mark)
		return;
	rank = rank_before(text, mark);
	if (rank < 0 || rank >= PP_DERIVED_RANKS || d->waiting[rank / 64] >> (rank % 64) & 1)
		return;
	if (!read_step(mark, text + len, &s) || between_two(&s))
		return;
	d->waiting[rank / 64] |= (uint64_t)1 << (rank % 64);
	if (!d->step.op[0]) {
		d->step = s;
		d->step_rank = rank;
		return;
	}
	if (differ(first, &s))
		pp_derived_say(d, PP_DERIVED_STEPS, line,
			       "peerpath: ranks wait in different collectives: rank %" PRId64
			       " in %s %" PRId64 ", rank %" PRId64 " in %s %" PRId64,
			       d->step_rank, first->op, first->sequence, rank, s.op, s.sequence);
}
