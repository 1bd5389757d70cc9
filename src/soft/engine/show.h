/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a running process tells `soft show` what it holds, and learns from `soft fault` what is to
 * go wrong: an abstract AF_UNIX socket "peerpath-soft.<slot>.show". Who connects (same user, or
 * root) says what it wants in one message, "show" or a request (fault/request.h), and gets one
 * descriptor of a memfd with one JSON object: the answerer never waits for the reader.
 */
#ifndef SOFT_ENGINE_SHOW_H
#define SOFT_ENGINE_SHOW_H

#include "base/buf.h"
#include "base/clock.h"

struct soft_engine;

enum { SOFT_SHOW_MAX = 16 << 20, SOFT_SHOW_REQUEST_MAX = 4096 };

#define SOFT_SHOW_REQUEST "show"

/* Listening descriptor for @slot, or -errno. */
int soft_show_listen(unsigned int slot);
/*
 * The thread's; not under the engine's lock. A caller is let in, one at a time; the descriptor to
 * watch is the caller's then. Who says nothing for SOFT_SHOW_PATIENCE is sent away.
 */
#define SOFT_SHOW_PATIENCE (500 * PP_MILLISECOND)
int soft_show_fd(const struct soft_engine *engine);
void soft_show_ready(struct soft_engine *engine);
/* When a caller's patience ends; 0: there is none. */
pp_ns soft_show_deadline(const struct soft_engine *engine);

/*
 * The asking side: appends what the process of @slot says to @request. -ECONNREFUSED, -ENOENT: no
 * such process; -ETIMEDOUT: it did not answer in @timeout_ms; -EACCES: another user's;
 * -ECONNRESET: it let us in and closed without an answer, as one that ends meanwhile does.
 */
int soft_show_ask(unsigned int slot, const char *request, int timeout_ms, struct pp_buf *ret);

#endif
