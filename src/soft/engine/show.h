/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a running process tells `soft show` what it holds: an abstract AF_UNIX socket
 * "peerpath-soft.<slot>.show". Who connects (same user, or root) gets one descriptor of a memfd
 * with one JSON object: the answerer never waits for the reader.
 */
#ifndef SOFT_ENGINE_SHOW_H
#define SOFT_ENGINE_SHOW_H

#include "base/buf.h"

struct soft_engine;

enum { SOFT_SHOW_MAX = 16 << 20 };

/* Listening descriptor for @slot, or -errno. */
int soft_show_listen(unsigned int slot);
/* Answers one caller; not under the engine's lock. */
void soft_show_answer(struct soft_engine *engine);

/*
 * The asking side: appends what the process of @slot says. -ECONNREFUSED, -ENOENT: no such
 * process; -ETIMEDOUT: it did not answer in @timeout_ms; -EACCES: another user's.
 */
int soft_show_ask(unsigned int slot, int timeout_ms, struct pp_buf *ret);

#endif
