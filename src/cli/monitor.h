/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the verb `monitor` share.
 */
#ifndef PP_CLI_MONITOR_H
#define PP_CLI_MONITOR_H

#include "base/out.h"
#include "daemon/state.h"

/* What is known, as a document. @at_work: a monitor is. */
void pp_monitor_show(struct pp_out *o, const struct pp_state *s, bool at_work);

#endif
