/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/pattern.h"

#include <errno.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/banned.h"

struct meetings {
	struct pp_meeting *list;
	unsigned int n;
};

static void add(struct meetings *m, unsigned int from, unsigned int to, unsigned int round)
{
	m->list[m->n++] = (struct pp_meeting){from, to, round};
}

/*
 * The circle method: the last seat stays, the others move on by one each round; the two at equal
 * distance from the top meet. With an odd number the one that meets the empty seat rests.
 */
static void tournament(struct meetings *m, unsigned int nodes)
{
	unsigned int seats = nodes + nodes % 2, turning = seats - 1;

	for (unsigned int round = 0; round < turning; round++) {
		for (unsigned int i = 0; i < seats / 2; i++) {
			unsigned int a = i ? (round + i) % turning : turning;
			unsigned int b = i ? (round + turning - i) % turning : round;

			if (a < nodes && b < nodes)
				add(m, a < b ? a : b, a < b ? b : a, round);
		}
	}
}

static void everyone(struct meetings *m, unsigned int nodes)
{
	for (unsigned int a = 0; a < nodes; a++)
		for (unsigned int b = a + 1; b < nodes; b++)
			add(m, a, b, 0);
}

static void ring(struct meetings *m, unsigned int nodes)
{
	/* of two nodes both directions would be one pair twice */
	for (unsigned int a = 0; a < (nodes == 2 ? 1 : nodes); a++)
		add(m, a, (a + 1) % nodes, 0);
}

static void incast(struct meetings *m, unsigned int nodes)
{
	for (unsigned int a = 1; a < nodes; a++)
		add(m, a, 0, 0);
}

int pp_pattern_meet(enum pp_pattern pattern, unsigned int nodes, struct pp_meeting **ret,
		    unsigned int *ret_n, struct pp_error *err)
{
	static void (*const makers[])(struct meetings *, unsigned int) = {
		[PP_PAIRS] = tournament,
		[PP_RING] = ring,
		[PP_ALL_TO_ALL] = everyone,
		[PP_INCAST] = incast,
	};
	uint64_t most = (uint64_t)nodes * (nodes > 1 ? nodes : 2);
	struct meetings m = {.n = 0};

	if (!nodes || (size_t)pattern >= PP_ARRAY_LEN(makers))
		return pp_error_set(err, -EINVAL, "no such pattern");
	if (pattern == PP_PAIRS || pattern == PP_ALL_TO_ALL ? most / 2 > PP_PATTERN_PAIRS
							    : nodes > PP_PATTERN_PAIRS)
		return pp_error_set(err, -EFBIG, "%u nodes make more than %d pairs", nodes,
				    PP_PATTERN_PAIRS);
	m.list = calloc(most, sizeof(*m.list));
	if (!m.list)
		return pp_error_set(err, -ENOMEM, "out of memory");
	if (nodes == 1)
		add(&m, 0, 0, 0);
	else
		makers[pattern](&m, nodes);
	*ret = m.list;
	*ret_n = m.n;
	return 0;
}
