/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/engine/show.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "soft/engine/parts.h"

#include "base/banned.h"

static socklen_t address(unsigned int slot, struct sockaddr_un *ret)
{
	int n;

	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	n = snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "peerpath-soft.%u.show", slot);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

int soft_show_listen(unsigned int slot)
{
	struct sockaddr_un to;
	socklen_t len = address(slot, &to);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&to, len) < 0 || listen(fd, 4) < 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

/* (uid_t)-1: not known, and nobody's. */
static uid_t user_of(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) ? (uid_t)-1 : peer.uid;
}

/* Root asks all, everybody his own. */
static bool may_ask(uid_t who, uid_t whom)
{
	return who == 0 || who == whom;
}

/* A message of one byte and one descriptor. Points into itself: made where it is used. */
struct parcel {
	char byte;
	struct iovec iov;
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr msg;
};

static struct cmsghdr *parcel_init(struct parcel *p)
{
	memset(p, 0, sizeof(*p));
	p->iov = (struct iovec){.iov_base = &p->byte, .iov_len = 1};
	p->msg = (struct msghdr){.msg_iov = &p->iov,
				 .msg_iovlen = 1,
				 .msg_control = p->control.bytes,
				 .msg_controllen = sizeof(p->control.bytes)};
	return CMSG_FIRSTHDR(&p->msg);
}

static void give(int to, int fd)
{
	struct parcel p;
	struct cmsghdr *c = parcel_init(&p);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	/* Who went away does not matter. */
	if (sendmsg(to, &p.msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
}

static void answer(struct soft_engine *e, int caller, const char *request, size_t len)
{
	struct pp_buf text = PP_BUF(SOFT_SHOW_MAX);
	soft_engine_request *change = atomic_load(&e->request);
	int memory;

	if (len == strlen(SOFT_SHOW_REQUEST) && !memcmp(request, SOFT_SHOW_REQUEST, len)) {
		pthread_mutex_lock(&e->lock);
		e->show(e->show_arg, e, &text);
		soft_engine_unlock(e);
	} else if (change) {
		change(e->show_arg, e, request, len, &text);
	} else {
		return;
	}
	memory = memfd_create("peerpath-soft-show", MFD_CLOEXEC);
	if (memory >= 0 && !text.failed && pp_fd_write(memory, pp_buf_text(&text), text.len) == 0)
		give(caller, memory);
	if (memory >= 0)
		close(memory);
	pp_buf_done(&text);
}

static void send_away(struct soft_engine *e)
{
	close(e->caller_fd);
	e->caller_fd = -1;
}

int soft_show_fd(const struct soft_engine *e)
{
	return e->caller_fd >= 0 ? e->caller_fd : e->show_fd;
}

pp_ns soft_show_deadline(const struct soft_engine *e)
{
	return e->caller_fd >= 0 ? e->caller_until : 0;
}

static void let_in(struct soft_engine *e)
{
	e->caller_fd = accept4(e->show_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (e->caller_fd < 0) {
		e->caller_fd = -1;
		return;
	}
	e->caller_until = pp_clock_monotonic() + SOFT_SHOW_PATIENCE;
	if (!may_ask(user_of(e->caller_fd), geteuid()))
		send_away(e);
}

void soft_show_ready(struct soft_engine *e)
{
	char request[SOFT_SHOW_REQUEST_MAX];
	ssize_t n;

	if (e->caller_fd < 0)
		let_in(e);
	if (e->caller_fd < 0)
		return;
	/* It is mostly there already: a caller writes as soon as it is connected. */
	n = recv(e->caller_fd, request, sizeof(request), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR) && pp_clock_monotonic() < e->caller_until)
		return;
	if (n > 0)
		answer(e, e->caller_fd, request, (size_t)n);
	send_away(e);
}

/* Of a connection that was closed without a word: nobody of this user is sent away so. */
static int unheard(int fd)
{
	return may_ask(geteuid(), user_of(fd)) ? -ECONNRESET : -EACCES;
}

static int take(int from, int *ret)
{
	struct parcel p;
	struct cmsghdr *c;
	ssize_t n;

	(void)parcel_init(&p);
	n = recvmsg(from, &p.msg, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == ECONNRESET ? unheard(from) : -errno;
	if (n == 0)
		return unheard(from);
	c = CMSG_FIRSTHDR(&p.msg);
	if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -EACCES;
	memcpy(ret, CMSG_DATA(c), sizeof(*ret));
	return 0;
}

/* Whoever answers chose the descriptor: only a memfd's reads never block. */
static int read_all(int fd, struct pp_buf *ret)
{
	char part[65536];

	if (fcntl(fd, F_GET_SEALS) < 0)
		return -EACCES;
	for (off_t at = 0; !ret->failed;) {
		ssize_t n = pread(fd, part, sizeof(part), at);

		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		pp_buf_add(ret, part, (size_t)n);
		at += n;
	}
	return ret->failed;
}

int soft_show_ask(unsigned int slot, const char *request, int timeout_ms, struct pp_buf *ret)
{
	struct sockaddr_un to;
	socklen_t len = address(slot, &to);
	/* Of a stopped process the queue of callers fills up: connect() must not wait for room in
	 * it. */
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), memory = -1,
	    rc = 0;
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&to, len) < 0)
		rc = errno == EAGAIN ? -ETIMEDOUT : -errno;
	else if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
		rc = errno == EPIPE ? unheard(fd) : -errno;
	else if (poll(&wait, 1, timeout_ms) <= 0)
		rc = -ETIMEDOUT;
	else
		rc = take(fd, &memory);
	close(fd);
	if (rc < 0)
		return rc;
	rc = read_all(memory, ret);
	close(memory);
	return rc;
}
