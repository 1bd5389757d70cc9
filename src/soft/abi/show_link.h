/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same-host link's part of what `soft show` says. The engine's lock is held.
 */
#ifndef SOFT_ABI_SHOW_LINK_H
#define SOFT_ABI_SHOW_LINK_H

#include "base/json.h"
#include "soft/engine/engine.h"

/* Keys of the queue pair's object. */
void soft_show_link(struct pp_json *json, const struct soft_qp *qp);
/* Keys of the process's object. */
void soft_show_lanes(struct pp_json *json, struct soft_engine *engine);

#endif
