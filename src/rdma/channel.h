/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_channel: messages between two processes of one run, each a JSON object.
 *
 * Over TCP both ends prove that they know the run's token before anything else is said, and every
 * message is authenticated: a key for each direction is made of the token and of a nonce of each
 * side, and a message's code covers its number, so that none can be forged, repeated, left out or
 * swapped. The token itself never travels. Nothing is encrypted. Between a process and its child
 * (socketpair) there is no token.
 *
 *   frame: length, 32 bits, big-endian; HMAC (TCP only), 32 bytes; JSON text
 *
 * What comes in is hostile until its code was checked: lengths are bounded before memory is taken.
 */
#ifndef PP_RDMA_CHANNEL_H
#define PP_RDMA_CHANNEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"

enum {
	PP_CHANNEL_VERSION = 1,	    /* both ends must have the same */
	PP_CHANNEL_PORT = 18516,    /* where --listen listens unless told */
	PP_CHANNEL_MOST = 4 << 20,  /* bytes of one message */
	PP_CHANNEL_TOKEN_LEAST = 8, /* characters */
};

struct pp_channel;

/* Two ends in one process, for a child: one of them is closed on each side of the fork. */
int pp_channel_pair(struct pp_channel *ret[2], struct pp_error *err);

/*
 * @address: "HOST", "HOST:PORT", "[V6]:PORT". Tries until @deadline (monotonic) while nobody
 * listens. -ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT (a firewall that drops), -EACCES (another
 * token), -EPROTO (no peerpath, or another version: @err names both), -ECONNRESET (it ended the
 * connection while greeting), -EINTR (@stopped said so).
 */
int pp_channel_connect(const char *address, const char *token, pp_ns deadline,
		       bool (*stopped)(void), struct pp_channel **ret, struct pp_error *err);

/* A listening socket; @address NULL: every address, port PP_CHANNEL_PORT. *ret_port: the port. */
int pp_channel_listen(const char *address, int *ret_fd, uint16_t *ret_port, struct pp_error *err);
/*
 * The next peer that knows the token. One that does not costs its own connection only, and at
 * most 5 s; @refused (may be NULL) is told who and why. -ETIMEDOUT, -EINTR.
 */
int pp_channel_accept(int fd, const char *token, pp_ns deadline, bool (*stopped)(void),
		      void (*refused)(const char *peer, const char *why), struct pp_channel **ret,
		      struct pp_error *err);
struct pp_channel *pp_channel_free(struct pp_channel *c); /* closes; returns NULL */

/* @text: one JSON object. -EMSGSIZE, -EPIPE (the peer is gone), -ETIMEDOUT (it does not read). */
int pp_channel_send(struct pp_channel *c, const char *text, size_t len, struct pp_error *err);
/*
 * The next message; json_decref() it. -ETIMEDOUT, -ECONNRESET (the peer is gone), -EBADMSG
 * (forged, or no JSON object), -EMSGSIZE, -EINTR.
 */
int pp_channel_receive(struct pp_channel *c, pp_ns deadline, bool (*stopped)(void), json_t **ret,
		       struct pp_error *err);

/*
 * A look at whether the peer's host still answers, for who waits without pp_channel_receive(),
 * which looks too: each PP_SILENCE_LOOK (rdma/silence.h). True: it does not, and the channel is
 * broken; @err says so.
 */
bool pp_channel_gone(struct pp_channel *c, struct pp_error *err);

/* To wait for several at once by poll(2); readable: a message or the end has begun to come. */
int pp_channel_fd(const struct pp_channel *c);
/* "10.0.0.2:41234", or "local". */
const char *pp_channel_peer(const struct pp_channel *c);

#endif
