/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process of a pp_apart answers, as bytes: looks, and what the watcher remembers. Read as
 * hostile input, since that process has read files of others.
 */
#ifndef PP_DAEMON_APART_ANSWER_H
#define PP_DAEMON_APART_ANSWER_H

#include "base/buf.h"
#include "daemon/look.h"

void pp_apart_put_look(struct pp_buf *to, const struct pp_look *look);
void pp_apart_put_mark(struct pp_buf *to, const char *watcher, const char *key, const char *value);
/* The looks that were too many. */
void pp_apart_put_left_out(struct pp_buf *to, size_t n);

/*
 * Looks go into @into, marks to @at's remember(). -EBADMSG: it is no such answer, and nothing of it
 * was taken; -ENOMEM, or what remember() returned.
 */
int pp_apart_take(const char *bytes, size_t len, const struct pp_watch_context *at,
		  struct pp_looks *into);

#endif
