/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BAR1 as a budget: what is known not to fit is refused before a driver is asked.
 */
#ifndef PP_MEM_BUDGET_H
#define PP_MEM_BUDGET_H

#include "mem/memory.h"

/*
 * Does a registration that takes @need bytes of the window fit into what is left? 0 when it does,
 * when BAR1 covers all of the GPU's memory, and when nothing is known. -ENOSPC: @err says what is
 * left and what would help.
 */
int pp_budget_check(const struct pp_memory *m, uint64_t need, struct pp_error *err);

#endif
