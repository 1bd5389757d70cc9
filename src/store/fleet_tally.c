/* SPDX-License-Identifier: Apache-2.0 */
#include "store/fleet_tally.h"

#include <stdbool.h>
#include <string.h>

#include "base/banned.h"

void pp_fleet_tally_add(struct pp_fleet_tally *t, const char *value)
{
	size_t i;

	t->all++;
	if (!value)
		return;
	for (i = 0; i < t->n; i++)
		if (!strcmp(t->value[i], value))
			break;
	if (i == PP_FLEET_VALUES)
		return;
	if (i == t->n) {
		t->value[t->n] = value;
		t->count[t->n++] = 0;
	}
	t->count[i]++;
}

const char *pp_fleet_tally_norm(const struct pp_fleet_tally *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (2 * t->count[i] > t->all)
			return t->value[i];
	return NULL;
}

void pp_fleet_tally_text(const struct pp_fleet_tally *t, struct pp_buf *out)
{
	bool done[PP_FLEET_VALUES] = {false};

	for (size_t k = 0; k < t->n && k < 8; k++) {
		size_t best = PP_FLEET_VALUES;

		for (size_t i = 0; i < t->n; i++)
			if (!done[i] && (best == PP_FLEET_VALUES || t->count[i] > t->count[best] ||
					 (t->count[i] == t->count[best] &&
					  strcmp(t->value[i], t->value[best]) < 0)))
				best = i;
		done[best] = true;
		pp_buf_printf(out, "%s%s %zu", k ? ", " : "", t->value[best], t->count[best]);
	}
	if (t->n > 8)
		pp_buf_printf(out, ", and %zu more", t->n - 8);
}
