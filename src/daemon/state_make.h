/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_state out of the ledger, in memory.
 */
#ifndef PP_DAEMON_STATE_MAKE_H
#define PP_DAEMON_STATE_MAKE_H

#include "daemon/ledger.h"

/* Copies into @arena. -ENOMEM. */
int pp_state_make(const struct pp_ledger *k, int64_t wall_ns, struct pp_arena *arena,
		  struct pp_state *ret);

#endif
