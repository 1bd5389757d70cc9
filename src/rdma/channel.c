/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/channel_state.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/banned.h"

enum { PART = 1 << 16 };

struct pp_channel *pp_channel_new(int fd, enum pp_channel_stage stage)
{
	struct pp_channel *c = calloc(1, sizeof(*c));

	if (!c) {
		(void)close(fd);
		return NULL;
	}
	c->fd = fd;
	c->stage = stage;
	c->bytes = PP_BUF((size_t)PP_FRAME_HEAD + PP_CHANNEL_MOST);
	(void)snprintf(c->peer, sizeof(c->peer), "local");
	return c;
}

struct pp_channel *pp_channel_free(struct pp_channel *c)
{
	if (!c)
		return NULL;
	(void)close(c->fd);
	pp_buf_done(&c->bytes);
	json_decref(c->introduction);
	free(c->own);
	sodium_memzero(c, sizeof(*c));
	free(c);
	return NULL;
}

int pp_channel_pair(struct pp_channel *ret[2], struct pp_error *err)
{
	struct pp_channel *c[2];
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd))
		return pp_error_set(err, -errno, "no socket pair: %s", strerror(errno));
	c[0] = pp_channel_new(fd[0], PP_CHANNEL_OPEN);
	c[1] = pp_channel_new(fd[1], PP_CHANNEL_OPEN);
	if (!c[0] || !c[1]) {
		(void)pp_channel_free(c[0]);
		(void)pp_channel_free(c[1]);
		return pp_error_set(err, -ENOMEM, "no memory for a channel");
	}
	ret[0] = c[0];
	ret[1] = c[1];
	return 0;
}

int pp_channel_fd(const struct pp_channel *c)
{
	return c->fd;
}

const char *pp_channel_peer(const struct pp_channel *c)
{
	return c->peer;
}

const json_t *pp_channel_introduction(const struct pp_channel *c)
{
	return c->introduction;
}

void pp_channel_tune(int fd)
{
	const int one = 1, seconds = 1, probes = 3;
	const unsigned int limit_ms = 4000;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof(limit_ms));
}

void pp_channel_name(const struct sockaddr_storage *address, char *ret, size_t size)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;
	char text[INET6_ADDRSTRLEN] = "?", scope[16] = "";

	if (address->ss_family == AF_INET) {
		(void)inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text));
		(void)snprintf(ret, size, "%s:%u", text, ntohs(four->sin_port));
	} else if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
		(void)inet_ntop(AF_INET, &six->sin6_addr.s6_addr[12], text, sizeof(text));
		(void)snprintf(ret, size, "%s:%u", text, ntohs(six->sin6_port));
	} else {
		(void)inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
		if (six->sin6_scope_id)
			(void)snprintf(scope, sizeof(scope), "%%%u", six->sin6_scope_id);
		(void)snprintf(ret, size, "[%s%s]:%u", text, scope, ntohs(six->sin6_port));
	}
}

int pp_channel_wait(int fd, short events, pp_ns deadline, bool (*stopped)(void))
{
	struct pollfd p = {.fd = fd, .events = events};
	pp_ns left;
	int ms, r;

	for (;;) {
		if (stopped && stopped())
			return -EINTR;
		left = deadline - pp_clock_monotonic();
		if (left < 0)
			left = 0;
		ms = left / PP_MILLISECOND < PP_CHANNEL_SLICE_MS
			     ? (int)((left + PP_MILLISECOND - 1) / PP_MILLISECOND)
			     : PP_CHANNEL_SLICE_MS;
		r = poll(&p, 1, ms);
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
		if (left <= 0)
			return -ETIMEDOUT;
	}
}

int pp_channel_fill(struct pp_channel *c, size_t need)
{
	char part[PART];
	ssize_t n;

	while (c->bytes.len < need) {
		size_t want = need - c->bytes.len;

		n = recv(c->fd, part, want < sizeof(part) ? want : sizeof(part), MSG_DONTWAIT);
		if (n == 0)
			return -ENODATA;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EWOULDBLOCK ? -EAGAIN : -errno;
		pp_buf_add(&c->bytes, part, (size_t)n);
		if (c->bytes.failed)
			return -ENOMEM;
	}
	return 0;
}

/* Since the kernel last heard of the peer's; 0: no socket of TCP. */
static pp_ns silent(const struct pp_channel *c)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);
	uint32_t ms;

	if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return 0;
	ms = info.tcpi_last_data_recv < info.tcpi_last_ack_recv ? info.tcpi_last_data_recv
								: info.tcpi_last_ack_recv;
	return ms * PP_MILLISECOND;
}

static int lost(struct pp_channel *c, int code, struct pp_error *err)
{
	if (code == -ENOMEM)
		return pp_error_set(err, -ENOMEM, "no memory for a message of %s", c->peer);
	if (code == -ENODATA && c->bytes.len)
		return pp_error_set(err, -ECONNRESET,
				    "%s ended its connection in the middle of a message", c->peer);
	if (code == -ENODATA || code == -ECONNRESET || code == -EPIPE)
		return pp_error_set(err, -ECONNRESET, "%s has ended its connection", c->peer);
	return pp_error_set(err, -ECONNRESET, "%s is lost: %s", c->peer,
			    code == -ETIMEDOUT ? "its host does not answer any more"
					       : strerror(-code));
}

bool pp_channel_gone(struct pp_channel *c, struct pp_error *err)
{
	if (!pp_silence_look(&c->silence, pp_clock_monotonic(), silent(c)))
		return false;
	/* Nobody waits for what the kernel still tries. */
	(void)shutdown(c->fd, SHUT_RDWR);
	c->stage = PP_CHANNEL_BROKEN;
	(void)lost(c, -ETIMEDOUT, err);
	return true;
}

/* The whole of @iov, or the channel is broken. */
static int send_all(struct pp_channel *c, struct iovec iov[2], struct pp_error *err)
{
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
	pp_ns deadline = pp_clock_monotonic() + PP_CHANNEL_SEND_LIMIT;
	size_t done;
	ssize_t n;
	int r;

	while (iov[0].iov_len || iov[1].iov_len) {
		n = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EWOULDBLOCK) {
			r = pp_channel_wait(c->fd, POLLOUT, deadline, NULL);
			if (r) {
				c->stage = PP_CHANNEL_BROKEN;
				return pp_error_set(
					err, r, "%s does not read: nothing went for %d s", c->peer,
					(int)(PP_CHANNEL_SEND_LIMIT / PP_SECOND));
			}
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			r = -errno;
			c->stage = PP_CHANNEL_BROKEN;
			(void)lost(c, r, err);
			return err->code = -EPIPE;
		}
		deadline = pp_clock_monotonic() + PP_CHANNEL_SEND_LIMIT;
		for (int i = 0; i < 2; i++) {
			done = (size_t)n < iov[i].iov_len ? (size_t)n : iov[i].iov_len;
			iov[i].iov_base = (char *)iov[i].iov_base + done;
			iov[i].iov_len -= done;
			n -= (ssize_t)done;
		}
	}
	return 0;
}

int pp_channel_send(struct pp_channel *c, const char *text, size_t len, struct pp_error *err)
{
	uint8_t head[PP_FRAME_HEAD];
	struct iovec iov[2];

	if (!len || len > PP_CHANNEL_MOST)
		return pp_error_set(err, -EMSGSIZE,
				    "a message of %zu bytes: at least 1, at most %d", len,
				    PP_CHANNEL_MOST);
	if (c->stage == PP_CHANNEL_BROKEN)
		return pp_error_set(err, -EPIPE, "%s was lost before", c->peer);
	iov[0] = (struct iovec){.iov_base = head,
				.iov_len = pp_frame_head(&c->out, text, len, head)};
	/* sendmsg() only reads what its vector names. */
	iov[1] = (struct iovec){.iov_base = (void *)(uintptr_t)text, .iov_len = len};
	return send_all(c, iov, err);
}

static int parse(struct pp_channel *c, const struct pp_frame *frame, json_t **ret,
		 struct pp_error *err)
{
	json_error_t why;
	json_t *root = json_loadb(frame->text, frame->len, JSON_REJECT_DUPLICATES, &why);

	if (!root) {
		pp_sanitize(why.text, false);
		return pp_error_set(err, -EBADMSG, "%s sent no JSON: %s", c->peer, why.text);
	}
	if (!json_is_object(root)) {
		json_decref(root);
		return pp_error_set(err, -EBADMSG, "%s sent JSON that is no object", c->peer);
	}
	*ret = root;
	return 0;
}

static int refused(const struct pp_channel *c, int code, struct pp_error *err)
{
	if (code == -EMSGSIZE)
		return pp_error_set(err, code, "%s announces a message of more than %d bytes",
				    c->peer, PP_CHANNEL_MOST);
	return pp_error_set(err, -EBADMSG, "%s sent a message whose code is wrong", c->peer);
}

int pp_channel_receive(struct pp_channel *c, pp_ns deadline, bool (*stopped)(void), json_t **ret,
		       struct pp_error *err)
{
	struct pp_frame frame;
	pp_ns look;
	int r;

	for (;;) {
		r = pp_frame_read(&c->in, (const uint8_t *)pp_buf_text(&c->bytes), c->bytes.len,
				  PP_CHANNEL_MOST, &frame);
		if (!r) {
			r = parse(c, &frame, ret, err);
			pp_buf_done(&c->bytes);
			return r;
		}
		if (r != -EAGAIN)
			return refused(c, r, err);
		r = pp_channel_fill(c, frame.need);
		/* Once it is known, the end of the socket is ours. */
		if ((r == -EAGAIN || c->silence.gone) && pp_channel_gone(c, err))
			return -ECONNRESET;
		if (r && r != -EAGAIN)
			return lost(c, r, err);
		if (!r)
			continue;
		look = pp_clock_monotonic() + PP_SILENCE_LOOK;
		r = pp_channel_wait(c->fd, POLLIN, look < deadline ? look : deadline, stopped);
		if (r == -ETIMEDOUT && look < deadline)
			continue;
		if (r == -ETIMEDOUT)
			return pp_error_set(err, r, "%s does not answer", c->peer);
		if (r)
			return pp_error_set(err, r, "interrupted while waiting for %s", c->peer);
	}
}
