/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the source tree, loaded once for a group of tests.
 */
#ifndef TEST_EXPLAIN_RULES_H
#define TEST_EXPLAIN_RULES_H

#include "unit.h"

#include "judge/explain.h"

static int load(void **state)
{
	struct pp_known_set *known = NULL;
	struct pp_error err = {0};

	if (pp_known_load(PEERPATH_SOURCE_DATADIR "/explain", &known, &err))
		fail_msg("%s", err.text);
	*state = known;
	return 0;
}

static int unload(void **state)
{
	pp_known_free(*state);
	return 0;
}

#endif
