/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many nodes have which value: what is usual among them. Private to store/fleet*.c.
 */
#ifndef PP_STORE_FLEET_TALLY_H
#define PP_STORE_FLEET_TALLY_H

#include <stddef.h>

#include "base/buf.h"

enum { PP_FLEET_VALUES = 512 }; /* values beyond these count among all, and are none's norm */

/* Values borrowed. Zeroed at the beginning. */
struct pp_fleet_tally {
	const char *value[PP_FLEET_VALUES];
	size_t count[PP_FLEET_VALUES], n, all;
};

void pp_fleet_tally_add(struct pp_fleet_tally *t, const char *value);
/* What more than half have; NULL: nothing. */
const char *pp_fleet_tally_norm(const struct pp_fleet_tally *t);
/* "open 98, proprietary 2": the most frequent first. */
void pp_fleet_tally_text(const struct pp_fleet_tally *t, struct pp_buf *out);

#endif
