/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slot's socket and what goes through it: a head, then the datagrams of a train as they came.
 *
 * The receiver believes a message's bytes as little as a packet's: who sent it is told by the
 * kernel (SO_PASSCRED), sizes are checked here, the rest is the engine's to judge. What waits is
 * bounded by the kernel's queue.
 */
#include "soft/link/slot.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/banned.h"

enum {
	MAGIC = 0x70706864, /* changes with the layout of struct head */
	TRAIN_MAX = 65536,
	SEND_BUFFER = 4 << 20,
	TURN_MESSAGES_MAX = 256,
	ANSWERS = 64,
};

#define PATIENCE (1 * PP_MILLISECOND)
#define HURRY	 (100 * PP_MILLISECOND)

struct head {
	uint32_t magic;
	uint32_t segment;
	struct soft_gid src, dst;
	uint16_t sport, place;
	uint8_t traffic_class, hop_limit;
	uint8_t reserved[2];
};

struct soft_slot {
	int fd;
	unsigned int number;
	uid_t uid;
	struct soft_slot_stats stats;
	pp_ns hurry_until[SOFT_SLOTS]; /* by slot: its queue was full for longer than we wait */
	struct soft_slot_answer answers[ANSWERS]; /* a ring */
	unsigned int num_answers;		  /* so far */
	int from;				  /* slot that sent the message being read, or -1 */
	struct head head;			  /* of the message being read */
	uint8_t bytes[TRAIN_MAX];
};

static const char prefix[] = "peerpath-soft.";

static socklen_t name(unsigned int number, struct sockaddr_un *ret)
{
	int n;

	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	n = snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "%s%u", prefix, number);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Slot of a name that the kernel gave; -1: the sender has none. */
static int number_of(const struct sockaddr_un *from, socklen_t len)
{
	const size_t start = offsetof(struct sockaddr_un, sun_path) + 1;
	char text[sizeof(from->sun_path)];
	uint64_t number;

	if (len <= start + strlen(prefix) || len > sizeof(*from) || from->sun_path[0] != '\0' ||
	    memcmp(from->sun_path + 1, prefix, strlen(prefix)) != 0)
		return -1;
	len -= (socklen_t)(start + strlen(prefix));
	memcpy(text, from->sun_path + 1 + strlen(prefix), len);
	text[len] = '\0';
	return pp_parse_u64(text, 0, SOFT_SLOTS - 1, &number) < 0 ? -1 : (int)number;
}

static int bind_lowest(struct soft_slot *slot, struct pp_error *err)
{
	for (unsigned int i = 0; i < SOFT_SLOTS; i++) {
		struct sockaddr_un to;
		socklen_t len = name(i, &to);

		if (bind(slot->fd, (struct sockaddr *)&to, len) == 0) {
			slot->number = i;
			return 0;
		}
		if (errno != EADDRINUSE)
			return pp_error_set(err, -errno, "cannot bind the socket of a slot: %s",
					    strerrordesc_np(errno));
	}
	return pp_error_set(err, -EUSERS,
			    "%d processes of this network namespace use the software device: no "
			    "more fit",
			    SOFT_SLOTS);
}

int soft_slot_take(struct soft_slot **ret, struct pp_error *err)
{
	struct soft_slot *slot = calloc(1, sizeof(*slot));
	const int on = 1, bytes = SEND_BUFFER;
	int rc;

	if (!slot)
		return pp_error_set(err, -ENOMEM, "no memory for a slot");
	slot->uid = geteuid();
	slot->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (slot->fd < 0 || setsockopt(slot->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0) {
		rc = pp_error_set(err, -errno, "cannot make the socket of a slot: %s",
				  strerrordesc_np(errno));
		soft_slot_free(slot);
		return rc;
	}
	/* A smaller buffer only means that less can wait at its end. */
	(void)setsockopt(slot->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	rc = bind_lowest(slot, err);
	if (rc < 0) {
		soft_slot_free(slot);
		return rc;
	}
	*ret = slot;
	return 0;
}

void soft_slot_free(struct soft_slot *slot)
{
	if (!slot)
		return;
	if (slot->fd >= 0)
		(void)close(slot->fd);
	free(slot);
}

unsigned int soft_slot_number(const struct soft_slot *slot)
{
	return slot->number;
}

int soft_slot_fd(const struct soft_slot *slot)
{
	return slot->fd;
}

const struct soft_slot_stats *soft_slot_stats(const struct soft_slot *slot)
{
	return &slot->stats;
}

/*
 * A queue of ten messages is full in a moment, and a datagram that nobody sends again would be lost
 * while the port's filter is still being learned: who is there gets a millisecond to drain it. Who
 * let that pass, stopped perhaps, is not waited for again for a while.
 */
static int send_patiently(struct soft_slot *slot, unsigned int number, const struct msghdr *msg)
{
	const struct timespec pause = {.tv_nsec = 50000};
	pp_ns began = pp_clock_monotonic();

	while (sendmsg(slot->fd, msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		if (errno != EAGAIN || began < slot->hurry_until[number])
			return -1;
		if (pp_clock_monotonic() - began > PATIENCE) {
			slot->hurry_until[number] = began + HURRY;
			errno = EAGAIN;
			return -1;
		}
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

int soft_slot_pass_train(struct soft_slot *slot, unsigned int number, const struct soft_datagram *d,
			 size_t segment)
{
	struct head head = {
		.magic = MAGIC,
		.segment = (uint32_t)segment,
		.src = d->src,
		.dst = d->dst,
		.sport = d->sport,
		.place = d->place,
		.traffic_class = d->traffic_class,
		.hop_limit = d->hop_limit,
	};
	/* sendmsg() only reads what the cast makes writable. */
	struct iovec iov[2] = {{&head, sizeof(head)}, {(void *)(uintptr_t)d->bytes, d->len}};
	struct sockaddr_un to;
	struct msghdr msg = {.msg_name = &to, .msg_iov = iov, .msg_iovlen = 2};

	if (number >= SOFT_SLOTS || number == slot->number || d->len > TRAIN_MAX || segment == 0 ||
	    segment > d->len)
		return -EINVAL;
	msg.msg_namelen = name(number, &to);
	if (send_patiently(slot, number, &msg) < 0) {
		int rc = -errno;

		slot->stats.not_passed++;
		return rc;
	}
	slot->stats.passed++;
	return 0;
}

int soft_slot_pass(struct soft_slot *slot, unsigned int number, const struct soft_datagram *d)
{
	return soft_slot_pass_train(slot, number, d, d->len);
}

/* Did a process of our user, or root, send it? */
static bool trusted(const struct soft_slot *slot, struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		struct ucred cred;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS ||
		    c->cmsg_len < CMSG_LEN(sizeof(cred)))
			continue;
		memcpy(&cred, CMSG_DATA(c), sizeof(cred));
		return cred.uid == slot->uid || cred.uid == 0;
	}
	return false;
}

/* Descriptors that came along would stay open for ever. */
static void drop_descriptors(struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			(void)close(fd);
		}
	}
}

/* Reads one message into the slot; its datagrams' bytes, 0: a refused one, -errno: none there. */
static ssize_t message_read(struct soft_slot *slot)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(64)];
	struct iovec iov[2] = {{&slot->head, sizeof(slot->head)},
			       {slot->bytes, sizeof(slot->bytes)}};
	struct sockaddr_un from;
	struct msghdr msg = {.msg_name = &from,
			     .msg_namelen = sizeof(from),
			     .msg_iov = iov,
			     .msg_iovlen = 2,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	ssize_t len = recvmsg(slot->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	bool good;

	if (len < 0)
		return -errno;
	drop_descriptors(&msg);
	good = trusted(slot, &msg) && !(msg.msg_flags & MSG_TRUNC) &&
	       len > (ssize_t)sizeof(slot->head) && slot->head.magic == MAGIC;
	if (good) {
		len -= (ssize_t)sizeof(slot->head);
		good = slot->head.segment > 0 && slot->head.segment <= (size_t)len &&
		       len / slot->head.segment <= UINT16_MAX;
	}
	if (!good) {
		slot->stats.refused++;
		return 0;
	}
	slot->stats.taken++;
	slot->from = number_of(&from, msg.msg_namelen);
	return len;
}

static bool take_answer(struct soft_slot *slot, const struct soft_datagram *d)
{
	struct soft_probe probe;

	if (!soft_probe_read(d->bytes, d->len, &probe))
		return false;
	if (slot->from >= 0)
		slot->answers[slot->num_answers++ % ANSWERS] =
			(struct soft_slot_answer){.probe = probe, .from = (uint8_t)slot->from};
	return true;
}

unsigned int soft_slot_answers(const struct soft_slot *slot)
{
	return slot->num_answers;
}

const struct soft_slot_answer *soft_slot_answer(const struct soft_slot *slot, unsigned int *cursor)
{
	if (slot->num_answers - *cursor > ANSWERS)
		*cursor = slot->num_answers - ANSWERS;
	return *cursor == slot->num_answers ? NULL : &slot->answers[(*cursor)++ % ANSWERS];
}

static unsigned int cut(struct soft_slot *slot, size_t len, soft_datagram_handler *handler,
			void *arg)
{
	const struct head *h = &slot->head;
	struct soft_datagram d = {
		.src = h->src,
		.dst = h->dst,
		.sport = h->sport,
		.place = h->place,
		.traffic_class = h->traffic_class,
		.hop_limit = h->hop_limit,
	};
	unsigned int n = 0;

	for (size_t at = 0; at < len; at += h->segment, n++, d.place++) {
		d.bytes = slot->bytes + at;
		d.len = len - at < h->segment ? len - at : h->segment;
		if (!take_answer(slot, &d))
			handler(arg, &d);
	}
	return n;
}

unsigned int soft_slot_receive(struct soft_slot *slot, size_t budget,
			       soft_datagram_handler *handler, void *arg)
{
	unsigned int n = 0;
	size_t got = 0;

	for (unsigned int i = 0; i < TURN_MESSAGES_MAX && got < budget; i++) {
		ssize_t len = message_read(slot);

		if (len == -EINTR)
			continue;
		if (len < 0)
			break;
		n += cut(slot, (size_t)len, handler, arg);
		got += (size_t)len;
	}
	return n;
}
