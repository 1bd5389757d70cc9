/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How two ends of a TCP connection come to trust each other. The dialler speaks first, and proves
 * first: whoever merely connects learns nothing but the version of the protocol, and only if it
 * has said peerpath's greeting.
 */
#include "rdma/channel_state.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/banned.h"

int pp_channel_begin(int fd, bool dialler, const char *introduction, struct pp_channel **ret,
		     struct pp_error *err)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof(address);
	struct pp_channel *c = pp_channel_new(fd, PP_CHANNEL_GREETS);

	if (!c)
		return pp_error_set(err, -ENOMEM, "no memory for a channel");
	c->own = introduction ? strdup(introduction) : NULL;
	c->dialler = dialler;
	if (introduction && !c->own) {
		(void)pp_channel_free(c);
		return pp_error_set(err, -ENOMEM, "no memory for a channel");
	}
	if (sodium_init() < 0) {
		(void)pp_channel_free(c);
		return pp_error_set(err, -EIO, "no random numbers");
	}
	if (getpeername(fd, (struct sockaddr *)&address, &size) == 0)
		pp_channel_name(&address, c->peer, sizeof(c->peer));
	pp_channel_tune(fd);
	randombytes_buf(c->nonce, sizeof(c->nonce));
	*ret = c;
	return 0;
}

/* A fresh connection has room for all that is said here; one that has not is no peer of ours. */
static int say(struct pp_channel *c, const void *bytes, size_t len)
{
	ssize_t n = send(c->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	return n == (ssize_t)len ? 0 : -ECONNRESET;
}

static int say_greeting(struct pp_channel *c)
{
	struct pp_frame_greeting g = {.version = PP_CHANNEL_VERSION};
	uint8_t bytes[PP_FRAME_GREETING];

	memcpy(g.nonce, c->nonce, sizeof(g.nonce));
	pp_frame_greet(&g, bytes);
	return say(c, bytes, sizeof(bytes));
}

static int say_introduction(struct pp_channel *c)
{
	const char *text = c->own ? c->own : "{}";
	uint8_t bytes[PP_FRAME_HEAD + PP_CHANNEL_INTRODUCTION];
	size_t len = strlen(text), head;

	if (len > PP_CHANNEL_INTRODUCTION)
		return -EMSGSIZE;
	head = pp_frame_head(&c->out, text, len, bytes);
	memcpy(bytes + head, text, len);
	return say(c, bytes, head + len);
}

/* Its first bytes, for a person. */
static int stranger(const struct pp_channel *c, struct pp_error *err)
{
	char begin[16 + 1] = "";
	size_t n = c->bytes.len < 16 ? c->bytes.len : 16;

	for (size_t i = 0; i < n; i++)
		begin[i] =
			c->bytes.data[i] >= ' ' && c->bytes.data[i] <= '~' ? c->bytes.data[i] : '.';
	return pp_error_set(err, -EPROTO, "%s is no peerpath: it says \"%s\"", c->peer, begin);
}

static int gone(const struct pp_channel *c, int code, struct pp_error *err)
{
	if (code == -EMSGSIZE)
		return pp_error_set(err, code, "an introduction of more than %d bytes",
				    PP_CHANNEL_INTRODUCTION);
	if (code == -ENOMEM)
		return pp_error_set(err, code, "no memory for a message of %s", c->peer);
	if (code == -ENODATA && c->stage == PP_CHANNEL_GREETS)
		return pp_error_set(
			err, -ECONNRESET,
			"%s ended the connection without a greeting: no peerpath, or busy",
			c->peer);
	return pp_error_set(err, -ECONNRESET, "%s ended the connection while greeting", c->peer);
}

/* What a peer of another version has sent is not read, but it shall still read our greeting. */
static int other_version(struct pp_channel *c, uint32_t version, struct pp_error *err)
{
	char rest[256];

	if (!c->dialler) {
		(void)say_greeting(c);
		(void)recv(c->fd, rest, sizeof(rest), MSG_DONTWAIT);
		(void)shutdown(c->fd, SHUT_WR);
	}
	return pp_error_set(
		err, -EPROTO,
		"%s speaks version %u of the control channel, this peerpath (%s) version "
		"%d: install the same peerpath on both",
		c->peer, version, PEERPATH_VERSION, PP_CHANNEL_VERSION);
}

static int greeted(struct pp_channel *c, const char *token, struct pp_error *err)
{
	struct pp_frame_greeting g = {0};
	int r, f;

	/* The fixed part first: another version's greeting may be shorter. */
	do {
		r = pp_channel_fill(c, c->bytes.len < PP_FRAME_GREETING_FIXED
					       ? PP_FRAME_GREETING_FIXED
					       : PP_FRAME_GREETING);
		f = pp_frame_greeting_read((const uint8_t *)pp_buf_text(&c->bytes), c->bytes.len,
					   &g);
	} while (!r && f == -EAGAIN);
	if (f == -EPROTO)
		return stranger(c, err);
	if (f == -EPROTONOSUPPORT)
		return other_version(c, g.version, err);
	if (f)
		return r == -EAGAIN ? r : gone(c, r, err);
	if (sodium_memcmp(g.nonce, c->nonce, sizeof(g.nonce)) == 0)
		return pp_error_set(err, -EPROTO, "%s sends back what it was sent", c->peer);
	if (!c->dialler && (r = say_greeting(c)))
		return gone(c, r, err);
	if (c->dialler)
		pp_frame_keys(token, c->nonce, g.nonce, &c->out, &c->in);
	else
		pp_frame_keys(token, g.nonce, c->nonce, &c->in, &c->out);
	pp_buf_done(&c->bytes);
	c->stage = PP_CHANNEL_INTRODUCES;
	if (c->dialler && (r = say_introduction(c)))
		return gone(c, r, err);
	return 0;
}

static int other_token(struct pp_channel *c, struct pp_error *err)
{
	static const uint8_t refusal[PP_FRAME_LENGTH];

	if (!c->dialler)
		(void)say(c, refusal, sizeof(refusal));
	return pp_error_set(err, -EACCES, "%s has another token than this side", c->peer);
}

static int introduced(struct pp_channel *c, struct pp_error *err)
{
	struct pp_frame frame = {.need = PP_FRAME_LENGTH};
	int r, f;

	do {
		r = pp_channel_fill(c, frame.need);
		f = pp_frame_read(&c->in, (const uint8_t *)pp_buf_text(&c->bytes), c->bytes.len,
				  PP_CHANNEL_INTRODUCTION, &frame);
	} while (!r && f == -EAGAIN);
	if (f == -EACCES || f == -EBADMSG || f == -EMSGSIZE)
		return other_token(c, err);
	if (f)
		return r == -EAGAIN ? r : gone(c, r, err);
	c->introduction = json_loadb(frame.text, frame.len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(c->introduction))
		return pp_error_set(err, -EPROTO, "%s introduced itself with no JSON object",
				    c->peer);
	pp_buf_done(&c->bytes);
	if (!c->dialler && (r = say_introduction(c)))
		return gone(c, r, err);
	c->stage = PP_CHANNEL_OPEN;
	return 0;
}

int pp_channel_greet(struct pp_channel *c, const char *token, struct pp_error *err)
{
	int r = 0;

	if (c->stage == PP_CHANNEL_GREETS && c->dialler && !c->greeted) {
		r = say_greeting(c);
		if (r)
			return gone(c, r, err);
		c->greeted = true;
	}
	if (c->stage == PP_CHANNEL_GREETS)
		r = greeted(c, token, err);
	if (!r && c->stage == PP_CHANNEL_INTRODUCES)
		r = introduced(c, err);
	return r;
}
