/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `fleet` and `history`, which ask the same database.
 */
#ifndef PP_CLI_FLEET_OPTIONS_H
#define PP_CLI_FLEET_OPTIONS_H

#include "cli/verb.h"

/* First operands of fleet. */
extern const char *const pp_fleet_words[];
extern const struct pp_option pp_fleet_options_table[];
extern const struct pp_option pp_history_options_table[];

#endif
