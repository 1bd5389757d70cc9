/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peerpath soft show: what running processes hold on the software device.
 */
#ifndef PP_CLI_SOFT_SHOW_H
#define PP_CLI_SOFT_SHOW_H

#include "cli/verb.h"

/* Prints, returns an exit code. */
int pp_soft_show(const struct pp_args *args);

#endif
