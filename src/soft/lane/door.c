/* SPDX-License-Identifier: Apache-2.0 */
#include "soft/lane/door.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/banned.h"

enum { BACKLOG = 256, DESCRIPTORS_MAX = 4 };

static socklen_t name(unsigned int slot, struct sockaddr_un *ret)
{
	int n;

	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	n = snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "peerpath-soft.%u.lane", slot);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int new_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

static int closed(int fd, int rc)
{
	(void)close(fd);
	return rc;
}

int soft_door_listen(unsigned int slot)
{
	struct sockaddr_un at;
	socklen_t len = name(slot, &at);
	int fd = new_socket();

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, BACKLOG) < 0)
		return closed(fd, -errno);
	return fd;
}

static int check_user(int fd, pid_t *ret_pid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	*ret_pid = peer.pid;
	return peer.uid == geteuid() ? 0 : -EPERM;
}

/* One message with descriptors. */
static int give(int fd, const void *message, size_t bytes, const int *fds, unsigned int num)
{
	union {
		char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = {.bytes = {0}};
	/* sendmsg() only reads what the cast makes writable. */
	struct iovec iov = {(void *)(uintptr_t)message, bytes};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = CMSG_SPACE(num * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	if (num) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(num * sizeof(int));
		memcpy(CMSG_DATA(c), fds, num * sizeof(int));
	} else {
		msg.msg_control = NULL;
		msg.msg_controllen = 0;
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Descriptors that came along; @fds has room for all that the kernel gave. */
static unsigned int descriptors(struct msghdr *msg, int *fds)
{
	unsigned int n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(fds + n, CMSG_DATA(c), bytes);
		n += (unsigned int)(bytes / sizeof(int));
	}
	return n;
}

/* @least to @max descriptors; those that did not come are -1. */
static int take_some(int fd, void *message, size_t bytes, unsigned int least, unsigned int max,
		     int *ret_fds)
{
	union {
		char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {message, bytes};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	ssize_t len = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fds[sizeof(control) / sizeof(int)];
	unsigned int n;

	if (len < 0)
		return -errno;
	n = descriptors(&msg, fds);
	if (len == (ssize_t)bytes && !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && n >= least &&
	    n <= max) {
		for (unsigned int i = 0; i < max; i++)
			ret_fds[i] = i < n ? fds[i] : -1;
		return 0;
	}
	while (n)
		(void)close(fds[--n]);
	return len ? -EPROTO : -ECONNRESET;
}

static int take(int fd, void *message, size_t bytes, unsigned int max, int *ret_fds)
{
	return take_some(fd, message, bytes, 1, max, ret_fds);
}

int soft_door_tell(int fd, const struct soft_showing *showing)
{
	struct soft_showing s = *showing;
	const int fds[] = {s.fd};

	s.magic = SOFT_LANE_MAGIC;
	s.fd = -1;
	return give(fd, &s, sizeof(s), fds, fds[0] < 0 ? 0 : 1);
}

int soft_door_told(int fd, struct soft_showing *ret)
{
	struct soft_showing s;
	int given, rc = take_some(fd, &s, sizeof(s), 0, 1, &given);

	if (rc < 0)
		return rc;
	if (s.magic != SOFT_LANE_MAGIC || s.kind > SOFT_EXPORT_IPC ||
	    (s.kind == SOFT_EXPORT_VMM) != (given >= 0)) {
		if (given >= 0)
			(void)close(given);
		return -EPROTO;
	}
	s.fd = given;
	*ret = s;
	return 0;
}

int soft_door_answer(int fd, uint32_t number, int what)
{
	struct soft_door_answer a = {.magic = SOFT_LANE_MAGIC, .number = number, .what = what};

	return give(fd, &a, sizeof(a), NULL, 0);
}

int soft_door_answered(int fd, struct soft_door_answer *ret)
{
	struct soft_door_answer a;
	int rc = take_some(fd, &a, sizeof(a), 0, 0, NULL);

	if (rc < 0)
		return rc;
	if (a.magic != SOFT_LANE_MAGIC)
		return -EPROTO;
	*ret = a;
	return 0;
}

int soft_door_knock(unsigned int slot, const struct soft_hello *hello, int ring_fd, int shelf_fd)
{
	const int fds[] = {ring_fd, shelf_fd};
	struct sockaddr_un to;
	socklen_t len = name(slot, &to);
	int fd = new_socket(), rc = 0;
	pid_t pid;

	if (fd < 0)
		return fd;
	if (connect(fd, (struct sockaddr *)&to, len) < 0)
		rc = -errno;
	if (rc == 0)
		rc = check_user(fd, &pid);
	if (rc == 0)
		rc = give(fd, hello, sizeof(*hello), fds, shelf_fd < 0 ? 1 : 2);
	return rc < 0 ? closed(fd, rc) : fd;
}

int soft_door_accept(int listen_fd, pid_t *ret_pid)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), rc;

	if (fd < 0)
		return -errno;
	rc = check_user(fd, ret_pid);
	return rc < 0 ? closed(fd, rc) : fd;
}

int soft_door_hear(int fd, struct soft_hello *ret, int *ret_ring_fd, int *ret_shelf_fd)
{
	struct soft_hello hello;
	int fds[2], rc = take(fd, &hello, sizeof(hello), 2, fds);

	if (rc < 0)
		return rc;
	if (hello.magic != SOFT_LANE_MAGIC) {
		if (fds[1] >= 0)
			(void)close(fds[1]);
		return closed(fds[0], -EPROTO);
	}
	*ret = hello;
	*ret_ring_fd = fds[0];
	*ret_shelf_fd = fds[1];
	return 0;
}

int soft_door_welcome(int fd, int pull_errno, int bell_fd)
{
	struct soft_welcome welcome = {.magic = SOFT_LANE_MAGIC, .pull_errno = pull_errno};

	return give(fd, &welcome, sizeof(welcome), &bell_fd, 1);
}

int soft_door_welcomed(int fd, struct soft_welcome *ret, int *ret_bell_fd)
{
	struct soft_welcome welcome;
	int bell_fd, rc = take(fd, &welcome, sizeof(welcome), 1, &bell_fd);

	if (rc < 0)
		return rc;
	if (welcome.magic != SOFT_LANE_MAGIC)
		return closed(bell_fd, -EPROTO);
	*ret = welcome;
	*ret_bell_fd = bell_fd;
	return 0;
}
