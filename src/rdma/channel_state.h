/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_channel from inside, and what its files share: the socket, the greeting of both ends.
 *
 * All sockets are close-on-exec and non-blocking; waiting is poll(2) in short slices, so that a
 * caller's @stopped is heard. Exactly one frame is read at a time, never a byte of the next one:
 * what poll(2) says of the socket is all there is to know.
 */
#ifndef PP_RDMA_CHANNEL_STATE_H
#define PP_RDMA_CHANNEL_STATE_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "rdma/channel.h"
#include "rdma/frame.h"
#include "rdma/silence.h"

enum {
	PP_CHANNEL_INTRODUCTION = 4096, /* bytes of the first frame, of a peer not yet known */
	PP_CHANNEL_SLICE_MS = 100,
};

#define PP_CHANNEL_GREETING_LIMIT (5 * PP_SECOND)
#define PP_CHANNEL_SEND_LIMIT	  (5 * PP_SECOND)

enum pp_channel_stage {
	PP_CHANNEL_GREETS,     /* the other's greeting is awaited */
	PP_CHANNEL_INTRODUCES, /* its first frame, which proves that it knows the token */
	PP_CHANNEL_OPEN,
	PP_CHANNEL_BROKEN, /* half a frame was sent */
};

struct pp_channel {
	int fd;
	enum pp_channel_stage stage;
	bool dialler;
	bool greeted; /* the dialler has said its greeting */
	char peer[128];
	struct pp_silence silence;
	struct pp_frame_way in, out;
	struct pp_buf bytes; /* of the frame or greeting that comes in */
	uint8_t nonce[PP_FRAME_NONCE];
	json_t *introduction; /* the peer's */
	char *own;	      /* introduction: an object's text; NULL: the plain one */
};

/* Takes @fd; NULL when out of memory (@fd is closed then too). */
struct pp_channel *pp_channel_new(int fd, enum pp_channel_stage stage);

/*
 * A channel on a connected TCP socket @fd (taken), which still has to greet. @introduction: text
 * of a JSON object that the peer gets together with the proof; copied; NULL: none.
 */
int pp_channel_begin(int fd, bool dialler, const char *introduction, struct pp_channel **ret,
		     struct pp_error *err);
/*
 * Goes on with greeting as far as it can without waiting. 0: done, the channel is open. -EAGAIN:
 * wait until pp_channel_fd() is readable. Else it failed: -EPROTO, -EACCES, -ECONNRESET.
 */
int pp_channel_greet(struct pp_channel *c, const char *token, struct pp_error *err);
/* What the peer introduced itself with; borrowed; of a pair an empty object. */
const json_t *pp_channel_introduction(const struct pp_channel *c);

struct pp_channel_dial {
	const char *address, *token;
	const char *introduction; /* as pp_channel_begin() */
	pp_ns deadline;
	bool once; /* -ECONNREFUSED at once when nobody listens */
	bool (*stopped)(void);
	/* To the same host, or NULL: -EHOSTDOWN as soon as it is gone. */
	struct pp_channel *beside;
};
/* As pp_channel_connect(). */
int pp_channel_dial(const struct pp_channel_dial *d, struct pp_channel **ret, struct pp_error *err);

/*
 * Reads until @need bytes are in c->bytes. -EAGAIN: not yet. -ENODATA: the end, between frames or
 * inside one. Other negative errno: the connection is lost.
 */
int pp_channel_fill(struct pp_channel *c, size_t need);

/* Waits for @events of @fd. 0; -ETIMEDOUT; -EINTR: @stopped (may be NULL) said so. */
int pp_channel_wait(int fd, short events, pp_ns deadline, bool (*stopped)(void));

/*
 * No delay; a probe for each second without a sign of the peer. What pp_channel_gone() does not
 * look at the kernel gives up by itself, 4 s after it was last sent something.
 */
void pp_channel_tune(int fd);
/* "10.0.0.2:41234", "[fe80::1%2]:41234", good to dial; a mapped IPv4 address is shown as one. */
void pp_channel_name(const struct sockaddr_storage *address, char *ret, size_t size);

#endif
