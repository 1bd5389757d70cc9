/* SPDX-License-Identifier: Apache-2.0 */
#include "base/near.h"

#include <limits.h>
#include <string.h>

#include "base/banned.h"

enum { LONGEST = 63 };

static unsigned int min2(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

unsigned int pp_near_distance(const char *a, const char *b)
{
	unsigned int rows[3][LONGEST + 1], *before = rows[0], *last = rows[1], *row = rows[2], *t;
	size_t la = strlen(a), lb = strlen(b);

	if (la > LONGEST || lb > LONGEST)
		return UINT_MAX;
	for (size_t j = 0; j <= lb; j++)
		last[j] = (unsigned int)j;
	for (size_t i = 1; i <= la; i++) {
		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= lb; j++) {
			row[j] = min2(min2(last[j], row[j - 1]) + 1,
				      last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = min2(row[j], before[j - 2] + 1);
		}
		t = before;
		before = last;
		last = row;
		row = t;
	}
	return last[lb];
}

void pp_near_offer(struct pp_near *n, const char *candidate)
{
	size_t len = strlen(candidate), word = strlen(n->word);
	unsigned int d;

	/* at least as many changes as there are letters more: most candidates end here */
	if ((len > word ? len - word : word - len) >= n->distance)
		return;
	d = pp_near_distance(n->word, candidate);
	/* A suggestion that shares less than half of its letters only confuses. */
	if (d < n->distance && d * 2 <= len) {
		n->best = candidate;
		n->distance = d;
	}
}
