/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One page of a server on this machine, by HTTP: what an application shows of itself. Nothing but
 * loopback is ever connected to, no name is looked up, no redirection followed.
 */
#ifndef PP_DAEMON_LOOPBACK_H
#define PP_DAEMON_LOOPBACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"

struct pp_loopback {
	char host[40]; /* 127.0.0.1, ::1 */
	uint16_t port;
	char path[512]; /* "/metrics" */
};

/* "http://127.0.0.1:9000/metrics", "http://[::1]:9000", "http://localhost/". -EINVAL with why. */
int pp_loopback_parse(const char *url, struct pp_loopback *ret, struct pp_error *err);

/*
 * GET, whole, within @limit. The body is added to @to, whose maximum holds for head and body.
 * -ETIMEDOUT, -EPROTO (no HTTP, another status than 200, cut), -EFBIG, as connect(2).
 */
int pp_loopback_get(const struct pp_loopback *l, pp_ns limit, struct pp_buf *to,
		    struct pp_error *err);

/* A whole answer: where its body is. -EPROTO with why. Pure. */
int pp_loopback_answer(const char *text, size_t len, size_t *ret_body, struct pp_error *err);

#endif
