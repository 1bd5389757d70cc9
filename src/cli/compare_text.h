/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison for a terminal: what differs, what moved, and, below @heading, what may be said. */
#ifndef PP_CLI_COMPARE_TEXT_H
#define PP_CLI_COMPARE_TEXT_H

#include "base/out.h"
#include "judge/comparison.h"

void pp_compare_text(struct pp_out *o, const struct pp_comparison *c, const char *heading);

#endif
