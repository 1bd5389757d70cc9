/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes on the coordinator's own machine: one keeper process each. */
#include "rdma/party_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/channel_state.h"
#include "base/banned.h"

static PP_NORETURN void keeper(struct pp_party *p, struct pp_channel *control, int hand,
			       pid_t parent)
{
	int keep[2] = {pp_channel_fd(control), hand};
	struct pp_keeper *k = calloc(1, sizeof(*k));
	struct pp_error err;

	pp_child_settle(parent);
	/* Who reads our output must not wait for us when the coordinator has been killed. */
	pp_child_mute();
	if (keep[0] > keep[1]) {
		keep[0] = hand;
		keep[1] = pp_channel_fd(control);
	}
	pp_child_keep_only(keep, 2);
	if (!k)
		_exit(1);
	k->service = &p->service;
	k->control = control;
	k->hand = hand;
	_exit(pp_keeper_run(k, &err) ? 1 : 0);
}

/* The other end goes to the keeper together with what is asked of it. */
static int hand_over(int hand, struct pp_channel *end, const struct pp_keeper_request *request)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct pp_keeper_request copy = *request;
	struct iovec iov = {.iov_base = &copy, .iov_len = sizeof(copy)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&m);
	int fd = pp_channel_fd(end);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	return sendmsg(hand, &m, MSG_NOSIGNAL) == (ssize_t)sizeof(copy) ? 0 : -errno;
}

static int open_here(struct pp_party *p, struct pp_party_member *m, enum pp_keeper_kind kind,
		     struct pp_channel **ret, struct pp_error *err)
{
	struct pp_keeper_request request = {.kind = kind, .number = p->agents++};
	struct pp_channel *c[2];
	int r = pp_channel_pair(c, err);

	if (r)
		return r;
	r = hand_over(m->hand, c[1], &request);
	(void)pp_channel_free(c[1]);
	if (r) {
		(void)pp_channel_free(c[0]);
		return pp_error_set(err, -ECONNRESET, "its process is gone");
	}
	*ret = c[0];
	return 0;
}

static int start(struct pp_party *p, struct pp_error *err)
{
	struct pp_party_member *m;
	struct pp_channel *c[2];
	pid_t parent = getpid(), pid;
	int hand[2], r = pp_channel_pair(c, err);

	if (r)
		return r;
	r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, hand) ? -errno : 0;
	pid = r ? -1 : (fflush(NULL), fork());
	if (pid == 0)
		keeper(p, c[1], hand[1], parent);
	(void)pp_channel_free(c[1]);
	if (!r)
		(void)close(hand[1]);
	if (pid < 0) {
		r = r ? r : -errno;
		if (r == 0)
			(void)close(hand[0]);
		(void)pp_channel_free(c[0]);
		return pp_error_set(err, r, "cannot start a node's process: %s", strerror(-r));
	}
	m = pp_party_add(p);
	m->control = c[0];
	m->hand = hand[0];
	m->keeper = pid;
	m->open = open_here;
	pp_party_host(m->node.host, sizeof(m->node.host));
	(void)snprintf(m->node.address, sizeof(m->node.address), "local");
	(void)snprintf(m->node.version, sizeof(m->node.version), "%s", PEERPATH_VERSION);
	return 0;
}

int pp_party_gather_here(struct pp_party *p, unsigned int n, struct pp_error *err)
{
	int r = 0;

	for (unsigned int i = 0; i < n && !r; i++)
		r = start(p, err);
	return r;
}
